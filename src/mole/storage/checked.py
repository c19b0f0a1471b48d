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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mole.errors import LayerFileError
from mole.storage.atomic import new_file, reason_of
from mole.storage.mapped import METADATA, NUMBER_TYPES, FileMapping, content_of, tensors_in
from mole.storage.regular import open_regular
from mole.storage.stores import StoredFile
from mole.storage.typed_json import Fields, FormatError, parse_json

Array = npt.NDArray[Any]
MAX_HEADER_BYTES = 1 << 20
BLANK = "0" * 64
HASHED_AT_ONCE = 1 << 20
NUMBERS = {np.dtype(number): name for name, number in NUMBER_TYPES.items()}

WEIGHTS = (".pt", ".pth")

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
    contiguous = {
        name: np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
        for name, tensor in tensors.items()
    }
    header, data = _serialised(contiguous, {**metadata, "sha256": BLANK})
    if len(header) - 8 > MAX_HEADER_BYTES:
        raise OSError(f"its header would be longer than {MAX_HEADER_BYTES >> 20} MiB")
    found = blanked_digest(_DIGEST, header, data)
    if found is None:
        raise OSError("its header has a digest already")
    position, digest = found
    with path.open("wb") as file:
        file.write(header[:position] + digest.encode() + header[position + len(BLANK) :])
        for block in data:
            file.write(block)


def _serialised(
    tensors: Mapping[str, Array], metadata: Mapping[str, str]
) -> tuple[bytes, list[memoryview]]:
    """A safetensors file: its header, and the bytes of its tensors, which are not copied.

    The package `safetensors` writes such files only to a name of its own choice, on a disk.
    """
    described: dict[str, Any] = {METADATA: dict(metadata)}
    data, end = [], 0
    unknown = [tensor.dtype for tensor in tensors.values() if tensor.dtype not in NUMBERS]
    if unknown:
        raise OSError(f"numbers of type {unknown[0]} have no place in it")
    for name in sorted(tensors, key=lambda name: ([*NUMBERS].index(tensors[name].dtype), name)):
        start, end = end, end + tensors[name].nbytes
        shape, kind = tensors[name].shape, NUMBERS[tensors[name].dtype]
        described[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        data.append(tensors[name].reshape(-1).view(np.uint8).data)
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, data


def read_metadata(path: Path | StoredFile) -> dict[str, str]:
    """The metadata of a safetensors file, unchecked: {} where it has none."""
    try:
        with _opened(path) as file:
            return _metadata(parse_json(_header(file.read(8 + MAX_HEADER_BYTES), path)[8:]))
    except OSError as error:
        raise LayerFileError(f"{path} cannot be read: {reason_of(error)}") from None
    except FormatError:
        raise _damaged(path) from None


def load_checked(path: Path | StoredFile) -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors and metadata of a checked file, or an error if a single bit of it changed.

    A large file on a disk is mapped: its tensors cannot be written to (`mole.storage.mapped.own_copy`).
    """
    try:
        with _opened(path) as file:
            content = content_of(file, on_disk=isinstance(path, Path))
        start = _header(bytes(content[: 8 + MAX_HEADER_BYTES]), path)
        header = parse_json(start[8:])
        metadata = _metadata(header)
        found = blanked_digest(_DIGEST, start, _pieces(content, len(start)))
        if found is None or metadata.pop("sha256", None) != found[1]:
            raise _damaged(path)
        return tensors_in(content, header, len(start)), metadata
    except OSError as error:
        raise LayerFileError(f"{path} cannot be read: {reason_of(error)}") from None
    except FormatError:
        raise _damaged(path) from None


def blanked_digest(
    field: re.Pattern[bytes], start: bytes, rest: Iterable[bytes | memoryview] = ()
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


def _metadata(header: Fields) -> dict[str, str]:
    if METADATA not in header.names():
        return {}
    entries = header.object(METADATA)
    return {name: entries.text(name) for name in sorted(entries.names())}


def _pieces(content: FileMapping | bytearray, start: int) -> Iterator[memoryview]:
    whole = memoryview(content)
    return (whole[at : at + HASHED_AT_ONCE] for at in range(start, len(content), HASHED_AT_ONCE))


def _opened(path: Path | StoredFile) -> IO[bytes]:
    return open_regular(path) if isinstance(path, Path) else path.open("rb")


def _header(start: bytes, path: Path | StoredFile) -> bytes:
    """The length field and the JSON header, from the first bytes of a file."""
    length = int.from_bytes(start[:8], "little")
    if not 2 <= length <= MAX_HEADER_BYTES or len(start) < 8 + length:
        if start.startswith((b"age-encryption.org/", b"-----BEGIN AGE")):
            raise LayerFileError(f"{path} is a key, and a layer is needed here")
        if str(path).endswith(WEIGHTS):
            raise LayerFileError(
                f"{path} is a file of PyTorch's weights, and a layer is needed here: its owner exports the "
                "first layer with mole export-layer"
            )
        raise LayerFileError(f"{path} is not a layer file, or it is cut off: get an undamaged copy")
    return start[: 8 + length]


def _damaged(path: Path | StoredFile) -> LayerFileError:
    return LayerFileError(f"{path} is damaged (its checksum does not match): get an undamaged copy")
