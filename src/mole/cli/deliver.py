"""`mole deliver`: the provider's data, handed over."""

from functools import partial
from typing import Annotated, Any

import typer

from mole.cli.delivering import (
    DtypeOption,
    KeepOption,
    OutOption,
    ReplaceOption,
    SecondLayerOption,
    about_names,
    morphing,
    opener,
    signed_layer,
    tell,
)
from mole.cli.meaning import about_training
from mole.cli.named_files import signing_key, warn_of_key_among
from mole.cli.options import (
    DataArgument,
    DepthOption,
    DeviceOption,
    IdentityOption,
    JsonOption,
    KeyOption,
    LabelColumnOption,
    LabelsOption,
    LabelTagOption,
    LayerOption,
    LayerSignerOption,
    ModeOption,
    PassphraseFileOption,
    QuietOption,
    RecipientOption,
    ResizeOption,
    SignOption,
    SkipBadOption,
    ViewsOption,
    WindowOption,
    choices,
    parse_depth,
    parse_window,
)
from mole.cli.protecting import (
    BitsOption,
    BudgetOption,
    ClipOption,
    EpsilonOption,
    FrontOption,
    SigmaOption,
    protection_asked_for,
)
from mole.cli.terminal import note
from mole.cli.wrong_calls import CallError
from mole.provider import deliver as library
from mole.provider.class_names import what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.engines import ENGINES, EngineName
from mole.scheme.augmented import LAYER_DTYPES, LayerDtype
from mole.scheme.factored import LAYER_FORMS, LayerForm
from mole.sources.opening import open_source


def deliver(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "delivery",
    dtype: DtypeOption = "float32",
    layer_dtype: Annotated[
        LayerDtype, typer.Option(metavar=choices(LAYER_DTYPES), help="How the augmented layer is stored.")
    ] = "float32",
    layer_form: Annotated[
        LayerForm | None,
        typer.Option(
            metavar=choices(LAYER_FORMS),
            help="As one matrix or in two factors. By default the smaller one.",
        ),
    ] = None,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    class_names: Annotated[
        bool | None,
        typer.Option(
            help="Hand over the names of the classes, or not. By default they leave unless they might be "
            "people's names."
        ),
    ] = None,
    labels: LabelsOption = None,
    label_column: LabelColumnOption = None,
    label_tag: LabelTagOption = None,
    folder_labels: Annotated[
        bool,
        typer.Option(
            "--folder-labels", help="Hand over labels made from the folders of DICOM files, without names."
        ),
    ] = False,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Hand over no labels.")] = False,
    window: WindowOption = None,
    depth: DepthOption = "8",
    views: ViewsOption = 1,
    front: FrontOption = None,
    bits: BitsOption = None,
    sigma: SigmaOption = None,
    epsilon: EpsilonOption = None,
    clip: ClipOption = 1.0,
    budget: BudgetOption = None,
    allow_copying_layer: Annotated[
        bool, typer.Option("--allow-copying-layer", help="Augment a layer even if it copies pixels.")
    ] = False,
    engine: Annotated[
        EngineName,
        typer.Option(metavar=choices(ENGINES), help="What does the work: this machine, or Ray on many."),
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="With --engine ray: a cluster that is running."),
    ] = None,
    device: DeviceOption = None,
    recipient: RecipientOption = None,
    sign: SignOption = None,
    layer_signer: LayerSignerOption = None,
    allow_second_layer: SecondLayerOption = False,
    force: ReplaceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph your data and build the augmented layer. Call again to resume interrupted work."""
    if ray_address is not None and engine != "ray":
        raise CallError("--ray-address is for --engine ray: add that, or leave the address out")
    if no_labels and (labels or label_column or label_tag or folder_labels):
        raise CallError("--no-labels hands over no labels: leave it out, or the options that choose them")
    if folder_labels and (labels or label_column or label_tag):
        raise CallError(
            "--folder-labels is for labels made from folders: leave it out, or the other labels"
        )
    reading: dict[str, Any] = {
        "label_column": label_column,
        "label_tag": label_tag,
        "window": parse_window(window),
        "bits": parse_depth(depth),
    }
    protect = protection_asked_for(front, bits, sigma, epsilon, clip, budget)
    warn_of_key_among([data], key, quiet=quiet)
    with morphing(out, replacing=force, quiet=quiet) as (progress, making):
        first = signed_layer(layer, layer_signer)
        if not allow_copying_layer and protect is None:
            refuse_copying(first, str(layer))
        source = open_source(data, labels=False if no_labels else labels, **reading)
        asked_for = False if no_labels else True if folder_labels else None
        leaving = what_leaves(source, class_names=class_names, labels=asked_for)
        remark = about_names(source, leaving, class_names)
        is_here = engine == "local"
        made = library.deliver(
            source if is_here else data,  # Ray's workers open the data themselves
            first, opener(key, passphrase_file, identity, making, remark, quiet=quiet), out,
            dtype=dtype, layer_dtype=layer_dtype, layer_form=layer_form, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, class_names=leaving.class_names,
            labels=leaving.labels if is_here else leaving.labels and (labels or True),
            **({} if is_here else reading), views=views, protect=protect, engine=engine,
            ray_address=ray_address, device=device, recipients=recipient or (),
            sign=partial(signing_key, sign), allow_second_layer=allow_second_layer, replace=force,
            allow_copying_layer=True, progress=progress,
        )  # fmt: skip
    if told := about_training(made, no_labels=no_labels, are_kept=bool(leaving.kept)):
        note(told, quiet=quiet)
    tell(made, out, as_json=as_json, quiet=quiet)
