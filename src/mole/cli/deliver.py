"""`mole deliver` and `mole morph`: the provider's data, handed over."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.fit_to_print import in_options
from mole.cli.meaning import KEEP_NAMES, about_training, meaning
from mole.cli.named_files import secrets_for, signing_key, warn_of_key_among
from mole.cli.options import (
    BitsOption,
    DataArgument,
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
    parse_bits,
    parse_window,
)
from mole.cli.terminal import note, progress_bar, say, show, warnings_said, when_interrupted
from mole.cli.wrong_calls import CallError
from mole.exchange.layer_files import load_first_layer
from mole.exchange.shards import DTYPES, Dtype
from mole.exchange.signatures import load_signed_layer
from mole.exchange.split_roles import rows_by_split, views_by_split
from mole.foreign_text import listed
from mole.progress import Progress
from mole.provider import deliver as library
from mole.provider.class_names import Leaving, handed_over_by, what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.deliver import Delivered
from mole.provider.engines import ENGINES, EngineName
from mole.provider.keys import MorphKey
from mole.provider.place import what_is_left
from mole.quantities import counted
from mole.scheme.augmented import LAYER_DTYPES, LayerDtype
from mole.scheme.factored import LAYER_FORMS, LayerForm
from mole.scheme.first_layer import FirstLayer
from mole.sources.opening import open_source
from mole.sources.source import Source

OutOption = Annotated[
    str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the result goes: a folder or a URL.")
]
DtypeOption = Annotated[Dtype, typer.Option(metavar=choices(DTYPES), help="How morphed values are stored.")]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to hand over as it is. Repeatable."),
]
SecondLayerOption = Annotated[
    bool,
    typer.Option(
        "--allow-second-layer", help="Use the key even though it was used for another first layer."
    ),
]
ReplaceOption = Annotated[
    bool,
    typer.Option("--force", "-f", help="Replace another delivery that is there; never anything else."),
]

SHOWN = 5  # names of classes are listed, and the rest is counted
HANDS_OVER = {"labels": "--folder-labels", "class_names": "--class-names"}


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
    bits: BitsOption = "8",
    views: ViewsOption = 1,
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
        "bits": parse_bits(bits),
    }
    warn_of_key_among([data], key, quiet=quiet)
    with _morphing(out, quiet=quiet) as (progress, making):
        first = _signed_layer(layer, layer_signer)
        if not allow_copying_layer:
            refuse_copying(first, str(layer))
        source = open_source(data, labels=False if no_labels else labels, **reading)
        asked_for = False if no_labels else True if folder_labels else None
        leaving = what_leaves(source, class_names=class_names, labels=asked_for)
        remark = _about_names(source, leaving, class_names)
        is_here = engine == "local"
        made = library.deliver(
            source if is_here else data,  # Ray's workers open the data themselves
            first, _opener(key, passphrase_file, identity, making, remark, quiet=quiet), out,
            dtype=dtype, layer_dtype=layer_dtype, layer_form=layer_form, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, class_names=leaving.class_names,
            labels=leaving.labels if is_here else leaving.labels and (labels or True),
            **({} if is_here else reading), views=views, engine=engine, ray_address=ray_address,
            device=device, recipients=recipient or (), sign=partial(signing_key, sign),
            allow_second_layer=allow_second_layer, replace=force, allow_copying_layer=True,
            progress=progress,
        )  # fmt: skip
    if told := about_training(made, no_labels=no_labels, are_kept=bool(leaving.kept)):
        note(told, quiet=quiet)
    _tell(made, out, as_json=as_json, quiet=quiet)


def morph(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "requests",
    dtype: DtypeOption = "float32",
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    window: WindowOption = None,
    bits: BitsOption = "8",
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
    """Morph further data with the same key, for predictions: without labels or an augmented layer.

    Call again to resume interrupted work.
    """
    warn_of_key_among([data], key, quiet=quiet)
    with _morphing(out, quiet=quiet) as (progress, making):
        source = open_source(data, labels=False, window=parse_window(window), bits=parse_bits(bits))
        made = library.deliver(
            source, _signed_layer(layer, layer_signer),
            _opener(key, passphrase_file, identity, making), out,
            dtype=dtype, layer_dtype=None, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, labels=False, recipients=recipient or (),
            sign=partial(signing_key, sign), allow_second_layer=allow_second_layer, replace=force,
            device=device, progress=progress,
        )  # fmt: skip
    _tell(made, out, as_json=as_json, quiet=quiet)


def _signed_layer(layer: Path, signer: Path | None) -> FirstLayer:
    """The developer's first layer, by the signer that is asked for."""
    return load_first_layer(layer) if signer is None else load_signed_layer(layer, signer)[0]


def _opener(
    key: Path,
    passphrase_file: Path | None,
    identities: list[Path] | None,
    making: Progress,
    remark: str | None = None,
    *,
    quiet: bool = False,
) -> Callable[[], MorphKey]:
    """What opens the key, once nothing else is wrong: only then a passphrase is asked for."""

    def opened() -> MorphKey:
        if remark is not None:
            note(remark, quiet=quiet)
        return MorphKey.load(key, progress=making, **secrets_for(key, passphrase_file, identities))

    return opened


def _about_names(source: Source, leaving: Leaving, class_names: bool | None) -> str | None:
    """Which names of classes leave, or that they stay, and how to have it otherwise."""
    if leaving.kept:
        option = HANDS_OVER[handed_over_by(class_names)]
        return f"{leaving.kept}; {option} hands them over"
    if not (leaving.labels and leaving.class_names and source.classes):
        return None
    count = counted(len(source.classes), "class", "classes")
    return f"the names of {count} leave: {listed(source.classes, SHOWN)}; {KEEP_NAMES}"


@contextmanager
def _morphing(out: str, *, quiet: bool) -> Iterator[tuple[Progress, Progress]]:
    """While it works: bars for data and core, warnings as they come, and a true word at Ctrl-C."""
    with (
        when_interrupted(lambda: what_is_left(out)),
        warnings_said(quiet=quiet),
        progress_bar("Morphing", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as making,
    ):
        yield progress, making


def _tell(made: Delivered, out: str, *, as_json: bool, quiet: bool) -> None:
    """What was left out, what was made, and what that means; or that nothing had to be done."""
    if made.was_complete:
        note(f"{out} was complete already; nothing was done", quiet=quiet)
    for bad in made.skipped:
        note(f"skipped: {in_options(bad)}", quiet=quiet)
    manifest = made.delivery.manifest
    facts: dict[str, Any] = {
        "delivery": out,
        "read as": made.source_kind,
        "rows": rows_by_split(made.delivery),
        **views_by_split(made.delivery),
        "labels": made.has_labels,
        **({"labels from": made.labels_from} if made.labels_from else {}),
        "skipped": len(made.skipped),
        **({"skipped samples": [bad.name for bad in made.skipped]} if as_json else {}),
        "dtype": manifest.dtype,
        "sealed": made.delivery.is_sealed,
        **({"clipped": manifest.clipped.fields()} if manifest.clipped else {}),
        "data bytes": manifest.data_bytes,
        "all bytes": sum(facts.bytes for facts in manifest.files.values()),
        "key fingerprint": manifest.key_fingerprint,
    }
    show(facts, as_json=as_json)
    for line in () if made.was_complete else meaning(made):
        say(line, quiet=quiet)
