"""Many samples at once are the same plain data, to the bit, as one after the other."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mole.errors import SourceError
from mole.scheme.normalisation import Normalisation
from mole.sources import plain_samples
from mole.sources.plain_samples import read_many
from mole.sources.preparation import Preparation
from mole.sources.source import Source, array_split, without_labels

COUNT, SHAPE = 150, (3, 6, 5)
NORMALISATION = Normalisation((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
ORDER = np.random.default_rng(3).permutation(COUNT)[:131].tolist()


def split_of(axes: str, dtype: str):
    shape = {"chw": (3, 6, 5), "hwc": (6, 5, 3), "hw": (6, 5)}[axes]
    values = np.random.default_rng(0).integers(0, 200, (COUNT, *shape))
    values = (values / 255).astype(dtype) if dtype.startswith("f") else values.astype(dtype)
    return array_split(values, np.arange(COUNT), "made up")


def one_by_one(preparation, split, order):
    return np.concatenate(
        [preparation.plain(preparation.read(split, index)[np.newaxis]) for index in order]
    )


@pytest.mark.parametrize("axes", ["chw", "hwc"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", ">u2", "float32", "float64"])
@pytest.mark.parametrize("normalisation", [None, NORMALISATION], ids=["plain", "normalised"])
def test_many_are_the_same_as_one_by_one(axes, dtype, normalisation):
    split, preparation = split_of(axes, dtype), Preparation(SHAPE, normalisation)
    expected = one_by_one(preparation, split, ORDER)
    room = np.full((COUNT, *SHAPE), np.nan, np.float32)
    with ThreadPoolExecutor(2) as workers:
        for out, pool in ((None, None), (room, None), (None, workers)):
            found = read_many(preparation, split, ORDER, skip_bad=False, out=out, workers=pool)
            assert found.plain.tobytes() == expected.tobytes()
            assert found.places == [*range(len(ORDER))]
            assert found.source_dtypes == {np.dtype(dtype).name}
    found = read_many(preparation, split, ORDER, skip_bad=False, out=room)
    assert np.shares_memory(found.plain, room)
    assert np.isnan(room[len(ORDER) :]).all()


def test_an_array_is_read_at_once_and_other_things_are_not(monkeypatch):
    def never(*_, **__):
        raise AssertionError("one by one")

    monkeypatch.setattr(plain_samples, "_one_by_one", never)
    split = split_of("hwc", "uint8")
    unlabelled = without_labels(Source("npz", {"train": split}, None, "name")).splits["train"]
    for kind in (split, unlabelled):
        assert len(read_many(Preparation(SHAPE), kind, ORDER, skip_bad=False).plain) == len(ORDER)
    grey = read_many(Preparation((1, 6, 5)), split_of("hw", "uint8"), ORDER, skip_bad=False)
    assert grey.plain.shape == (len(ORDER), 1, 6, 5)
    for preparation, other in (
        (Preparation(SHAPE), split_of("hwc", "float32")),  # each may have a NaN of its own
        (Preparation((3, 4, 4), resize="crop"), split),
        (Preparation((3, 4, 4)), split),
    ):
        with pytest.raises(AssertionError, match="one by one"):
            read_many(preparation, other, ORDER, skip_bad=False)


def test_bad_samples_are_named_or_left_out_in_their_places():
    split, preparation = split_of("hwc", "float32"), Preparation(SHAPE, NORMALISATION)
    bad = [ORDER[0], ORDER[70], ORDER[130]]
    split.values[bad, 0, 0, 0] = np.nan
    with pytest.raises(SourceError, match=f"sample {ORDER[0]} of made up"):
        read_many(preparation, split, ORDER, skip_bad=False)
    good = [index for index in ORDER if index not in bad]
    found = read_many(preparation, split, ORDER, skip_bad=True)
    assert [ORDER[place] for place in found.places] == good
    assert found.plain.tobytes() == one_by_one(preparation, split, good).tobytes()
