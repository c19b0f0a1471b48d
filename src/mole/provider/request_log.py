"""Every request that left under a key: when, to whom, how many rows, and whether it was answered.

Like the ledger it is kept twice, beside the key and in the user's folder; what either of the two tells
counts. A request is written down before it leaves. One that is sent again, because the answer did not come,
is the same request: the same id, and the same bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from mole.provider.ledger import Ledger
from mole.provider.private_tables import looked_into, opened

SUFFIX = ".requests"
TABLES = """
CREATE TABLE IF NOT EXISTS requests
    (id TEXT PRIMARY KEY, date TEXT, server TEXT, model TEXT, rows INTEGER, bits REAL, answered INTEGER)
    WITHOUT ROWID;
"""


@dataclass(frozen=True)
class LoggedRequest:
    """One request.

    Attributes:
        id: its name, which the server sees.
        date: when it left, in UTC.
        server, model: to whom.
        rows: how many samples.
        bits: what each row tells at most, if it is protected; None for images.
        answered: whether the answer came.
    """

    id: str
    date: str
    server: str
    model: str
    rows: int
    bits: float | None = None
    answered: bool = False


@dataclass(frozen=True)
class RequestLog:
    """The requests under one key.

    Attributes:
        paths: its files: SQLite's, for the owner alone.
    """

    paths: tuple[Path, ...]

    @classmethod
    def beside(cls, ledger: Ledger) -> "RequestLog":
        """That of the key of a ledger.

        Raises:
            DeliveryError: if there is no place for it.
        """
        return cls(ledger.beside(SUFFIX, "requests are written down"))

    @classmethod
    def kept(cls, ledger: Ledger) -> "RequestLog":
        """That of the key of a ledger, as far as it is there, to look at; nothing is made for it."""
        return cls(tuple(path.with_suffix(SUFFIX) for path in ledger.paths()))

    def begin(self, requests: Sequence[LoggedRequest]) -> None:
        """Write down requests that are about to leave."""
        for path in self.paths:
            with opened(path, TABLES) as found:
                found.executemany(
                    "INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", map(astuple, requests)
                )

    def answered(self, ids: Iterable[str]) -> None:
        """Write down that answers came."""
        every = [(name,) for name in ids]
        for path in self.paths:
            with opened(path, TABLES) as found:
                found.executemany("UPDATE requests SET answered = 1 WHERE id = ?", every)

    def entries(self) -> list[LoggedRequest]:
        """Every request under this key, each once, oldest first."""
        ours: dict[str, LoggedRequest] = {}
        for path in self.paths:
            if not path.exists():
                continue
            with looked_into(path, TABLES) as found:
                for row in found.execute("SELECT * FROM requests"):
                    entry = _entry(*row)
                    if entry.id not in ours or entry.answered:
                        ours[entry.id] = entry
        return sorted(ours.values(), key=lambda entry: entry.date)


def _entry(  # noqa: PLR0917  (the columns of the table)
    id: str, date: str, server: str, model: str, rows: int, bits: float | None, answered: int
) -> LoggedRequest:
    return LoggedRequest(id, date, server, model, rows, bits, bool(answered))


def now() -> str:
    """The time, in UTC, as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")
