"""Labels as tables and headers have them, text or numbers, to numbered classes."""

import re
from collections.abc import Sequence

import numpy as np

from mole.errors import SourceError
from mole.limits import MAX_CLASSES
from mole.sources.source import Labels

# A longer one may be the number of a patient or a date: it is taken for a name, which has to pass the rules
# for names of classes before it leaves.
MOST_NUMBERED = 9999
_NUMBER = re.compile(r"-1|0|[1-9]\d{0,3}")


def numbered(values: Sequence[str | int]) -> tuple[Labels, tuple[str, ...] | None]:
    """The class of each, and the names of the classes; there are none where labels are small numbers.

    >>> numbered(["dog", "cat", "dog"])
    (array([1, 0, 1]), ('cat', 'dog'))
    >>> numbered(["3", "0", "3"])
    (array([3, 0, 3]), None)
    >>> numbered([20031975, 20031976])
    (array([0, 1]), ('20031975', '20031976'))

    Raises:
        SourceError: if there are more classes than a network can tell apart.
    """
    texts = [str(value) for value in values]
    kinds = sorted(set(texts))
    if len(kinds) > MAX_CLASSES:
        raise SourceError(f"labels name {len(kinds)} classes, and {MAX_CLASSES} is the limit: group them")
    if all(map(_NUMBER.fullmatch, kinds)):
        return np.array([int(text) for text in texts], dtype=np.int64), None
    number = {name: index for index, name in enumerate(kinds)}
    return np.array([number[text] for text in texts], dtype=np.int64), tuple(kinds)
