"""Small real files for tests of sources, and what opening or refusing them gives."""

import re
import struct

import numpy as np
import pytest
from PIL import Image

from mole.errors import MoleError, SourceError
from mole.sources.opening import open_source


def refusal(path, error=SourceError, *, named=None):
    """The message of the error that opening a source gives: one sentence that names the source."""
    with pytest.raises(error) as caught:
        open_source(str(path))
    return checked_message(caught.value, named or path)


def checked_message(error, named):
    message = str(error)
    assert isinstance(error, MoleError)
    assert str(named) in message
    assert "\n" not in message
    assert not re.search(r"0x[0-9a-f]{6}|Error\b|Traceback", message)
    return message


def save_image(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


def rgb(rng, side=6):
    return rng.integers(0, 256, (side, side + 1, 3), dtype=np.uint8)


def only_sample(path):
    source = open_source(str(path))
    assert source.count == 1
    (split,) = source.splits.values()
    return split.read(0)


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
