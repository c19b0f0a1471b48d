"""What `mole deliver` and `mole morph` have in common: options, a word at Ctrl-C, and what they print."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.fit_to_print import in_options
from mole.cli.meaning import meaning
from mole.cli.named_files import secrets_for
from mole.cli.options import choices
from mole.cli.terminal import note, progress_bar, say, show, warnings_said, when_interrupted
from mole.exchange.layer_files import load_first_layer
from mole.exchange.protection_words import protection_facts
from mole.exchange.shards import DTYPES, Dtype
from mole.exchange.signatures import load_signed_layer
from mole.exchange.split_roles import rows_by_split, views_by_split
from mole.foreign_text import listed
from mole.progress import Progress
from mole.provider.class_names import Leaving, handed_over_by
from mole.provider.deliver import Delivered
from mole.provider.keys import MorphKey
from mole.provider.place import what_is_left
from mole.quantities import counted
from mole.scheme.first_layer import FirstLayer
from mole.sources.source import Source

OutOption = Annotated[
    str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the result goes: a folder or a URL.")
]
DtypeOption = Annotated[
    Dtype,
    typer.Option(
        metavar=choices(DTYPES),
        help="How morphed values are stored. int8 takes a quarter of the space and is the least exact; "
        "float16 lies between: half the space, and much more exact than int8.",
    ),
]
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


def signed_layer(layer: Path, signer: Path | None) -> FirstLayer:
    """The developer's first layer, by the signer that is asked for."""
    return load_first_layer(layer) if signer is None else load_signed_layer(layer, signer)[0]


def opener(
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


def about_names(source: Source, leaving: Leaving, class_names: bool | None) -> str | None:
    """Which names of classes leave, or that they stay, and how to have it otherwise."""
    if leaving.kept:
        option = HANDS_OVER[handed_over_by(class_names)]
        return f"{leaving.kept}; {option} hands them over"
    if not (leaving.labels and leaving.class_names and source.classes):
        return None
    names = f"the names of {counted(len(source.classes), 'class', 'classes')}"
    return f"{names} leave: {listed(source.classes, SHOWN)}; with --no-class-names they stay here"


@contextmanager
def morphing(out: str, *, replacing: bool, quiet: bool) -> Iterator[tuple[Progress, Progress]]:
    """While it works: bars for data and core, warnings as they come, and a true word at Ctrl-C."""
    with (
        when_interrupted(lambda: what_is_left(out, replacing=replacing)),
        warnings_said(quiet=quiet),
        progress_bar("Morphing", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as making,
    ):
        yield progress, making


def tell(made: Delivered, out: str, *, as_json: bool, quiet: bool) -> None:
    """What was left out, what was made, and what that means; or that nothing had to be done."""
    if made.was_complete:
        note(f"{out} was complete already; nothing was done (mole verify checks its files)", quiet=quiet)
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
        **protection_facts(manifest.protection),
        **({} if made.spent is None else {"bits given away so far": round(made.spent, 6)}),
        "data bytes": manifest.data_bytes,
        "all bytes": sum(facts.bytes for facts in manifest.files.values()),
        "key fingerprint": manifest.key_fingerprint,
    }
    show(facts, as_json=as_json)
    for line in () if made.was_complete else meaning(made):
        say(line, quiet=quiet)
