"""Keys and noise that are the same in every run, so that no test is red by luck.

The operating system gives the seed of each key and of each piece of noise. Here the name of the test, or of
the fixture, that asks for one gives it: another name, another draw. What is drawn depends neither on which
tests ran before nor on which thread came first. Tests that are about fresh draws have the mark
`fresh_draws`, and get those of the operating system; `make explore` gives them to all.
"""

import hashlib
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mole.protection import channel
from mole.provider import protector
from mole.provider.keys import key
from mole.scheme.shapes import Array

MARK = "fresh_draws"


class SameDraws:
    """In the place of `secrets`, for those who draw seeds of keys and noise."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._drawn: Counter[str] = Counter()
        self._drawing = threading.Lock()
        self._thread = threading.local()

    @property
    def name(self) -> str | None:
        """Under what is drawn; None for fresh draws."""
        return self._name

    def token_bytes(self, count: int) -> bytes:
        """The next bytes under this name; or fresh ones, where there is none."""
        about = getattr(self._thread, "about", "")
        with self._drawing:
            name, number = self._name, self._drawn[about]
            self._drawn[about] += 1
        if name is None:
            return secrets.token_bytes(count)
        return hashlib.shake_256(f"{name}\0{about}\0{number}".encode()).digest(count)

    @contextmanager
    def named(self, name: str | None) -> Iterator[None]:
        """Draw under a name for a while."""
        before = self._name, self._drawn
        self._name, self._drawn = name, Counter()
        try:
            yield
        finally:
            self._name, self._drawn = before

    @contextmanager
    def about(self, content: bytes) -> Iterator[None]:
        """Draw for something in this thread: threads that work on other things change nothing."""
        self._thread.about = hashlib.sha256(content).hexdigest()
        try:
            yield
        finally:
            del self._thread.about


DRAWS = SameDraws()


def install(config: pytest.Config) -> None:
    """Let keys and noise draw from here from now on."""
    config.addinivalue_line("markers", f"{MARK}: keys and noise come from the operating system.")
    if config.getoption("--hypothesis-profile", default=None) == "explore":
        return
    rows = protector.Protector.rows

    def rows_of(self: protector.Protector, images: Array, split: str) -> Array:
        with DRAWS.about(split.encode() + images.tobytes()):
            return rows(self, images, split)

    key.secrets = channel.secrets = DRAWS  # type: ignore[assignment]
    protector.Protector.rows = rows_of  # type: ignore[method-assign]


def name_of(node: pytest.Item | pytest.Collector, part: str = "") -> str | None:
    """Under what to draw in a test, or in a fixture of it; None for fresh draws."""
    return None if node.get_closest_marker(MARK) else f"{node.nodeid} {part}"
