"""Features are computed once: kept ones are used again, and none that belong to something else."""

from dataclasses import replace

import numpy as np
import pytest

from deliveries import SHAPE
from fronts import write_front
from mole.errors import FileError, ParameterError
from mole.experiments import feature_store
from mole.experiments.feature_store import FeatureStore
from mole.experiments.image_sets import ImageSet, Part, bundled_sources, preparation_for, shape_of
from mole.protection.front_file import read_front
from mole.sources.source import Source, array_split


@pytest.fixture
def part() -> Part:
    rng = np.random.default_rng(0)
    split = array_split(
        rng.integers(256, size=(25, *SHAPE), dtype=np.uint8), np.zeros(25, np.int64), "some"
    )
    return Part(split, 0, 25, "some")


@pytest.fixture
def front(tmp_path):
    return read_front(write_front(tmp_path / "front.onnx"))


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """How many images a front was run on, call by call."""
    seen: list[int] = []

    class Counting(feature_store.FrontRunner):
        def __call__(self, images):
            seen.append(len(images))
            return super().__call__(images)

    monkeypatch.setattr(feature_store, "FrontRunner", Counting)
    monkeypatch.setattr(feature_store, "IMAGES_AT_ONCE", 10)
    return seen


def test_features_are_those_of_the_front_and_are_computed_once(tmp_path, part, front, runs):
    told: list[tuple[int, int]] = []
    store = FeatureStore(tmp_path / "kept", lambda done, total: told.append((done, total)))
    found = store.features(front, part, SHAPE)
    with feature_store.FrontRunner(front) as run:
        assert np.array_equal(found, run(part.plain(preparation_for(SHAPE, SHAPE, front.normalisation))))
    assert told == [(10, 25), (20, 25), (25, 25)]
    runs.clear()
    assert np.array_equal(store.features(front, part, SHAPE), found)
    assert runs == []


def test_interrupted_work_goes_on_where_it_stopped(tmp_path, part, front, runs):
    store = FeatureStore(tmp_path / "kept")
    whole = store.features(front, part, SHAPE)
    (last,) = (file for file in (tmp_path / "kept").glob("*.npy") if len(np.load(file)) == 5)
    last.write_bytes(last.read_bytes()[:200])  # half a file counts as none
    runs.clear()
    assert np.array_equal(store.features(front, part, SHAPE), whole)
    assert runs == [5]


def test_other_images_and_other_fronts_have_features_of_their_own(tmp_path, part, front, runs):
    store = FeatureStore(tmp_path / "kept")
    first = store.features(front, part, SHAPE)
    other = read_front(write_front(tmp_path / "other.onnx", seed=1))
    assert not np.array_equal(store.features(other, part, SHAPE), first)
    store.features(front, replace(part, origin="others"), SHAPE)
    assert sum(runs) == 3 * len(part)


def test_a_store_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file/kept cannot be made"):
        FeatureStore(tmp_path / "file" / "kept")


def test_the_bundled_images_are_a_set():
    images = ImageSet.of(bundled_sources()["private"], "bundled").first(100, 50)
    assert (images.shape, images.classes, len(images.train), len(images.test)) == ((1, 28, 28), 10, 100, 50)
    assert len(images.train.cut(90, 200).labels) == 10


def test_images_without_a_test_split_are_refused():
    private = bundled_sources()["private"]
    alone = Source(private.kind, {"train": private.splits["train"]}, None, "")
    with pytest.raises(ParameterError, match="photos has no splits 'train' and 'test'"):
        ImageSet.of(alone, "photos")


@pytest.mark.parametrize(
    ("stored", "shape"), [((28, 28), (1, 28, 28)), ((8, 9, 3), (3, 8, 9)), ((3, 8, 9), (3, 8, 9))]
)
def test_shapes_are_told_channels_first(stored, shape):
    split = array_split(np.zeros((2, *stored), np.uint8), np.zeros(2, np.int64), "some")
    assert shape_of(Source("array", {"train": split}, None, "")) == shape
