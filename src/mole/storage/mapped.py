"""Tensors of a safetensors file where they lie: a large file on a disk is mapped into memory, not read.

Mapped pages are the system's own copy of the file: they take no memory of this process, and several
processes share them. A mapped tensor cannot be written to. Who needs one to write to gets it with
`own_copy`: a mapping in which only pages that are written to become copies, so that neither the file nor
anybody else's tensor ever changes.

While a file is mapped it has to stay as it is. Replacing it by another of the same name does no harm, and
that is what the writers of this package do; writing into it from outside would.
"""

import math
import mmap
import os
import weakref
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mole.storage.typed_json import Fields, FormatError

Array = npt.NDArray[Any]
MAPPED_FROM_BYTES = 16 << 20  # smaller files are read: a page of theirs more or less does not matter
METADATA = "__metadata__"
MAX_AXES = 8  # of a tensor: the product of a million sides would take long
# Number types of safetensors, in the order in which the package of that name lays tensors out.
NUMBER_TYPES = {
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4", "F16": "<f2",
    "U16": "<u2", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


class FileMapping(mmap.mmap):
    """A file in memory, which can be mapped once more for as long as this mapping exists."""

    _descriptor: int

    @classmethod
    def of(cls, descriptor: int, access: int = mmap.ACCESS_READ) -> "FileMapping":
        """All of an open file, which may be closed afterwards."""
        made = cls(descriptor, 0, access=access)
        made._descriptor = os.dup(descriptor)
        weakref.finalize(made, os.close, made._descriptor)
        return made

    def again(self) -> "FileMapping":
        """The same file once more, to write to: what is written stays in this mapping."""
        return self.of(self._descriptor, mmap.ACCESS_COPY)

    def let_go(self) -> None:
        """Let the system have the pages back; they come again when they are asked for."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.madvise(mmap.MADV_DONTNEED)


def content_of(file: IO[bytes], *, on_disk: bool) -> FileMapping | bytearray:
    """All bytes of a file that is open at its start: mapped, if it is large and on this machine's disk."""
    # Windows does not let a file be replaced or removed while somebody has it mapped.
    if on_disk and os.name == "posix" and os.fstat(file.fileno()).st_size >= MAPPED_FROM_BYTES:
        return FileMapping.of(file.fileno())
    return bytearray(file.read())


def tensors_in(content: FileMapping | bytearray, header: Fields, start: int) -> dict[str, Array]:
    """The tensors that a header describes, without a copy, from where they start.

    Raises:
        FormatError: if they do not fill the rest of the content one after the other, or are of a type that
            NumPy does not know.
    """
    found: dict[str, Array] = {}
    entries = {name: header.object(name) for name in header.names() - {METADATA}}
    places = {name: _place(entry) for name, entry in entries.items()}
    end = start
    for name in sorted(places, key=places.__getitem__):
        low, high = places[name]
        shape, number = entries[name].wholes("shape"), NUMBER_TYPES.get(entries[name].text("dtype"))
        if number is None or len(shape) > MAX_AXES or min(shape, default=0) < 0 or start + low != end:
            raise FormatError(f"its tensor '{name[:40]}' is not where it should be")
        count = math.prod(shape)
        if high - low != count * np.dtype(number).itemsize or start + high > len(content):
            raise FormatError(f"its tensor '{name[:40]}' has another size than it says")
        try:
            flat = np.frombuffer(content, number, count, start + low)
            found[name] = (flat if flat.flags.aligned else flat.copy()).reshape(shape)
        except (ValueError, OverflowError):  # more axes than there can be, or a side beyond numbers
            raise FormatError(f"its tensor '{name[:40]}' has a shape that cannot be") from None
        end = start + high
    if end != len(content):
        raise FormatError("it is longer than its tensors")
    return found


def own_copy(array: Array) -> Array:
    """The same numbers to write to: nobody else sees it. Where they are mapped, nothing is copied."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapping = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapping, FileMapping) or not array.flags.c_contiguous or not array.size:
        return array.copy()
    offset = _address(array) - _address(np.frombuffer(mapping, np.uint8))
    mapping.let_go()
    return np.frombuffer(mapping.again(), array.dtype, array.size, offset).reshape(array.shape)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _place(entry: Fields) -> tuple[int, int]:
    place = entry.wholes("data_offsets")
    if len(place) != 2 or not 0 <= place[0] <= place[1]:
        raise FormatError("its tensors are nowhere")
    return place[0], place[1]
