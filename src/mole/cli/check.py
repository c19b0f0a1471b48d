"""`mole verify` and `mole recover`: is a delivery right, and what was it made from."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mole.cli.output import JsonOption, QuietOption, progress_bar, show
from mole.cli.places import ForceOption, check_output
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.errors import DeliveryError
from mole.files.addresses import reason_of
from mole.files.beside import written_beside

DeliveryArgument = Annotated[str, typer.Argument(help="A delivery: a folder or a URL.")]


def verify(delivery: DeliveryArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Check every byte and row of a delivery, and that its layer fits its data. Needs no key."""
    from mole.delivery.verify import verify as check_delivery  # noqa: PLC0415  (loads pyarrow)
    from mole.files.store import open_store  # noqa: PLC0415

    with progress_bar("Checking", quiet=quiet) as progress:
        checks = check_delivery(open_store(delivery), progress=progress)
    if as_json:
        show({check.what: {"holds": check.holds, "detail": check.detail} for check in checks}, as_json=True)
    else:
        show({c.what: f"{'right' if c.holds else 'WRONG'}: {c.detail}" for c in checks}, as_json=False)
    if not all(check.holds for check in checks):
        raise DeliveryError(f"{delivery} is not as it was made: get it again")


def recover(
    delivery: DeliveryArgument,
    key: Annotated[Path, typer.Option("--key", help="The key that made it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An .npz file to write.")] = Path(
        "recovered.npz"
    ),
    force: ForceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Get the images back from a delivery, in the order of your data: arrays x_<split> and y_<split>."""
    from mole.delivery.recover import recover as recover_arrays  # noqa: PLC0415  (loads pyarrow)
    from mole.files.store import open_store  # noqa: PLC0415

    check_output(out, force=force)
    opened = open_key(key, passphrase_file, identity)
    with progress_bar("Recovering", quiet=quiet) as progress:
        arrays = recover_arrays(open_store(delivery), opened, progress=progress)
    try:
        with written_beside(out) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise DeliveryError(f"{out} can not be written: {reason_of(error)}") from None
    facts = {name: array.shape for name, array in arrays.items()}
    show({"recovered": str(out), **facts}, as_json=as_json)
