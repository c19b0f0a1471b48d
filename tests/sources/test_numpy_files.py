"""NumPy's files: .npy and .npz, with the pixels and labels that went into them."""

import numpy as np
import pytest

from mole.errors import SourceError
from mole.sources.opening import open_source
from source_files import refusal


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 8, 8), "hw"),
        ((4, 8, 9, 3), "hwc"),
        ((4, 3, 8, 9), "chw"),
        ((4, 3, 4, 4), "either"),
        ((4, 9), "any"),
    ],
)
def test_npy(tmp_path, rng, shape, axes):
    pixels = rng.integers(0, 256, shape, dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    split = open_source(str(tmp_path / "x.npy")).splits["train"]
    assert split.labels is None
    assert [split.read(index).axes for index in range(len(split))] == [axes] * 4
    np.testing.assert_array_equal(np.stack([split.read(index).values for index in range(4)]), pixels)
    assert split.name_of(2) == f"sample 2 of {tmp_path}/x.npy"
    assert isinstance(split.values, np.memmap)  # not in memory


NAMES = [
    ("x_train", "y_train", "x_test", "y_test"),
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("Xtrain", "ytrain", "Xtest", "ytest"),
]


@pytest.mark.parametrize("names", NAMES)
def test_npz_names(tmp_path, rng, names):
    x, y = rng.integers(0, 256, (5, 8, 8), dtype=np.uint8), np.arange(5)
    arrays = dict(zip(names, (x, y, x[:3] + 1, y[:3].reshape(-1, 1)), strict=True))
    np.savez_compressed(tmp_path / "d.npz", **arrays, classes=np.array(list("abcde")))
    source = open_source(str(tmp_path / "d.npz"))
    assert source.classes == tuple("abcde")
    assert {name: split.labels.tolist() for name, split in source.splits.items()} == {
        "train": [0, 1, 2, 3, 4],
        "test": [0, 1, 2],
    }
    np.testing.assert_array_equal(source.splits["train"].read(4).values, x[4])
    np.testing.assert_array_equal(source.splits["test"].read(2).values, x[2] + 1)


def test_npz_without_names(tmp_path, rng):
    np.savez(tmp_path / "d.npz", rng.random((5, 8, 8)), np.arange(5))
    split = open_source(str(tmp_path / "d.npz")).splits["train"]
    assert (len(split), split.labels.tolist()) == (5, [0, 1, 2, 3, 4])


def test_npz_with_other_arrays_beside(tmp_path, rng):
    x = rng.random((5, 8, 8))
    np.savez(
        tmp_path / "d.npz", x_train=x, y_train=np.arange(5), train_ids=np.arange(5) + 100, train_masks=x > 1
    )
    assert open_source(str(tmp_path / "d.npz")).splits["train"].labels.tolist() == [0, 1, 2, 3, 4]


def test_an_empty_split_is_left_out(tmp_path, rng):
    np.savez(tmp_path / "d.npz", x_train=rng.random((5, 8, 8)), x_test=np.empty((0, 8, 8)))
    assert set(open_source(str(tmp_path / "d.npz")).splits) == {"train"}


X = np.zeros((5, 8, 8), dtype=np.uint8)
UNFIT = {
    "labels of the wrong length": ({"x_train": X, "y_train": np.arange(4)}, "5 samples and 4 labels"),
    "one-hot labels": ({"x_train": X, "y_train": np.eye(5, dtype=int)}, "one whole number per sample"),
    "float labels": ({"x_train": X, "y_train": np.arange(5.0)}, "one whole number per sample"),
    "objects": ({"x_train": np.array([X, None], dtype=object)}, "arrays of objects"),
    "two sets of images": ({"photos": X, "masks": X}, "name one of them x_train"),
    "no images": ({"y_train": np.arange(5)}, "holds no array of images"),
    "text": ({"x_train": np.array([["a", "b"]])}, "is not a set of images"),
    "no samples": ({"x_train": X[:0]}, "has no images"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_npz(tmp_path, case):
    arrays, reason = UNFIT[case]
    np.savez(tmp_path / "d.npz", **arrays)
    assert reason in refusal(tmp_path / "d.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_npz(tmp_path, rng, save):
    path = tmp_path / "d.npz"
    save(path, x_train=rng.integers(0, 9, (50, 8, 8)))
    whole = path.read_bytes()
    for content in (b"", b"PK", whole[:-40], whole[:200], whole[:100] + b"\0\xff" * 40 + whole[180:]):
        path.write_bytes(content)
        assert "not a readable .npz file" in refusal(path)


def test_unfit_npy(tmp_path):
    path = tmp_path / "x.npy"
    for array, reason in [
        (np.array([{}, []], dtype=object), "arrays of objects"),
        (np.arange(5), "is not a set of images"),
        (np.array(["text"]), "is not a set of images"),
    ]:
        np.save(path, array)
        assert reason in refusal(path)
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-1])
    assert "not a readable .npy file" in refusal(path)


def test_numpy_files_under_the_wrong_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=X)
    (tmp_path / "a.npz").rename(tmp_path / "x.npy")
    assert "name it .npz" in refusal(tmp_path / "x.npy")
    np.save(tmp_path / "b.npy", X)
    (tmp_path / "b.npy").rename(tmp_path / "b.npz")
    assert "name it .npy" in refusal(tmp_path / "b.npz")


@pytest.mark.parametrize("labels", [np.full(3, np.nan), np.zeros(7, np.int64), np.full(3, 10**9)])
def test_who_wants_no_labels_is_not_stopped_by_them(tmp_path, labels):
    np.savez(tmp_path / "d.npz", x_train=np.zeros((3, 4, 4), np.uint8), y_train=labels)
    with pytest.raises(SourceError, match="label"):
        open_source(tmp_path / "d.npz")
    assert open_source(tmp_path / "d.npz", labels=False).splits["train"].labels is None
