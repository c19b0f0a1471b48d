"""Numbers in words, the same everywhere: sizes of files, bounds, and how many there are of something."""

import math

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def size_text(count: int) -> str:
    """A number of bytes for people.

    >>> size_text(203_924_318), size_text(483_385_147_392), size_text(512), size_text(1)
    ('203.9 MB', '483.4 GB', '512 bytes', '1 byte')
    """
    step = 0
    while step < len(UNITS) - 1 and round(count / 1000**step, 1) >= 1000:
        step += 1
    return f"{count / 1000**step:.1f} {UNITS[step]}" if step else counted(count, "byte")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """How many there are of something.

    >>> counted(1, "image"), counted(2_000, "image"), counted(0, "class", "classes")
    ('1 image', '2,000 images', '0 classes')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def at_most(bound: float) -> str:
    """A bound with three digits, rounded up so that it still holds.

    >>> at_most(16.008), at_most(1.0), at_most(123_456.0), at_most(0.0016)
    ('16.1', '1', '124,000', '0.0016')
    """
    digits = 2 - math.floor(math.log10(bound)) if bound > 0 else 0
    step = 10.0**digits
    return f"{float(f'{math.ceil(bound * step * (1 - 1e-12)) / step:.3g}'):,g}"


def joined(names: list[str], word: str = "and") -> str:
    """Names as a list in a sentence.

    >>> joined(["key"]), joined(["key", "layer"]), joined(["2", "4", "8"], "or")
    ('key', 'key and layer', '2, 4 or 8')
    """
    *head, last = names
    return f"{', '.join(head)} {word} {last}" if head else last
