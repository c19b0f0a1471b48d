"""Ways to damage a file: blindly, byte by byte, and with knowledge, field by field."""

import copy
import json
import random
import struct
from typing import Any

# Numbers that lengths, counts and offsets are taken for.
SMALL = (0, 1, 2, 255, 65_535, 1_000_000, (1 << 31) - 1, -1, -(1 << 31))
LARGE = (0, -1, 1 << 31, 1 << 40, (1 << 63) - 1)
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 16_000, 65_536, 1 << 31, 1 << 63, 10**30, 0.5, 1e30, 1e308,
    "", "x", "\x1b[31mred", "a\u202eb", "../../etc/passwd", "x" * 5_000, "float64", "object",
    "\ud800", "train", [], {}, [[]], [1], [3, 16_000, 16_000], [1] * 40, [[1, 2], [3]], {"a": 1},
    [None], [{}], [-1, -1],
)  # fmt: skip


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The same bytes with one to eight changes: bits, bytes, numbers, noise, pieces moved, lost, added."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        if not data:
            break
        at = rng.randrange(len(data))
        match rng.randrange(9):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                data[at : at + 4] = struct.pack(rng.choice("<>") + "i", rng.choice(SMALL))
            case 3:
                data[at : at + 8] = struct.pack(rng.choice("<>") + "q", rng.choice(LARGE))
            case 4:
                data[at : at + 16] = rng.randbytes(len(data[at : at + 16]))
            case 5:
                other = rng.randrange(len(data))
                data[at : at + 16] = data[other : other + 16]
            case 6:
                del data[at : at + rng.randint(1, 32)]
            case 7:
                data[at:at] = rng.randbytes(rng.randint(1, 64))
            case 8:
                del data[at:]
    return bytes(data)


def changed(value: Any, rng: random.Random) -> Any:
    """The same JSON value with one field replaced, removed, or put in twice over."""
    places = list(_places(value))
    if not places:
        return _hostile(rng)
    container, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[rng.choice(("x", "\x1b[2J", "../x", *container))] = _hostile(rng)
        case 2 if isinstance(container, list):
            container.insert(key, _hostile(rng))
        case _:
            container[key] = _hostile(rng)
    return value


def as_json(value: Any) -> bytes:
    """JSON text; deep nesting is added by hand, because no writer makes it."""
    return json.dumps(value, indent=1).encode()


def _hostile(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(HOSTILE))


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])
