"""Many samples of a split as plain data: read, shaped and normalised some at a time.

What is worked on at a time stays in the processor's cache from step to step, and goes into room that is
there already where the caller has some: taking new memory from the system costs more than normalising.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.scheme.normalisation import plain_data
from mole.scheme.shapes import Array, element_count
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Split, as_array

ELEMENTS_AT_ONCE = 1 << 17
SAMPLES_AT_ONCE = 64  # at most; a thread takes as many, because handing over one alone costs as much as it


class PlainSamples(NamedTuple):
    """Plain data, (n, *input_shape); which of the samples asked for it is; the number types they had."""

    plain: Array
    places: list[int]
    source_dtypes: set[str]


class Shaped(NamedTuple):
    """Samples in the layer's shape, in one array or several; and which of those asked for they are."""

    samples: Sequence[npt.NDArray[Any]]
    used: Sequence[int]


def read_many(
    preparation: Preparation,
    split: Split,
    indices: Sequence[int],
    *,
    skip_bad: bool,
    workers: Executor | None = None,
    out: Array | None = None,
) -> PlainSamples:
    """Plain data of some samples of a split, by several threads where there are some.

    Args:
        preparation: how samples become plain data.
        split: where they are.
        indices: which they are.
        skip_bad: leave out those that cannot be used.
        workers: threads that read.
        out: room for them, (n or more, *input_shape) of float32; None for new.

    Raises:
        BadSampleError: at the first sample that cannot be used, unless they are skipped.
    """
    room = np.empty((len(indices), *preparation.input_shape), np.float32) if out is None else out
    at_once = max(1, min(SAMPLES_AT_ONCE, ELEMENTS_AT_ONCE // element_count(preparation.input_shape)))
    starts = range(0, len(indices), at_once)
    parts = [indices[start : start + at_once] for start in starts]

    def read(part: Sequence[int]) -> Shaped:
        together = _together(preparation, split, part)
        return together or _one_by_one(preparation, split, part, skip_bad=skip_bad)

    places: list[int] = []
    dtypes: set[str] = set()
    shaped = map(read, parts) if workers is None else workers.map(read, parts)
    for start, (samples, used) in zip(starts, shaped, strict=True):
        _fill(room[len(places) : len(places) + len(used)], samples, preparation)
        places += [start + place for place in used]
        dtypes |= {sample.dtype.name for sample in samples}
    return PlainSamples(room[: len(places)], places, dtypes)


def _together(preparation: Preparation, split: Split, indices: Sequence[int]) -> Shaped | None:
    """Samples that are rows of one array, where nothing can be wrong with one of them alone."""
    array = as_array(split)
    if array is None or array.values.dtype.kind != "u" or not preparation.takes_samples:
        return None
    shaped = preparation.view_of(np.asarray(array.values[indices]), array.axes)
    return None if shaped is None else Shaped([shaped], range(len(indices)))


def _one_by_one(
    preparation: Preparation, split: Split, indices: Sequence[int], *, skip_bad: bool
) -> Shaped:
    samples, used = [], []
    for place, index in enumerate(indices):
        try:
            samples.append(preparation.read(split, index)[np.newaxis])
            used.append(place)
        except BadSampleError:
            if not skip_bad:
                raise
    return Shaped(samples, used)


def _fill(room: Array, samples: Sequence[npt.NDArray[Any]], preparation: Preparation) -> None:
    """Normalise samples into their room, all at once where they have one number type."""
    if len({sample.dtype for sample in samples}) == 1:
        stacked = np.empty(room.shape, samples[0].dtype)  # in row-major order
        samples = [np.concatenate(samples, out=stacked)]
    start = 0
    for sample in samples:
        plain_data(sample, preparation.normalisation, out=room[start : start + len(sample)])
        start += len(sample)
