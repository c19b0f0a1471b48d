"""`mole ledger`: what was delivered under a key."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.named_files import secrets_for
from mole.cli.options import IdentityOption, JsonOption, PassphraseFileOption, QuietOption
from mole.cli.terminal import show, warn
from mole.cli.wrong_calls import CallError
from mole.errors import KeyFileError
from mole.exchange.protection_words import counted_bits
from mole.provider.keys import MorphKey
from mole.provider.ledger import FINGERPRINT, SUFFIX, Entry, Ledger
from mole.provider.request_log import LoggedRequest, RequestLog
from mole.provider.spending import Spending
from mole.quantities import joined


def ledger(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="Your key, or its fingerprint, which needs no passphrase (for scripts).",
        ),
    ],
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    set_budget: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Set how many bits any one image may give away in protected deliveries."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List what was delivered under a key, from the ledger beside it and the one in your own folder.

    With a fingerprint no key is opened, and only the ledger in your own folder is read.
    """
    found = _ledger(key, passphrase_file, identity)
    if set_budget is not None:
        if found.key_path is None:
            raise CallError("--set-budget needs the key's file, beside which the budget is kept: give that")
        if not 0 < set_budget < math.inf:
            raise CallError(f"--set-budget takes a positive number of bits, such as 4, not {set_budget:g}")
        Spending.beside(found).set_budget(set_budget)
    entries, deliveries = found.entries(), found.deliveries()
    requests = RequestLog.kept(found).entries()
    layers = list(dict.fromkeys(entry.layer_fingerprint for entry in entries))
    if replaced := found.replaced_key():
        warn(f"the ledger beside {key} saw another key last, with the fingerprint {replaced}", quiet=quiet)
    if found.key_path is None and not any(path.exists() for path in found.paths()):
        warn(f"there is no ledger of {key} on this machine: is the fingerprint right?", quiet=quiet)
    facts: dict[str, Any] = {
        "key fingerprint": found.fingerprint,
        "deliveries": len(deliveries),
        "rows": sum(entry.rows for entry in deliveries),
        **({"copies": len(entries) - len(deliveries)} if len(entries) > len(deliveries) else {}),
        "first layers": layers,
        **_spent(Spending.kept(found), found.delivery_ids(), entries, requests),
        **_asked(requests),
    }
    if as_json:
        each = {"entries": [*map(asdict, entries)], "requests by id": [*map(asdict, requests)]}
        show({**facts, **each}, as_json=True)
        return
    show({**facts, "first layers": len(layers)}, as_json=False)
    for entry in entries:
        is_copy = entry not in deliveries
        typer.echo(_line(entry, layers.index(entry.layer_fingerprint) + 1, is_copy=is_copy))


def _ledger(key: str, passphrase_file: Path | None, identity: list[Path] | None) -> Ledger:
    """The ledger of a key that is given by its file, or by its fingerprint where no file is called that."""
    path = Path(key)
    if FINGERPRINT.fullmatch(key) and not path.exists():
        return Ledger(key)
    if not path.exists():
        raise KeyFileError(f"{key} does not exist: give a key's file, or the 32 digits of its fingerprint")
    if key.endswith(SUFFIX):
        raise KeyFileError(f"{key} is the ledger itself: give the key's file, {key.removesuffix(SUFFIX)}")
    opened = MorphKey.load(path, **secrets_for(path, passphrase_file, identity))
    return Ledger(opened.fingerprint, opened.path)


def _asked(requests: Sequence[LoggedRequest]) -> dict[str, Any]:
    """What was asked of servers; nothing where that never happened."""
    if not requests:
        return {}
    return {
        "requests": len(requests),
        "rows in requests": sum(request.rows for request in requests),
        "requests without an answer": sum(not request.answered for request in requests),
        "last request": requests[-1].date,
    }


def _spent(
    spending: Spending, recorded: set[str], entries: Sequence[Entry], requests: Sequence[LoggedRequest]
) -> dict[str, Any]:
    """The most that any image has given away, where deliveries were protected, and the budget."""
    budget = spending.budget()
    limit = {} if budget is None else {"budget in bits": budget}
    begun = spending.deliveries() - recorded
    told = {"unfinished deliveries": len(begun)} if begun else {}
    bits = [entry.bits for entry in entries] + [one.bits for one in requests]
    if not begun and all(one is None for one in bits):
        return limit
    return told | {"bits given away": round(max(spending.totals().values(), default=0.0), 6), **limit}


def _line(entry: Entry, layer: int, *, is_copy: bool) -> str:
    """One delivery in words, in one of the places where it was written."""
    skipped = f", {len(entry.skipped)} left out" if entry.skipped else ""
    bits = "" if entry.bits is None else f" of at most {counted_bits(entry.bits)} each"
    what = f"{entry.rows} rows{bits} for first layer {layer} ({entry.layer_fingerprint}){skipped}"
    again = ", a copy" if is_copy else ""
    place = "" if entry.place is None else f" in {entry.place}"
    return f"{entry.date}  {what}, delivery {entry.delivery_id}{again}{place}{_sealing(entry)}"


def _sealing(entry: Entry) -> str:
    """For whom a delivery is sealed; nothing where that is not known."""
    if entry.sealed_for is None:
        return ""
    return f", sealed for {joined([*entry.sealed_for])}" if entry.sealed_for else ", not sealed"
