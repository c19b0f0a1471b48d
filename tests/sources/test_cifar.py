"""CIFAR's Python batches: what they hold, and that a pickle runs no code."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from mole.sources.opening import open_source
from source_files import refusal


def as_python_2_wrote_it(batch):
    """Pickles of that age name NumPy's modules as they were then."""
    return pickle.dumps(batch, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


@pytest.fixture
def cifar(rng):
    return rng.integers(0, 256, (6, 3072), dtype=np.uint8), [3, 1, 4, 1, 5, 0]


def test_cifar_10(tmp_path, cifar):
    data, labels = cifar
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for number, part in ((1, slice(0, 2)), (2, slice(2, 4))):
        batch = {"data": data[part], "labels": labels[part], "batch_label": "x", "filenames": ["a", "b"]}
        (folder / f"data_batch_{number}").write_bytes(as_python_2_wrote_it(batch))
    (folder / "test_batch").write_bytes(pickle.dumps({"data": data[4:], "labels": labels[4:]}))
    names = ["plane", "car", "bird", "cat", "deer", "dog"]
    (folder / "batches.meta").write_bytes(as_python_2_wrote_it({"label_names": names}))
    source = open_source(str(tmp_path))
    assert source.classes == tuple(names)
    assert source.splits["train"].labels.tolist() == [3, 1, 4, 1]
    assert source.splits["test"].labels.tolist() == [5, 0]
    values, axes = source.splits["train"].read(3)
    assert axes == "chw"
    np.testing.assert_array_equal(values, data[3].reshape(3, 32, 32))


def test_cifar_100(tmp_path, cifar):
    data, labels = cifar
    batch = {"data": data, "fine_labels": labels, "coarse_labels": [0] * 6}
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(as_python_2_wrote_it(batch))
    (tmp_path / "meta").write_bytes(as_python_2_wrote_it({"fine_label_names": list("abcdef")}))
    source = open_source(str(tmp_path))
    assert source.classes == tuple("abcdef")
    assert source.splits["test"].labels.tolist() == labels


class Evil:
    """A pickle that makes a folder when it is loaded."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_runs_no_code(tmp_path, cifar):
    trace = tmp_path / "trace"
    folder = tmp_path / "cifar"
    folder.mkdir()
    batch = pickle.dumps({"data": cifar[0], "labels": cifar[1], "extra": Evil(trace)})
    (folder / "test_batch").write_bytes(batch)
    assert "not one of CIFAR's files" in refusal(folder, named=folder / "test_batch")
    assert not trace.exists()
    pickle.loads(batch)
    assert trace.exists()  # so the test above could have failed


@pytest.mark.parametrize(
    "batch",
    [
        {"data": np.zeros((2, 3072), np.uint8), "labels": [1]},
        {"data": np.zeros((1, 3071), np.uint8), "labels": [1]},
        {"data": np.zeros((1, 3072)), "labels": [1]},
        {"data": np.zeros((1, 3072), np.uint8)},
        {"data": np.zeros((2, 3072), np.uint8), "labels": [[1], [1, 2]]},
        [1, 2],
    ],
)
def test_unfit_cifar(tmp_path, batch):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch))
    message = refusal(tmp_path, named=tmp_path / "test_batch")
    assert message.endswith("is not one of CIFAR's files, or it is cut off: get it again")


def test_cut_off_cifar(tmp_path, cifar):
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"data": cifar[0], "labels": cifar[1]})[:-100])
    assert "cut off" in refusal(tmp_path, named=tmp_path / "test_batch")


def forged_pointers(count: int) -> bytes:
    """A pickle with a list of an array of objects, made of plain bytes: each is a pointer to nowhere."""
    forged = (
        b"cnumpy\nndarray\n((I%d\ntVO\nB" % count + (8 * count).to_bytes(4, "little") + b"A" * 8 * count
    )
    return b"(dVdata\n(l" + forged + b"tRasVlabels\n(lI1\nas."


def test_an_array_of_forged_pointers_is_refused(tmp_path):
    """In a process of its own: a reader that builds that array dies of it."""
    (tmp_path / "test_batch").write_bytes(forged_pointers(4))
    program = f"from mole.sources.opening import open_source; open_source({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not one of CIFAR's files" in done.stderr


BATCH = {"data": np.zeros((2, 3072), np.uint8), "labels": [1, 0]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"u1", b"O8"),
        (b"u1", b"f8"),
        (b"M\x00\x0c", b"M\x01\x0c"),  # 3073 elements to a row
        (b"_reconstruct", b"scalar      "),
        (b"K\x01K\x00e", b"K\x01]e    "),  # a list among the labels
    ],
)
def test_changed_pickles_of_arrays(tmp_path, old, new):
    whole = pickle.dumps(BATCH, protocol=2)
    assert old in whole
    (tmp_path / "test_batch").write_bytes(whole)
    assert open_source(str(tmp_path)).count == 2
    (tmp_path / "test_batch").write_bytes(whole.replace(old, new, 1))
    assert "not one of CIFAR's files" in refusal(tmp_path, named=tmp_path / "test_batch")


def test_a_memory_of_a_pickle_costs_what_it_holds(tmp_path):
    """Python's own reader makes room for four billion entries here."""
    (tmp_path / "test_batch").write_bytes(b"\x80\x02}r\xff\xff\xff\xff.")
    assert "not one of CIFAR's files" in refusal(tmp_path, named=tmp_path / "test_batch")


def test_labels_may_be_an_array_of_any_whole_numbers(tmp_path, cifar):
    for order in ("<i4", ">i8"):
        batch = {"data": np.asfortranarray(cifar[0]), "labels": np.array(cifar[1], dtype=order)}
        (tmp_path / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
        split = open_source(str(tmp_path)).splits["test"]
        assert split.labels.tolist() == cifar[1]
        np.testing.assert_array_equal(split.read(3).values.ravel(), cifar[0][3])


def test_a_name_that_is_a_deep_tuple(tmp_path):
    """In a process of its own: a reader that looks it up recurses in C until the process dies."""
    (tmp_path / "test_batch").write_bytes(b"\x80\x04)" + b"\x85" * 400_000 + b"\x8c\x01a\x93.")
    program = f"from mole.sources.opening import open_source; open_source({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not one of CIFAR's files" in done.stderr


def batch_of(shape: bytes, content: bytes, labels: bytes = b"]K\x00a") -> bytes:
    """A pickle of a batch whose array has a shape and bytes of our choice."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01" + shape
        + b"cnumpy\ndtype\nX\x02\0\0\0u1\x85R(K\x03X\x01\0\0\0|tb\x89B"
        + len(content).to_bytes(4, "little") + content + b"tb"
    )  # fmt: skip
    return b"\x80\x02}X\x04\0\0\0data" + array + b"sX\x06\0\0\0labels" + labels.replace(b"@", array) + b"s."


HUGE = b"\x8b" + (1 << 17).to_bytes(4, "little") + b"\x7f" * (1 << 17)  # a number of a million bits


@pytest.mark.parametrize(
    ("shape", "content"),
    [
        (b"(" + b"K\x01" * 100 + b"M\x00\x0ct", bytes(3072)),
        (b"K\x00I1" + b"0" * 30 + b"\n\x86", b""),
        (b"(" + HUGE + b"q\x00" + b"h\x00" * 10_000 + b"t", b""),
    ],
    ids=["a hundred axes", "a side of 10^30", "a product of a billion digits"],
)
def test_shapes_that_cannot_be(tmp_path, shape, content):
    (tmp_path / "test_batch").write_bytes(batch_of(b"K\x01M\x00\x0c\x86", bytes(3072)))
    assert open_source(str(tmp_path)).count == 1
    (tmp_path / "test_batch").write_bytes(batch_of(shape, content))
    assert "not one of CIFAR's files" in refusal(tmp_path, named=tmp_path / "test_batch")


def test_labels_without_an_axis(tmp_path):
    (tmp_path / "test_batch").write_bytes(batch_of(b")", bytes(1), labels=b"@"))
    assert "not one of CIFAR's files" in refusal(tmp_path, named=tmp_path / "test_batch")
