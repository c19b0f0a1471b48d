"""JSON from outside, read by type: every field is asked for with what it has to be.

    fields = parse_json(text)
    fields.whole("kappa", least=1), fields.text("layout"), fields.texts("classes")

Whatever is not there or is of another type is a `FormatError` that names the field, and nothing else is
ever raised: who reads a file puts its name, and what to do, around that.
"""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mole.foreign_text import shown
from mole.limits import MAX_JSON_BYTES

T = TypeVar("T")
LARGEST = 1 << 53  # beyond, JSON's readers do not agree


class FormatError(ValueError):
    """A field that is missing or is not what it has to be, in words."""


class Fields:
    """The fields of a JSON object, by type.

    >>> fields = parse_json(b'{"kappa": 3, "sides": [3, 8], "mode": null, "splits": {"test": {"rows": 5}}}')
    >>> fields.whole("kappa"), fields.wholes("sides"), fields.optional("mode", fields.text)
    (3, (3, 8), None)
    >>> [(name, part.whole("rows")) for name, part in fields.objects("splits")]
    [('test', 5)]
    >>> fields.text("kappa")
    Traceback (most recent call last):
    mole.storage.typed_json.FormatError: its field 'kappa' is not text
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def names(self) -> set[str]:
        """The names of all fields."""
        return set(self._values)

    def value(self, name: str) -> Any:
        """A field of any type."""
        if name not in self._values:
            raise FormatError(f"it has no field '{name}'")
        return self._values[name]

    def text(self, name: str) -> str:
        """Text."""
        return str(self._of(name, "text", is_text))

    def whole(self, name: str, *, least: int = 0, most: int = LARGEST) -> int:
        """A whole number within bounds."""
        what = f"a whole number from {least} to {most}"
        return int(self._of(name, what, lambda value: is_whole(value) and least <= value <= most))

    def number(self, name: str) -> float:
        """A finite number."""
        return float(self._of(name, "a finite number", is_number))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._list(name, "texts", is_text))

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._list(name, "whole numbers", is_side))

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(map(float, self._list(name, "finite numbers", is_number)))

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """A list of pairs of whole numbers."""

        def is_pair(value: object) -> bool:
            return isinstance(value, list) and len(value) == 2 and all(map(is_side, value))

        return tuple(
            (before, after) for before, after in self._list(name, "pairs of whole numbers", is_pair)
        )

    def object(self, name: str) -> "Fields":
        """An object."""
        return Fields(self._of(name, "an object", is_object))

    def objects(self, name: str) -> Iterator[tuple[str, "Fields"]]:
        """An object of objects: the name and the fields of each."""
        inner = self.object(name)
        return ((key, inner.object(key)) for key in inner._values)

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """A field that may be null, and otherwise is what `read` makes of it."""
        return None if self.value(name) is None else read(name)

    def _of(self, name: str, what: str, holds: Callable[[Any], bool]) -> Any:
        value = self.value(name)
        if not holds(value):
            raise FormatError(f"its field '{shown(name)}' is not {what}")
        return value

    def _list(self, name: str, what: str, holds: Callable[[Any], bool]) -> list[Any]:
        values: list[Any] = self._of(
            name, f"a list of {what}", lambda value: isinstance(value, list) and all(map(holds, value))
        )
        return values


def parse_json(content: bytes | str) -> Fields:
    """The fields of a JSON text that is one object."""
    value = parse_value(content)
    if not is_object(value):
        raise FormatError("it is not a JSON object")
    return Fields(value)


def parse_value(content: bytes | str) -> Any:
    """Any JSON value, from a text that is no longer than such texts are."""
    if len(content) > MAX_JSON_BYTES:
        raise FormatError(f"it is longer than {MAX_JSON_BYTES >> 20} MiB")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise FormatError("it is not JSON") from None


def is_text(value: object) -> bool:
    """Whether it is text that can be written as UTF-8, too."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def is_whole(value: object) -> bool:
    """Whether it is a whole number, and neither true nor false."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_side(value: object) -> bool:
    """Whether it is a whole number that every reader of JSON agrees on."""
    return is_whole(value) and is_number(value)


def is_number(value: object) -> bool:
    """Whether it is a number that is finite."""
    if is_whole(value):
        return abs(value) <= LARGEST  # type: ignore[arg-type]
    return isinstance(value, float) and math.isfinite(value)


def is_object(value: object) -> bool:
    """Whether it is a JSON object."""
    return isinstance(value, dict)
