"""`mole deliver` and `mole morph`: the provider's data, handed over."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.options import (
    IdentityOption,
    JsonOption,
    LayerSignerOption,
    ModeOption,
    PassphraseFileOption,
    QuietOption,
    RecipientOption,
    ResizeOption,
    SignOption,
)
from mole.cli.terminal import (
    CallError,
    in_options,
    progress_bar,
    say,
    secrets_for,
    show,
    signing_key,
    warnings_said,
    when_interrupted,
)
from mole.exchange.layer_files import load_first_layer
from mole.exchange.shards import Dtype
from mole.exchange.signatures import load_signed_layer
from mole.foreign_text import listed
from mole.progress import Progress
from mole.provider import deliver as library
from mole.provider.class_names import handed_over_by, what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.deliver import Delivered, EngineName
from mole.provider.keys import MorphKey
from mole.scheme.augmented import LayerDtype
from mole.scheme.first_layer import FirstLayer
from mole.sources.opening import open_source
from mole.storage.identities import recipient_texts

DataArgument = Annotated[str, typer.Argument(help="Your data: a folder, a file or a URL.")]
LayerOption = Annotated[Path, typer.Option("--layer", help="The developer's first layer.")]
KeyOption = Annotated[Path, typer.Option("--key", help="Your key.")]
OutOption = Annotated[str, typer.Option("--out", "-o", help="Where the result goes: a folder or a URL.")]
DtypeOption = Annotated[Dtype, typer.Option(help="How morphed values are stored.")]
KeepOption = Annotated[list[str] | None, typer.Option(help="A column to hand over as it is. Repeatable.")]
SecondLayerOption = Annotated[
    bool, typer.Option("--allow-second-layer", help="Use the key though it was used for another layer.")
]
SkipBadOption = Annotated[bool, typer.Option(help="Leave out unreadable images instead of stopping.")]

WHAT_IT_MEANS = """
What the receiver can do: train and serve a network on these files, as well as on your images.
What a stranger who gets only the data files sees: noise. With similar images at hand, a stranger can still
guess brightness and coarse layout, unless the core is whitened; with a large kappa it may rebuild images.
What the receiver can also do, by trying: get your images back. The augmented layer makes that possible.
This is obfuscation, not encryption: send these files as carefully as you would send the images."""

SEALED = """
What the receiver can do: open these files with its identity, and train and serve a network on them.
What a stranger sees: names and sizes of files. They are encrypted for the recipients, and for your key.
What the receiver can also do, by trying: get your images back. Sealing cannot prevent that."""

RESUMES = "nothing half-written is left; call again to resume"
SHOWN = 5  # names of classes are listed, and the rest is counted
KEEP_NAMES = "with --no-class-names the names stay here"


def deliver(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "delivery",
    dtype: DtypeOption = "float32",
    layer_dtype: Annotated[LayerDtype, typer.Option(help="How the augmented layer is stored.")] = "float32",
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    class_names: Annotated[
        bool | None,
        typer.Option(
            help="Hand over the names of the classes. Unasked, only where they hardly are people's."
        ),
    ] = None,
    labels: Annotated[
        bool | None,
        typer.Option(help="Hand over labels. Unasked, only where they hardly tell whose images they are."),
    ] = None,
    allow_copying_layer: Annotated[
        bool, typer.Option("--allow-copying-layer", help="Augment a layer even if it copies pixels.")
    ] = False,
    engine: Annotated[
        EngineName, typer.Option(help="What does the work: this machine, or Ray on many.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="With --engine ray: a running cluster, as host:port.")
    ] = None,
    recipient: RecipientOption = None,
    sign: SignOption = None,
    layer_signer: LayerSignerOption = None,
    allow_second_layer: SecondLayerOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph your data and build the augmented layer. Call again to resume interrupted work."""
    if ray_address is not None and engine != "ray":
        raise CallError("--ray-address is for --engine ray: add that, or leave the address out")
    with _morphing(quiet=quiet) as (progress, making):
        secrets, first = secrets_for(key, passphrase_file, identity), _signed_layer(layer, layer_signer)
        if not allow_copying_layer:
            refuse_copying(first, str(layer))
        recipients, source = recipient_texts(recipient or ()), open_source(data)
        leaving = what_leaves(source, class_names=class_names, labels=labels)
        opened, signing = MorphKey.load(key, progress=making, **secrets), signing_key(sign)
        if leaving.kept:
            option = "--" + handed_over_by(class_names).replace("_", "-")
            say(f"mole: {leaving.kept}; {option} hands them over", quiet=quiet)
        elif leaving.labels and leaving.class_names and source.classes:
            names = f"the names of {len(source.classes)} classes leave: {listed(source.classes, SHOWN)}"
            say(f"mole: {names}; {KEEP_NAMES}", quiet=quiet)
        made = library.deliver(
            data if engine == "ray" else source,  # Ray's workers open the data themselves
            first, opened, out, dtype=dtype, layer_dtype=layer_dtype, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, class_names=leaving.class_names,
            labels=leaving.labels, engine=engine, ray_address=ray_address, recipients=recipients,
            sign=signing, allow_second_layer=allow_second_layer,
            allow_copying_layer=allow_copying_layer, progress=progress,
        )  # fmt: skip
    _tell(made, out, as_json=as_json, quiet=quiet)
    for line in (SEALED if made.delivery.is_sealed else WHAT_IT_MEANS).splitlines():
        say(line, quiet=quiet)
    if made.has_labels:
        classes = made.delivery.manifest.classes
        names = f", and the names of {len(classes)} classes: {KEEP_NAMES}" if classes else ""
        say(f"The label of each image leaves with it{names}.", quiet=quiet)


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
    recipient: RecipientOption = None,
    sign: SignOption = None,
    layer_signer: LayerSignerOption = None,
    allow_second_layer: SecondLayerOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph further data with the same key, for predictions: without labels and an augmented layer.

    Call again to resume interrupted work.
    """
    with _morphing(quiet=quiet) as (progress, making):
        secrets, first = secrets_for(key, passphrase_file, identity), _signed_layer(layer, layer_signer)
        recipients = recipient_texts(recipient or ())
        source, opened, signing = (
            open_source(data),
            MorphKey.load(key, progress=making, **secrets),
            signing_key(sign),
        )
        made = library.deliver(
            source, first, opened, out, dtype=dtype, layer_dtype=None, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, labels=False, recipients=recipients, sign=signing,
            allow_second_layer=allow_second_layer,
            progress=progress,
        )  # fmt: skip
    _tell(made, out, as_json=as_json, quiet=quiet)


def _signed_layer(layer: Path, signer: Path | None) -> FirstLayer:
    """The developer's first layer, by the signer that is asked for."""
    return load_first_layer(layer) if signer is None else load_signed_layer(layer, signer)[0]


@contextmanager
def _morphing(*, quiet: bool) -> Iterator[tuple[Progress, Progress]]:
    """While it works: bars for data and core, warnings as they come, and a true word at Ctrl-C."""
    with (
        when_interrupted(RESUMES),
        warnings_said(quiet=quiet),
        progress_bar("Morphing", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as making,
    ):
        yield progress, making


def _tell(made: Delivered, out: str, *, as_json: bool, quiet: bool) -> None:
    """What was left out, and what was made."""
    for bad in made.skipped:
        say(f"mole: skipped: {in_options(bad)}", quiet=quiet)
    manifest = made.delivery.manifest
    facts: dict[str, Any] = {
        "delivery": out,
        "read as": made.source_kind,
        "rows": {name: facts.rows for name, facts in manifest.splits.items()},
        "labels": made.has_labels,
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
