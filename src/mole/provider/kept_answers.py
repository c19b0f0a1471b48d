"""Answers of a server, kept until all have come: a call that failed goes on from there when made again.

Without this one request that fails would take all other answers with it, and what they cost of budgets.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mole.errors import FileError
from mole.storage.atomic import reason_of

TABLE = """
CREATE TABLE IF NOT EXISTS answers
    (call TEXT, image TEXT, probabilities BLOB, PRIMARY KEY (call, image)) WITHOUT ROWID
"""
PATIENCE = 60.0  # seconds, while another process writes into it
Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class KeptAnswers:
    """Answers in a file for its owner alone, which is made with the first one.

    Calls and images are known by digests that only the holder of the key can compute.

    Attributes:
        path: the file: SQLite's.
    """

    path: Path

    @classmethod
    def beside(cls, out: Path) -> "KeptAnswers":
        """Those for a file that is written when all have come."""
        return cls(out.with_name(f"{out.name}.unfinished"))

    @property
    def is_there(self) -> bool:
        """Whether anything is kept."""
        return self.path.exists()

    def of(self, call: str) -> dict[str, Probabilities]:
        """What has come for a call: the probabilities of each image.

        Raises:
            FileError: if the file cannot be read.
        """
        if not self.is_there:
            return {}
        with self._opened() as file:
            rows = file.execute("SELECT image, probabilities FROM answers WHERE call = ?", (call,))
            return {image: np.frombuffer(content, "<f4") for image, content in rows}

    def keep(self, call: str, images: Sequence[str], probabilities: Probabilities) -> None:
        """Keep what has come for some images, (n, classes).

        Raises:
            FileError: if it cannot be written.
        """
        rows = [
            (call, image, one.astype("<f4").tobytes())
            for image, one in zip(images, probabilities, strict=True)
        ]
        with self._opened() as file:
            file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)

    def remove(self) -> None:
        """Let go of them: they are where they belong."""
        self.path.unlink(missing_ok=True)

    def _keep_to_its_owner(self) -> None:
        """Make it, or see that nobody else made it, and that nobody else can read it."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(file).st_uid != os.geteuid():
                raise FileError(f"{self.path} is somebody else's: remove it, or choose another name")
            os.fchmod(file, 0o600)
        finally:
            os.close(file)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self._keep_to_its_owner()
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as file, file:
                file.execute(TABLE)
                yield file
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {reason_of(error)}") from None
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise FileError(
                f"{self.path} is not what answers are kept in ({error}): remove it, or choose another name "
                "for the predictions"
            ) from None
