"""Damage that knows the format of a file.

Where a format carries a checksum, the checksum is made right again after the damage: whoever sends a
hostile file can do that, too.
"""

import contextlib
import gzip
import hashlib
import json
import random
import re
import struct

from fuzz_mutations import as_json, changed, damaged
from mole.storage.checked import blanked_digest

CHECKED = re.compile(rb'"sha256":"([0-9a-f]{64})"')

SEALED = re.compile(rb'"seal": "([0-9a-f]{64})"')


def resealed(content: bytes, field: re.Pattern[bytes], where: bytes | None = None) -> bytes:
    """The same file with the right checksum in its field."""
    found = blanked_digest(
        field, content if where is None else where, () if where is None else [content[len(where) :]]
    )
    if found is None:
        return content
    position, digest = found
    return content[:position] + digest.encode() + content[position + 64 :]


def checked_bytes(content: bytes, rng: random.Random) -> bytes:
    """A checked file with damage anywhere, and its checksum right."""
    broken = damaged(content, rng)
    length = 8 + int.from_bytes(broken[:8], "little")
    return resealed(broken, CHECKED, broken[:length])


def checked_header(content: bytes, rng: random.Random) -> bytes:
    """A checked file with one of its fields changed, and its checksum right."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    values = header["__metadata__"]
    name = rng.choice([key for key in values if key not in ("sha256", "format")])
    if rng.random() < 0.2:
        tensors = {key: value for key, value in header.items() if key != "__metadata__"}
        header.update(changed(tensors, rng))
    else:
        with contextlib.suppress(ValueError):
            box = changed([json.loads(values[name])], rng)
            values[name] = json.dumps(box[0]) if box else "["
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = struct.pack("<Q", len(text)) + text + content[8 + length :]
    return resealed(whole, CHECKED, whole[: 8 + len(text)])


def any_file(content: bytes, rng: random.Random) -> bytes:
    """A shard or a checked file with damage anywhere, and its checksum right if it has one."""
    return damaged(content, rng) if content.startswith(b"PAR1") else checked_bytes(content, rng)


def sealed_json(content: bytes, rng: random.Random) -> bytes:
    """A manifest with some fields changed, and its checksum right."""
    value = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = changed(value, rng)
    text = as_json(value)
    found = SEALED.search(text)
    if found is None:
        return text
    blank = text[: found.start(1)] + b"0" * 64 + text[found.end(1) :]
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


def plain_json(content: bytes, rng: random.Random) -> bytes:
    """A JSON file with a field changed, or with any damage."""
    return as_json(changed(json.loads(content), rng)) if rng.random() < 0.7 else damaged(content, rng)


def packed(content: bytes, rng: random.Random) -> bytes:
    """A gzip file whose content is damaged, or the file itself."""
    if rng.random() < 0.5:
        return gzip.compress(damaged(gzip.decompress(content), rng), mtime=0)
    return damaged(content, rng)
