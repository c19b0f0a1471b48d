"""How a command ends other than well: a wrong call, or Ctrl-C."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mole.errors import ParameterError


class CallError(ParameterError):
    """Options that can not stand together, or one that can not be read: the call was wrong."""


class InterruptedWork(Exception):  # noqa: N818  (no error of ours)
    """Ctrl-C, and a sentence about what is left and how to go on."""


@contextmanager
def when_interrupted(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Give Ctrl-C a sentence that is true of this work; a function is asked when it happens."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWork(sentence if isinstance(sentence, str) else sentence()) from None
