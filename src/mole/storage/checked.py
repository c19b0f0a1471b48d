"""Checked files: ordinary safetensors files that carry a digest of every one of their bytes.

    save_checked(path, {"weight": weight}, {"format": "mole-first-layer"})
    tensors, metadata = load_checked(path)

Safetensors itself does not notice a flipped bit. The header's entry `sha256` is the SHA-256 of the whole
file with those 64 digits replaced by zeros, so any change shows, and every safetensors reader still
opens the file. The same content gives the same bytes: the header's entries are sorted by name.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mole.errors import LayerFileError
from mole.storage.atomic import new_file, reason_of
from mole.storage.typed_json import FormatError, parse_json

Array = npt.NDArray[Any]
MAX_HEADER_BYTES = 1 << 20
METADATA = "__metadata__"
BLANK = "0" * 64

_DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def save_checked(path: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata, replacing a file of that name only when everything is written."""
    if not path.parent.is_dir():
        raise LayerFileError(f"{path} cannot be written: the folder {path.parent} does not exist")
    try:
        with new_file(path) as temporary:
            write_checked(temporary, tensors, metadata)
    except OSError as error:
        raise LayerFileError(f"{path} cannot be written: {reason_of(error)}") from None


def write_checked(path: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata to a path that nobody reads yet; the caller renames it."""
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    try:
        save_file(contiguous, path, metadata={**metadata, "sha256": BLANK})
        with path.open("rb") as file:
            if int.from_bytes(file.read(8), "little") > MAX_HEADER_BYTES:
                raise OSError(f"its header would be longer than {MAX_HEADER_BYTES >> 20} MiB")
        _sort_header(path)
        position, digest = _digest(path)
        with path.open("r+b") as file:
            file.seek(position)
            file.write(digest.encode())
    except (ValueError, SafetensorError) as error:
        raise OSError(reason_of(error)) from None


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file, unchecked: {} where it has none."""
    try:
        with path.open("rb") as file:
            header = parse_json(_header(file.read(8 + MAX_HEADER_BYTES), path)[8:])
    except OSError as error:
        raise LayerFileError(f"{path} cannot be read: {reason_of(error)}") from None
    except FormatError:
        raise _damaged(path) from None
    if METADATA not in header.names():
        return {}
    try:
        entries = header.object(METADATA)
        return {name: entries.text(name) for name in sorted(entries.names())}
    except FormatError:
        raise _damaged(path) from None


def load_checked(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors and metadata of a checked file, or an error if a single bit of it changed."""
    metadata = read_metadata(path)
    try:
        _, digest = _digest(path)
        if metadata.pop("sha256", None) != digest:
            raise _damaged(path)
        return load_file(path), metadata
    except OSError as error:
        raise LayerFileError(f"{path} cannot be read: {reason_of(error)}") from None
    except (SafetensorError, KeyError, ValueError):
        raise _damaged(path) from None


def blanked_digest(
    field: re.Pattern[bytes], start: bytes, rest: Iterable[bytes] = ()
) -> tuple[int, str] | None:
    """Where a file carries its own SHA-256, and what that should say: the file's with zeros in its place.

    `field` finds the 64 digits, as its group 1, in the file's start; None unless they stand there once.

    >>> blanked_digest(re.compile(b"digest ([0-9a-f]{64})"), b"digest " + b"0" * 64)[0]
    7
    >>> blanked_digest(re.compile(b"digest ([0-9a-f]{64})"), b"no such field")
    """
    found = list(field.finditer(start))
    if len(found) != 1:
        return None
    position = found[0].start(1)
    digest = hashlib.sha256(start[:position] + BLANK.encode() + start[position + len(BLANK) :])
    for block in rest:
        digest.update(block)
    return position, digest.hexdigest()


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        header = _header(file.read(8 + MAX_HEADER_BYTES), path)
        file.seek(len(header))
        found = blanked_digest(_DIGEST, header, iter(lambda: file.read(1 << 20), b""))
    if found is None:
        raise _damaged(path)
    return found


def _sort_header(path: Path) -> None:
    """Sort the entries of a new file's header, which safetensors writes in another order each time."""
    with path.open("r+b") as file:
        header = _header(file.read(8 + MAX_HEADER_BYTES), path)
        entries = json.loads(header[8:])
        text = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) > len(header) - 8:
            raise ValueError("its header cannot be written in a fixed order")
        file.seek(8)
        file.write(text.ljust(len(header) - 8))  # safetensors pads with spaces, too


def _header(start: bytes, path: Path) -> bytes:
    """The length field and the JSON header, from the first bytes of a file."""
    length = int.from_bytes(start[:8], "little")
    if not 2 <= length <= MAX_HEADER_BYTES or len(start) < 8 + length:
        if start.startswith((b"age-encryption.org/", b"-----BEGIN AGE")):
            raise LayerFileError(f"{path} is a key, and a layer is needed here")
        raise LayerFileError(f"{path} is not a layer file, or it is cut off: get an undamaged copy")
    return start[: 8 + length]


def _damaged(path: Path) -> LayerFileError:
    return LayerFileError(f"{path} is damaged (its checksum does not match): get an undamaged copy")
