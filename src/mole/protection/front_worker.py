"""Runs a front in a process of its own: `python -m mole.protection.front_worker FILE`.

What comes in on standard input and goes out on standard output are arrays: a number of axes, sides, and
32-bit floats. The process has bounds of its own, set before the file is opened: whatever it does, nobody
else is harmed.

**Every image is run alone.** A front that saw many at once could copy one of them into the rows of all
others, and each row would tell of it: what is counted for each image would be wrong.
"""

import hashlib
import resource
import struct
import sys
from pathlib import Path
from typing import IO

import numpy as np

from mole.scheme.shapes import Array

MAX_MEMORY = 8 << 30
MAX_AXES = 8


def write_array(stream: IO[bytes], array: Array) -> None:
    """Send an array of 32-bit floats."""
    stream.write(struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape))
    stream.write(np.ascontiguousarray(array, dtype="<f4").data.cast("B") if array.size else b"")
    stream.flush()


def read_array(stream: IO[bytes], most: int) -> Array | None:
    """Receive one, of at most so many numbers; None at the end, or where something else came."""
    axes = _numbers(stream, 1)
    if axes is None or not 1 <= axes[0] <= MAX_AXES:
        return None
    shape = _numbers(stream, axes[0])
    if shape is None or min(shape) < 0:
        return None
    count = 1
    for side in shape:
        count *= side
    if count > most:
        return None
    content = stream.read(4 * count)
    return np.frombuffer(content, "<f4").reshape(shape) if len(content) == 4 * count else None


def _numbers(stream: IO[bytes], count: int) -> tuple[int, ...] | None:
    content = stream.read(8 * count)
    return struct.unpack(f"<{count}q", content) if len(content) == 8 * count else None


def main(path: str, digest: str, threads: int, most: int) -> None:
    """Answer every batch of images with its features, until there is no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        sys.exit("the front is not the one that was checked")
    import onnxruntime  # noqa: PLC0415  (after the bounds)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")  # the form that was checked
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    while (batch := read_array(sys.stdin.buffer, most)) is not None:
        rows = [session.run(None, {name: batch[one : one + 1]})[0] for one in range(len(batch))]
        if any(row.shape[:1] != (1,) for row in rows):
            sys.exit("the front gives more or fewer rows than one for an image")  # they would be another's
        write_array(sys.stdout.buffer, np.concatenate(rows, dtype=np.float32, casting="unsafe"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
