"""What is finished is kept in a folder, piece by piece: interrupted work goes on where it stopped.

A piece is known by its facts: everything that its result depends on. Facts that differ, in the images or a
number of epochs, make another piece, so nothing has to be cleared away between two runs.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mole.errors import FileError
from mole.progress import Progress, no_progress
from mole.storage.atomic import new_file, private_folder, reason_of

try:
    import fcntl
except ImportError:  # Windows: two that do the same piece at once both do it
    fcntl = None  # type: ignore[assignment]

FOUND = "found"


@dataclass(frozen=True)
class PieceStore:
    """A folder of finished pieces.

    Attributes:
        folder: where; it is made with the first piece if it is not there.
        progress: told how far the work at hand is.
    """

    folder: Path
    progress: Progress = no_progress

    def make_folder(self) -> None:
        """Make the folder, if it is not there.

        Raises:
            FileError: if it cannot be made.
        """
        try:
            private_folder(self.folder) if not self.folder.is_dir() else None
        except OSError as error:
            raise FileError(f"{self.folder} cannot be made: {reason_of(error)}") from None

    def piece(self, facts: object, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was found out by some facts, or is now; another process that finds it out is waited for.

        Args:
            facts: all that the result depends on, with a `repr` that is the same in every run.
            make: does the work; its result comes back as JSON would give it.
        """
        self.make_folder()
        path = self.path_of(facts, ".json")
        with _one_at_a_time(path.with_suffix(".lock")):
            kept = _read(path)
            if kept is None:
                kept = json.loads(json.dumps({"facts": repr(facts), FOUND: make()}))
                self._write(path, json.dumps(kept, indent=1) + "\n")
        found: dict[str, Any] = kept[FOUND]
        return found

    def has(self, facts: object) -> bool:
        """Whether a piece is finished."""
        return _read(self.path_of(facts, ".json")) is not None

    def path_of(self, facts: object, ending: str) -> Path:
        """A name for what belongs to some facts, such as a network that was trained halfway."""
        return self.folder / f"{digest_of(facts)}{ending}"

    def _write(self, path: Path, text: str) -> None:
        try:
            with new_file(path) as file:
                file.write_text(text)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {reason_of(error)}") from None


def digest_of(facts: object) -> str:
    """32 hexadecimal digits that change when the facts do.

    >>> digest_of(("plain", 0)) == digest_of(("plain", 1))
    False
    """
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, Any] | None:
    """A kept piece; None where there is none, or a file that is not one."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and isinstance(kept.get(FOUND), dict) else None


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until nobody else works on this; whoever is killed lets go of it."""
    if fcntl is None:
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        path.unlink(missing_ok=True)  # whoever waits for it finds the piece all the same
