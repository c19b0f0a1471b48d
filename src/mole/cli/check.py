"""`mole verify` and `mole recover`: is a delivery right, and what was it made from."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.named_files import check_folder, check_output, secrets_for
from mole.cli.options import (
    DeliveryArgument,
    ForceOption,
    IdentityOption,
    JsonOption,
    KeyOption,
    PassphraseFileOption,
    QuietOption,
)
from mole.cli.terminal import note, progress_bar, show
from mole.cli.wrong_calls import CallError
from mole.errors import DeliveryError
from mole.exchange import verify as exchange
from mole.exchange.manifest import Manifest
from mole.provider import recover as provider
from mole.provider import recovered_files as files
from mole.provider import recovered_forms as forms
from mole.provider.image_names import ImageNames, Originals
from mole.provider.keys import MorphKey
from mole.sources.opening import open_source
from mole.storage.signers import read_signers

RECOVERED = "recovered.npz"
IN_A_WORD = {True: "ok", False: "WRONG", None: "not checked"}


def verify(
    delivery: DeliveryArgument,
    signer: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Public key, or file of allowed signers: one of them must have signed it."
        ),
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
    key: KeyOption,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PLACE",
            help="An .npz or .parquet file, or a folder of PNG files: images/",
        ),
    ] = RECOVERED,
    ids: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write only a Parquet table of which row is which sample, and no images."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Your data, for the names of its samples.")
    ] = None,
    force: ForceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Get the images back from a delivery, in the order of your data: arrays, a table or PNG files.

    With --ids it says instead which row is which of your samples, for predictions that came back.
    """
    if ids is not None and out != RECOVERED:
        raise CallError("--ids writes a table and no images: leave out --out, or call twice")
    form, path = forms.form_of(out), ids or Path(out)
    if ids is None and form == "images":
        forms.check_folder_free(path, force=force)
        check_folder(path)
    else:
        check_output(path, force=force)
    opened = MorphKey.load(key, **secrets_for(key, passphrase_file, identity))
    if ids is not None:
        table = provider.row_table(delivery, opened, data, identity=identity)
        files.save_table(table, path)
        show({"ids": str(path), "rows": table.num_rows, "columns": table.column_names}, as_json=as_json)
        return
    found = provider.opened_for(delivery, opened, identity)
    provider.refuse_protected(found)
    forms.check_form(found, form)
    originals = None if data is None else Originals.of(open_source(data, labels=False), found, opened)
    with (
        progress_bar("Recovering", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as opened.progress,
    ):
        arrays = files.named(provider.recover(found, opened, progress=progress), originals)
    manifest = found.manifest
    if form == "npz":
        files.save_arrays(arrays, path)
        facts: dict[str, Any] = {name: array.shape for name, array in arrays.items()}
    elif form == "parquet":
        table = files.image_table(arrays, list(manifest.splits), manifest.classes)
        files.save_table(table, path)
        facts = {"rows": table.num_rows, "columns": table.column_names}
    else:
        names = ImageNames(list(manifest.splits), arrays, manifest.classes, originals)
        facts = {"PNG files": files.save_images(arrays, names, path, force=force)}
    if manifest.dtype == "int8":
        facts["largest error"] = provider.largest_error(found, opened)
        note(_how_exact(facts["largest error"], manifest), quiet=quiet)
    show({"recovered": str(path), **facts}, as_json=as_json)


def _how_exact(error: float, manifest: Manifest) -> str:
    """What 8 bits did to the values of a delivery."""
    types = {facts.source_dtype for facts in manifest.splits.values()}
    unit = f"grey levels of {255 if types == {'uint8'} else 65535}" if types <= {"uint8", "uint16"} else ""
    cut_off = manifest.clipped.rows if manifest.clipped else 0
    more = f"; {cut_off} rows that 8 bits cut off are further off" if cut_off else ""
    said = f"the delivery has 8 bits: a value may be off by about {error:g} {unit}".rstrip() + more
    return f"{said}; deliver with --dtype float16 where that is too much"
