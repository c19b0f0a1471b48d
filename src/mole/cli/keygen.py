"""`mole keygen`: a key for a developer's first layer."""

import getpass
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mole.cli.output import JsonOption, QuietOption, progress_bar, say, show
from mole.cli.secrets import PassphraseFileOption, read_passphrase_file
from mole.errors import KeyFileError, ParameterError
from mole.files.layers import load_first_layer
from mole.geometry import Array
from mole.keys import MorphKey
from mole.layer import FirstLayer

SAMPLE = 20_000


def keygen(
    layer: Annotated[Path, typer.Argument(help="The developer's first layer.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the key goes.")] = Path("provider.key"),
    kappa: Annotated[int, typer.Option(help="How many times the core stands on the diagonal.")] = 1,
    core: Annotated[
        str | None,
        typer.Option(help="orthogonal, whitened or gaussian; whitened is the default with --data."),
    ] = None,
    data: Annotated[str | None, typer.Option(help="Data that a whitened core learns from.")] = None,
    mode: Annotated[str | None, typer.Option(help="Convert images to L or RGB.")] = None,
    resize: Annotated[str | None, typer.Option(help="Bring images to size: crop or stretch.")] = None,
    passphrase_file: PassphraseFileOption = None,
    recipient: Annotated[
        list[str] | None, typer.Option(help="Encrypt for this age recipient instead. Repeatable.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a key. It stays with you: who has it can undo the morphing.

    Example: mole keygen first-layer.safetensors --data photos/ --out provider.key
    """
    from mole.delivery.ledger import keygen_warnings  # noqa: PLC0415  (loads what most calls do not need)

    first = load_first_layer(layer)
    if out.exists():
        raise KeyFileError(f"{out} exists already, and a key is never overwritten: choose another name")
    warnings = keygen_warnings(out, first.fingerprint)
    core = core or ("orthogonal" if data is None else "whitened")
    if core == "whitened" and data is None:
        raise ParameterError("core 'whitened' learns from data: add --data")
    if core != "whitened" and data is not None:
        raise ParameterError(f"core '{core}' learns nothing from data: leave out --data")
    passphrase = None if recipient else _new_passphrase(out, passphrase_file)
    sample = None if data is None else _sample(data, first, mode, resize, quiet=quiet)
    key = MorphKey.generate(first.input_shape, kappa=kappa, core=core, sample=sample)
    key.save(out, passphrase, recipients=recipient or ())
    for warning in warnings:
        say(f"mole: {warning}", quiet=quiet)
    say(f"{out} is your key: keep it safe, and keep it to yourself.", quiet=quiet)
    if core == "whitened":
        say(f"{out}.whitening belongs to it: keep that too.", quiet=quiet)
    facts = {"key": str(out), "fingerprint": key.fingerprint, "core": key.core, "kappa": key.kappa}
    show(facts, as_json=as_json)


def _new_passphrase(out: Path, file: Path | None) -> str:
    if file is not None:
        return read_passphrase_file(file)
    if not sys.stdin.isatty():
        raise KeyFileError(f"{out} needs a passphrase: give --passphrase-file or --recipient")
    passphrase = getpass.getpass(f"Passphrase for {out}: ")
    if not passphrase or passphrase != getpass.getpass("Once more: "):
        raise KeyFileError("the passphrase is empty, or the two differ: try again")
    return passphrase


def _sample(data: str, layer: FirstLayer, mode: str | None, resize: str | None, *, quiet: bool) -> Array:
    """Plain data for whitening: up to SAMPLE images, spread evenly over the main split."""
    from mole.data.opening import open_source  # noqa: PLC0415  (loads pyarrow)
    from mole.data.preparation import Preparation  # noqa: PLC0415
    from mole.data.source import main_split  # noqa: PLC0415

    split = main_split(open_source(data))
    preparation = Preparation.for_layer(layer, mode=mode, resize=resize)
    indices = np.linspace(0, len(split) - 1, min(SAMPLE, len(split))).astype(int).tolist()
    parts = []
    with progress_bar("Reading", quiet=quiet) as progress:
        for done, index in enumerate(indices):
            shaped = preparation.shape(split.read(index))
            parts.append(preparation.plain(shaped[np.newaxis]))
            if done % 256 == 0:
                progress(done, len(indices))
    return np.concatenate(parts)
