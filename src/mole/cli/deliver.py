"""`mole deliver` and `mole morph`: the provider's data, handed over."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.options import Dtype, EngineName, LayerDtype, ModeOption, ResizeOption, text_of
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.cli.options import JsonOption, QuietOption
from mole.cli.terminal import CallError, in_options, progress_bar, say, show, when_interrupted
from mole.exchange.layer_files import load_first_layer

if TYPE_CHECKING:
    from mole.exchange.manifest import Manifest

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
    """Morph your data and build the augmented layer. Call again to resume interrupted work."""
    if ray_address is not None and engine is not EngineName.RAY:
        raise CallError("--ray-address is for --engine ray: add that, or leave the address out")
    choices = {
        "dtype": dtype.value, "layer_dtype": layer_dtype.value, "mode": text_of(mode),
        "resize": text_of(resize), "keep": tuple(keep or ()), "skip_bad": skip_bad,
        "class_names": class_names,
    }  # fmt: skip
    order = _Order(
        data, layer, key, out, choices, passphrase_file, identity, quiet, as_json, engine, ray_address
    )
    with when_interrupted(GOES_ON):
        facts, manifest = order.carry_out()
    show(facts, as_json=as_json)
    say(WHAT_IT_MEANS, quiet=quiet)
    if facts["labels"]:
        names = (
            f", and the names of {len(manifest.classes)} classes: {KEEP_NAMES}" if manifest.classes else ""
        )
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
    choices = {
        "dtype": dtype.value, "layer_dtype": None, "mode": text_of(mode), "resize": text_of(resize),
        "keep": tuple(keep or ()), "skip_bad": skip_bad, "class_names": False,
    }  # fmt: skip
    order = _Order(data, layer, key, out, choices, passphrase_file, identity, quiet, as_json, labels=False)
    with when_interrupted(GOES_ON):
        facts, _ = order.carry_out()
    show(facts, as_json=as_json)


WHAT_IT_MEANS = """
What the receiver can do: train and serve a network on these files, as well as on your images.
What a stranger who gets only the data files sees: noise. With similar images at hand, a stranger can still
guess brightness and coarse layout, unless the core is whitened; with a large kappa it may rebuild images.
What the receiver can also do, by trying: get your images back. The augmented layer makes that possible.
This is obfuscation, not encryption: send these files as carefully as you would send the images."""

GOES_ON = "nothing half-written is left; call again to go on"
KEEP_NAMES = "with --no-class-names the names stay here"


@dataclass(frozen=True)
class _Order:
    data: str
    layer: Path
    key: Path
    out: str
    choices: dict[str, Any]
    passphrase_file: Path | None
    identity: list[Path] | None
    quiet: bool
    as_json: bool
    engine: EngineName = EngineName.LOCAL
    ray_address: str | None = None
    labels: bool = True

    def carry_out(self) -> "tuple[dict[str, Any], Manifest]":
        """Deliver, write the ledger, and say what was left out."""
        # Imported here, because these load pyarrow and Pillow.
        from mole.provider.deliver import Engine  # noqa: PLC0415
        from mole.provider.deliver import deliver as make_delivery  # noqa: PLC0415
        from mole.provider.ledger import delivery_warnings, record  # noqa: PLC0415
        from mole.provider.local_engine import write_shards  # noqa: PLC0415
        from mole.provider.plan import Options  # noqa: PLC0415
        from mole.sources.opening import open_source  # noqa: PLC0415
        from mole.sources.source import without_labels  # noqa: PLC0415
        from mole.storage.stores import open_store  # noqa: PLC0415

        first = load_first_layer(self.layer)
        if self.engine is EngineName.RAY:
            from mole.provider.ray_engine import RayEngine, check_ray  # noqa: PLC0415

            check_ray(self.ray_address)
        source = open_source(self.data)
        if not self.labels:
            source = without_labels(source)
        key = open_key(self.key, self.passphrase_file, self.identity)
        if source.unread and self.choices["skip_bad"]:
            files = f"{len(source.unread)} image files of a kind that cannot be read"
            say(f"mole: left out: {files}, such as {source.unread[0]}", quiet=self.quiet)
        for warning in delivery_warnings(self.key, key.fingerprint, first.fingerprint):
            say(f"mole: {warning}", quiet=self.quiet)
        options = Options(**self.choices)
        engine: Engine = write_shards
        if self.engine is EngineName.RAY:
            data, out = (_absolute(place) for place in (self.data, self.out))
            engine = RayEngine(data, out, first, key, options, self.ray_address)
        with progress_bar("Morphing", quiet=self.quiet) as progress:
            delivered = make_delivery(
                source, first, key, open_store(self.out), options, engine=engine, progress=progress
            )
        manifest = delivered.manifest
        skipped = [bad.name for bad in delivered.skipped]
        record(self.key, manifest, skipped)
        for bad in delivered.skipped:
            say(f"mole: skipped: {in_options(bad)}", quiet=self.quiet)
        facts = {
            "delivery": self.out,
            "read as": source.kind,
            "rows": {name: facts.rows for name, facts in manifest.splits.items()},
            "labels": any(split.labels is not None for split in source.splits.values()),
            "skipped": len(skipped),
            **({"skipped samples": skipped} if self.as_json else {}),
            "dtype": manifest.dtype,
            "data bytes": manifest.data_bytes,
            "all bytes": sum(facts.bytes for facts in manifest.files.values()),
            "key fingerprint": manifest.key_fingerprint,
        }
        return facts, manifest


def _absolute(place: str) -> str:
    """A path that means the same in every process on this machine; a URL as it is."""
    return place if "://" in place else str(Path(place).absolute())
