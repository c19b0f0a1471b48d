"""`mole verify` and `mole recover`: is a delivery right, and what was it made from."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.options import (
    DeliveryArgument,
    ForceOption,
    IdentityOption,
    JsonOption,
    PassphraseFileOption,
    QuietOption,
)
from mole.cli.terminal import CallError, check_output, progress_bar, secrets_for, show
from mole.errors import DeliveryError
from mole.exchange import verify as exchange
from mole.provider import recover as provider
from mole.provider.keys import MorphKey
from mole.storage.signers import read_signers

IN_A_WORD = {True: "right", False: "WRONG", None: "not checked"}


def verify(
    delivery: DeliveryArgument,
    signer: Annotated[
        Path | None,
        typer.Option(help="Public key, or file of allowed signers: one of them must have signed it."),
    ] = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check every byte and row of a delivery, and that its layer fits its data. Needs no key."""
    if signer is not None:
        read_signers(signer)
    with progress_bar("Checking", quiet=quiet) as progress:
        checks = exchange.verify(delivery, identity=identity, signer=signer, progress=progress)
    if as_json:
        show({check.what: {"holds": check.holds, "detail": check.detail} for check in checks}, as_json=True)
    else:
        show({c.what: f"{IN_A_WORD[c.holds]}: {c.detail}" for c in checks}, as_json=False)
    wrong = [check.what for check in checks if check.holds is False]
    if wrong == ["signature"]:
        raise DeliveryError(f"{delivery} is not proven to be its sender's: ask for it again")
    if wrong:
        raise DeliveryError(f"{delivery} is not as it was made: get it again")


def recover(
    delivery: DeliveryArgument,
    key: Annotated[Path, typer.Option("--key", help="The key that made it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An .npz file to write.")] = Path(
        "recovered.npz"
    ),
    ids: Annotated[
        Path | None,
        typer.Option(help="Write only a Parquet table of which row is which sample, and no images."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="With --ids: your data, whose names of samples the table shall have.")
    ] = None,
    force: ForceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Get the images back from a delivery, in the order of your data: arrays x_<split> and y_<split>.

    With --ids it tells instead which row is which of your samples, for predictions that came back.
    """
    if data is not None and ids is None:
        raise CallError("--data names samples in the table that --ids writes: add --ids")
    out = ids or out
    check_output(out, force=force)
    opened = MorphKey.load(key, **secrets_for(key, passphrase_file, identity))
    if ids is not None:
        table = provider.row_table(delivery, opened, data, identity=identity)
        provider.save_table(table, out)
        show({"ids": str(out), "rows": table.num_rows, "columns": table.column_names}, as_json=as_json)
        return
    with (
        progress_bar("Recovering", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as opened.progress,
    ):
        arrays = provider.recover(delivery, opened, identity=identity, progress=progress)
    provider.save_arrays(arrays, out)
    facts = {name: array.shape for name, array in arrays.items()}
    show({"recovered": str(out), **facts}, as_json=as_json)
