"""`mole deliver` and `mole morph`: the provider's data, handed over."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.choices import Dtype, EngineName, LayerDtype, ModeOption, ResizeOption, text_of
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.cli.terminal import (
    CallError,
    JsonOption,
    QuietOption,
    in_options,
    progress_bar,
    say,
    show,
    when_interrupted,
)
from mole.errors import MoleWarning
from mole.exchange.layer_files import load_first_layer
from mole.provider.keys import MorphKey

if TYPE_CHECKING:
    from mole.provider.deliver import Delivered

DataArgument = Annotated[str, typer.Argument(help="Your data: a folder, a file or a URL.")]
LayerOption = Annotated[Path, typer.Option("--layer", help="The developer's first layer.")]
KeyOption = Annotated[Path, typer.Option("--key", help="Your key.")]
OutOption = Annotated[str, typer.Option("--out", "-o", help="Where the result goes: a folder or a URL.")]
DtypeOption = Annotated[Dtype, typer.Option(help="How morphed values are stored.")]
KeepOption = Annotated[list[str] | None, typer.Option(help="A column to hand over as it is. Repeatable.")]
SkipBadOption = Annotated[bool, typer.Option(help="Leave out unreadable images instead of stopping.")]


def deliver(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "delivery",
    dtype: DtypeOption = Dtype.FLOAT32,
    layer_dtype: Annotated[
        LayerDtype, typer.Option(help="How the augmented layer is stored.")
    ] = LayerDtype.FLOAT32,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    class_names: Annotated[bool, typer.Option(help="Hand over the names of the classes.")] = True,
    engine: Annotated[
        EngineName, typer.Option(help="What does the work: this machine, or Ray on many.")
    ] = EngineName.LOCAL,
    ray_address: Annotated[
        str | None, typer.Option(help="With --engine ray: a running cluster, as host:port.")
    ] = None,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph your data and build the augmented layer. Interrupted work goes on with the same command."""
    if ray_address is not None and engine is not EngineName.RAY:
        raise CallError("--ray-address is for --engine ray: add that, or leave the address out")
    made = _deliver(
        data, layer, lambda: open_key(key, passphrase_file, identity), out, quiet,
        dtype=dtype.value, layer_dtype=layer_dtype.value, mode=text_of(mode), resize=text_of(resize),
        keep=keep or (), skip_bad=skip_bad, class_names=class_names,
        engine=engine.value, ray_address=ray_address,
    )  # fmt: skip
    show(_facts(made, out, as_json), as_json=as_json)
    say(WHAT_IT_MEANS, quiet=quiet)
    if made.has_labels:
        classes = made.delivery.manifest.classes
        names = f", and the names of {len(classes)} classes: {KEEP_NAMES}" if classes else ""
        say(f"The label of each image leaves with it{names}.", quiet=quiet)


def morph(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "requests",
    dtype: DtypeOption = Dtype.FLOAT32,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph further data with the same key, for predictions: without labels and an augmented layer.

    Interrupted work goes on with the same command.
    """
    made = _deliver(
        data, layer, lambda: open_key(key, passphrase_file, identity), out, quiet,
        dtype=dtype.value, layer_dtype=None, mode=text_of(mode), resize=text_of(resize),
        keep=keep or (), skip_bad=skip_bad, labels=False,
    )  # fmt: skip
    show(_facts(made, out, as_json), as_json=as_json)


WHAT_IT_MEANS = """
What the receiver can do: train and serve a network on these files, as well as on your images.
What a stranger who gets only the data files sees: noise. With similar images at hand, a stranger can still
guess brightness and coarse layout, unless the core is whitened; with a large kappa it may rebuild images.
What the receiver can also do, by trying: get your images back. The augmented layer makes that possible.
This is obfuscation, not encryption: send these files as carefully as you would send the images."""

GOES_ON = "nothing half-written is left; call again to go on"
KEEP_NAMES = "with --no-class-names the names stay here"


def _deliver(
    data: str, layer: Path, open_: Callable[[], MorphKey], out: str, quiet: bool, **choices: Any
) -> "Delivered":
    """Deliver, and say what was left out."""
    # Imported here, because it loads pyarrow and Pillow.
    from mole.provider.deliver import deliver as make_delivery  # noqa: PLC0415

    with when_interrupted(GOES_ON), warnings_said(quiet=quiet):
        first = load_first_layer(layer)
        key = open_()
        with progress_bar("Morphing", quiet=quiet) as progress:
            made = make_delivery(data, first, key, out, progress=progress, **choices)
    for bad in made.skipped:
        say(f"mole: skipped: {in_options(bad)}", quiet=quiet)
    return made


def _facts(made: "Delivered", out: str, as_json: bool) -> dict[str, Any]:
    manifest = made.delivery.manifest
    return {
        "delivery": out,
        "read as": made.source_kind,
        "rows": {name: facts.rows for name, facts in manifest.splits.items()},
        "labels": made.has_labels,
        "skipped": len(made.skipped),
        **({"skipped samples": [bad.name for bad in made.skipped]} if as_json else {}),
        "dtype": manifest.dtype,
        "data bytes": manifest.data_bytes,
        "all bytes": sum(facts.bytes for facts in manifest.files.values()),
        "key fingerprint": manifest.key_fingerprint,
    }


@contextmanager
def warnings_said(*, quiet: bool) -> Iterator[None]:
    """Say warnings of ours as remarks, as they come."""
    others = warnings.showwarning

    def show_warning(message: Warning | str, category: type[Warning], *about: Any, **more: Any) -> None:
        if issubclass(category, MoleWarning):
            say(f"mole: {message}", quiet=quiet)
        else:
            others(message, category, *about, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", MoleWarning)
        warnings.showwarning = show_warning
        yield
