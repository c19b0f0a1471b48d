"""What every image has given away so far: bits, added up over all protected deliveries under a key.

The budget is kept with it, so that a later delivery that does not name one keeps to it, too.

An image is known by a digest that only the holder of the key can compute. Like the ledger it is kept twice,
beside the key and in the user's folder; what either of the two tells counts. It is written before the first
row leaves: work that was begun counts as done.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mole.errors import DeliveryError
from mole.provider.ledger import Ledger
from mole.provider.private_tables import looked_into, opened
from mole.quantities import counted

SUFFIX = ".spent"
HAS_INDEX = "SELECT 1 FROM sqlite_master WHERE name = 'spent_by_image'"
COUNT = """
INSERT INTO spent VALUES (?, ?, ?)
    ON CONFLICT (delivery, image) DO UPDATE SET bits = max(bits, excluded.bits)
"""
REQUEST = "request-"  # begins the name under which a request is counted
MARGIN = 1e-9  # of the budget: what adding up rounds
TABLES = """
CREATE TABLE IF NOT EXISTS spent
    (delivery TEXT, image TEXT, bits REAL, PRIMARY KEY (delivery, image)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS spent_by_image ON spent (image);
CREATE TABLE IF NOT EXISTS drafts (draft TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS budget (key TEXT PRIMARY KEY, bits REAL) WITHOUT ROWID;
"""


class GivenAway(NamedTuple):
    """The most bits that an image has given away, and in how many deliveries and requests at most."""

    bits: float
    deliveries: int
    requests: int


class Limit(NamedTuple):
    """Bits that no image may exceed, None for no limit; and whether that is kept already."""

    bits: float | None
    is_kept: bool


@dataclass(frozen=True)
class Spending:
    """What the images of one key have given away.

    Attributes:
        paths: its files: SQLite's, for the owner alone.
        key: the key's fingerprint; another key may have had the same file beside it.
        to_look: whether they are only looked at, as where nothing can be written.
    """

    paths: tuple[Path, ...]
    key: str = ""
    to_look: bool = False

    @classmethod
    def beside(cls, ledger: Ledger) -> "Spending":
        """That of the key of a ledger.

        Raises:
            DeliveryError: if there is no place for it.
        """
        return cls(ledger.beside(SUFFIX, "a protected delivery is counted"), ledger.fingerprint)

    @classmethod
    def kept(cls, ledger: Ledger) -> "Spending":
        """That of the key of a ledger, as far as it is there, to look at; nothing is made for it."""
        paths = [path.with_suffix(SUFFIX) for path in ledger.paths()]
        return cls(tuple(path for path in paths if path.exists()), ledger.fingerprint, to_look=True)

    def draft(self, draft: str) -> str | None:
        """The name that a delivery was begun under, if it was."""
        with self._files() as files:
            return _name_of(files, draft)

    def rename(self, before: str, draft: str) -> None:
        """Know a delivery by another text from now on, if it is known by this one."""
        with self._files() as files:
            for found in files:
                found.execute("UPDATE OR IGNORE drafts SET draft = ? WHERE draft = ?", (draft, before))
                found.execute("DELETE FROM drafts WHERE draft = ?", (before,))

    def begin(self, draft: str, name: str, *, instead_of: str | None = None) -> str:
        """Keep the name of a delivery, so that it can be resumed; the one that is kept from now on.

        Whoever was quicker to put another one in the place of the same one has named it.
        """
        with self._files(alone=True) as files:
            kept = _name_of(files, draft)
            if kept not in (None, instead_of):
                return kept
            for found in files:
                found.execute("INSERT OR REPLACE INTO drafts VALUES (?, ?)", (draft, name))
        return name

    def totals(self) -> dict[str, float]:
        """Bits that each image has given away, by its digest."""
        with self._files() as files:
            return _totals(files)

    def budget(self) -> float | None:
        """Bits that any one image may give away under the key, as it was last set; None for no limit."""
        with self._files() as files:
            return self._kept(files)

    def set_budget(self, bits: float) -> None:
        """Set the budget of the key, higher or lower than it was."""
        with self._files(alone=True) as files:
            self._keep(files, bits)

    def most_after(self, delivery: str, images: Mapping[str, float], budget: float | None = None) -> float:
        """The most that any image of a delivery will have given away with it, counted once.

        Args:
            delivery: its id.
            images: bits that each of its images gives away, by digest.
            budget: bits that no image may exceed; None for what is kept, if anything.

        Raises:
            DeliveryError: if some would, or if the budget is above the one that is kept.
        """
        with self._files() as files:
            return _most_after(files, delivery, images, self._limit(files, budget))

    def spend(
        self, delivery: str, images: Mapping[str, float], budget: float | None = None, *, keep: bool = True
    ) -> float:
        """Count a delivery, once; the most that any of its images has given away with it.

        Nobody else counts between a look at what was given away and this: two deliveries that are made at
        once do not exceed a budget together.

        Args:
            delivery: its id.
            images: bits that each of its images gives away, by digest.
            budget: as in `most_after`.
            keep: hold what comes later to this budget, too, unless a lower one is kept already.

        Raises:
            DeliveryError: as `most_after`; nothing is counted then.
        """
        with self._files(alone=True) as files:
            limit = self._limit(files, budget)
            most = _most_after(files, delivery, images, limit)
            rows = [(delivery, image, bits) for image, bits in images.items()]
            for found in files:
                found.executemany(COUNT, rows)
            if keep and budget is not None and not limit.is_kept:
                self._keep(files, budget)
        return most

    def given_away(self, delivery: str) -> "GivenAway | None":
        """What the images of a delivery have given away in all; None where it was not counted here."""
        with self._files() as files:
            images = _bits_of(files, delivery)
            if not images:
                return None
            totals, names = _totals(files, images), _names(files)
        requests = sum(name.startswith(REQUEST) for name in names)
        return GivenAway(max(totals.values()), len(names) - requests, requests)

    def deliveries(self) -> set[str]:
        """The ids of all deliveries that were counted, finished or not."""
        with self._files() as files:
            return {name for name in _names(files) if not name.startswith(REQUEST)}

    def has(self, delivery: str) -> bool:
        """Whether a delivery was counted."""
        with self._files() as files:
            return bool(_bits_of(files, delivery))

    def forget(self, delivery: str) -> None:
        """Take back a delivery of which nothing was made."""
        with self._files() as files:
            for found in files:
                found.execute("DELETE FROM spent WHERE delivery = ?", (delivery,))

    def _kept(self, files: Iterable[sqlite3.Connection]) -> float | None:
        """The budget; of two files the lower one counts."""
        asked = "SELECT bits FROM budget WHERE key = ?"
        return min((bits for one in files for (bits,) in one.execute(asked, (self.key,))), default=None)

    def _keep(self, files: Iterable[sqlite3.Connection], bits: float) -> None:
        for found in files:
            found.execute("INSERT OR REPLACE INTO budget VALUES (?, ?)", (self.key, bits))

    def _limit(self, files: Sequence[sqlite3.Connection], budget: float | None) -> Limit:
        """What holds: the budget that is given, or else the one that is kept."""
        kept = self._kept(files)
        if budget is not None and kept is not None and budget > kept:
            raise DeliveryError(
                f"this key has a budget of {kept:.4g} bits for each image, and {budget:.4g} were asked "
                "for: leave the budget out, or set a higher one with 'mole ledger' first"
            )
        return Limit(kept if budget is None else budget, is_kept=budget is None or budget == kept)

    @contextmanager
    def _files(self, *, alone: bool = False) -> Iterator[list[sqlite3.Connection]]:
        """All its files, the user's first, so that two who want them alone never wait for each other."""
        with ExitStack() as stack:
            way = looked_into if self.to_look else opened
            files = [stack.enter_context(way(path, TABLES)) for path in self.paths]
            for found in files if alone else ():
                found.execute("BEGIN IMMEDIATE")
            yield files


def _names(files: Iterable[sqlite3.Connection]) -> set[str]:
    """Of everything that was counted: deliveries and requests."""
    return {name for found in files for (name,) in found.execute("SELECT DISTINCT delivery FROM spent")}


def _name_of(files: Iterable[sqlite3.Connection], draft: str) -> str | None:
    for found in files:
        row = found.execute("SELECT name FROM drafts WHERE draft = ?", (draft,)).fetchone()
        if row is not None:
            return str(row[0])
    return None


def _totals(files: Iterable[sqlite3.Connection], images: Collection[str] | None = None) -> dict[str, float]:
    """Bits of some images, or of all."""
    rows: dict[tuple[str, str], float] = {}
    for found in files:
        for delivery, image, bits in _spent(found, images):
            rows[delivery, image] = max(bits, rows.get((delivery, image), 0.0))
    totals: dict[str, float] = {}
    for (_, image), bits in rows.items():
        totals[image] = totals.get(image, 0.0) + bits
    return totals


def _spent(found: sqlite3.Connection, images: Collection[str] | None) -> Iterator[tuple[str, str, float]]:
    """What is counted for some images, or for all; a file of an earlier version is read whole."""
    if images is None or not found.execute(HAS_INDEX).fetchone():
        for row in found.execute("SELECT delivery, image, bits FROM spent"):
            if images is None or row[1] in images:
                yield row
        return
    asked = "SELECT delivery, image, bits FROM spent WHERE image = ?"
    for image in images:
        yield from found.execute(asked, (image,))


def _bits_of(files: Iterable[sqlite3.Connection], delivery: str) -> dict[str, float]:
    """Bits that are counted for each image of one delivery."""
    images: dict[str, float] = {}
    for found in files:
        for image, bits in found.execute("SELECT image, bits FROM spent WHERE delivery = ?", (delivery,)):
            images[image] = max(bits, images.get(image, 0.0))
    return images


def _most_after(
    files: Sequence[sqlite3.Connection],
    delivery: str,
    images: Mapping[str, float],
    limit: Limit,
) -> float:
    before, counted_for_it = _totals(files, images), _bits_of(files, delivery)
    after = [
        before.get(image, 0.0) + max(0.0, bits - counted_for_it.get(image, 0.0))
        for image, bits in images.items()
    ]
    most = max(after, default=0.0)
    if limit.bits is not None and most > limit.bits * (1 + MARGIN):
        over = sum(total > limit.bits * (1 + MARGIN) for total in after)
        raise DeliveryError(
            f"{counted(over, 'image')} would have given away up to {most:.4g} bits in all deliveries "
            f"under this key, and the budget is {limit.bits:.4g}: deliver with fewer bits, leave them out, "
            + ("or set a higher budget with 'mole ledger'" if limit.is_kept else "or give a higher budget")
        )
    return most
