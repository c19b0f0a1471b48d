"""Numbers in words, the same everywhere: sizes of files, and how many there are of something."""

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


def joined(names: list[str], word: str = "and") -> str:
    """Names as a list in a sentence.

    >>> joined(["key"]), joined(["key", "layer"]), joined(["2", "4", "8"], "or")
    ('key', 'key and layer', '2, 4 or 8')
    """
    *head, last = names
    return f"{', '.join(head)} {word} {last}" if head else last
