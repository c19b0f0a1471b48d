"""How long work reports how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do: rows, bytes or steps."""


def no_progress(done: int, total: int) -> None:
    """Report to nobody."""
