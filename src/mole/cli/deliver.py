"""`mole deliver` and `mole morph`: the provider's data, handed over."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.output import JsonOption, QuietOption, progress_bar, say, show
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.errors import ParameterError
from mole.files.layers import load_first_layer

DataArgument = Annotated[str, typer.Argument(help="Your data: a folder, a file or a URL.")]
LayerOption = Annotated[Path, typer.Option("--layer", help="The developer's first layer.")]
KeyOption = Annotated[Path, typer.Option("--key", help="Your key.")]
OutOption = Annotated[str, typer.Option("--out", "-o", help="Where the result goes: a folder or a URL.")]
DtypeOption = Annotated[str, typer.Option(help="How values are stored: float32, float16 or int8.")]
ModeOption = Annotated[str | None, typer.Option(help="Convert images to L or RGB.")]
ResizeOption = Annotated[str | None, typer.Option(help="Bring images to size: crop or stretch.")]
KeepOption = Annotated[list[str] | None, typer.Option(help="A column to hand over as it is. Repeatable.")]
SkipBadOption = Annotated[bool, typer.Option(help="Leave out unreadable images instead of stopping.")]


def deliver(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "delivery",
    dtype: DtypeOption = "float32",
    layer_dtype: Annotated[
        str, typer.Option(help="float32 or float16, for the augmented layer.")
    ] = "float32",
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    class_names: Annotated[bool, typer.Option(help="Hand over the names of the classes.")] = True,
    engine: Annotated[str, typer.Option(help="local, or ray for many machines.")] = "local",
    ray_address: Annotated[str | None, typer.Option(help="A running Ray cluster.")] = None,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph your data and build the augmented layer. Interrupted work goes on with the same command.

    Example: mole deliver photos/ --layer first-layer.safetensors --key provider.key --out delivery
    """
    choices = {
        "dtype": dtype, "layer_dtype": layer_dtype, "mode": mode, "resize": resize,
        "keep": tuple(keep or ()), "skip_bad": skip_bad, "class_names": class_names,
    }  # fmt: skip
    if engine not in ("local", "ray"):
        raise ParameterError(f"engine '{engine}' is unknown: use local or ray")
    order = _Order(
        data, layer, key, out, choices, passphrase_file, identity, quiet, as_json, engine, ray_address
    )
    show(order.carry_out(), as_json=as_json)
    say(WHAT_IT_MEANS, quiet=quiet)


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
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph further data with the same key, for predictions: no augmented layer comes with it.

    Example: mole morph new-photos/ --layer first-layer.safetensors --key provider.key --out requests
    """
    choices = {
        "dtype": dtype, "layer_dtype": None, "mode": mode, "resize": resize,
        "keep": tuple(keep or ()), "skip_bad": skip_bad,
    }  # fmt: skip
    order = _Order(data, layer, key, out, choices, passphrase_file, identity, quiet, as_json)
    show(order.carry_out(), as_json=as_json)


WHAT_IT_MEANS = """
What the receiver can do: train and serve a network on these files, as well as on your images.
What a stranger who gets only the data files sees: noise. With similar images at hand, a stranger can still
guess brightness and coarse layout, unless the core is whitened.
What the receiver can also do, by trying: get your images back. The augmented layer makes that possible.
This is obfuscation, not encryption: send these files as carefully as you would send the images."""


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
    engine: str = "local"
    ray_address: str | None = None

    def carry_out(self) -> dict[str, Any]:
        """Deliver, write the ledger, and say what was left out."""
        # Imported here, because these load pyarrow and Pillow.
        from mole.data.opening import open_source  # noqa: PLC0415
        from mole.delivery.deliver import Engine  # noqa: PLC0415
        from mole.delivery.deliver import deliver as make_delivery  # noqa: PLC0415
        from mole.delivery.ledger import delivery_warnings, record  # noqa: PLC0415
        from mole.delivery.local_engine import write_shards  # noqa: PLC0415
        from mole.delivery.options import Options  # noqa: PLC0415
        from mole.files.store import open_store  # noqa: PLC0415

        first = load_first_layer(self.layer)
        source = open_source(self.data)
        key = open_key(self.key, self.passphrase_file, self.identity)
        if source.unread and self.choices["skip_bad"]:
            files = f"{len(source.unread)} image files of a kind that can not be read"
            say(f"mole: left out: {files}, such as {source.unread[0]}", quiet=self.quiet)
        for warning in delivery_warnings(self.key, key.fingerprint, first.fingerprint):
            say(f"mole: {warning}", quiet=self.quiet)
        options = Options(**self.choices)
        engine: Engine = write_shards
        if self.engine == "ray":
            from mole.delivery.ray_engine import RayEngine  # noqa: PLC0415

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
            say(f"mole: skipped: {bad}", quiet=self.quiet)
        return {
            "delivery": self.out,
            "rows": {name: facts.rows for name, facts in manifest.splits.items()},
            "skipped": len(skipped),
            **({"skipped samples": skipped} if self.as_json else {}),
            "dtype": manifest.dtype,
            "data bytes": manifest.data_bytes,
            "all bytes": sum(facts.bytes for facts in manifest.files.values()),
            "key fingerprint": manifest.key_fingerprint,
        }


def _absolute(place: str) -> str:
    """A path that means the same in every process on this machine; a URL as it is."""
    return place if "://" in place else str(Path(place).absolute())
