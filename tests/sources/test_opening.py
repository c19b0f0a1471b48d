"""Opening a source: what is refused, and the fingerprint that follows its content."""

import os
import pickle
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mole.sources.opening import open_source
from source_files import idx_bytes, refusal, rgb, save_image


def test_what_is_not_there(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nothing")


def test_an_empty_folder(tmp_path):
    assert "is empty" in refusal(tmp_path)


def test_a_folder_without_images(tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    assert "has no images" in refusal(tmp_path)


def test_a_file_of_another_kind(tmp_path, rng):
    (tmp_path / "notes.txt").write_text("no data set")
    assert "not of a kind that can be read" in refusal(tmp_path / "notes.txt")
    save_image(tmp_path / "1.png", rgb(rng))
    assert "give its folder" in refusal(tmp_path / "1.png")


def test_an_unknown_protocol():
    assert "cannot be opened" in refusal("carrier-pigeon://loft/photos")


# Fingerprints


def in_folder(tmp_path, pixels):
    save_image(tmp_path / "photos" / "1.bmp", pixels[0])
    return tmp_path / "photos"


def in_npy(tmp_path, pixels):
    np.save(tmp_path / "x.npy", pixels)
    return tmp_path / "x.npy"


def in_npz(tmp_path, pixels):
    np.savez(tmp_path / "x.npz", x=pixels)
    return tmp_path / "x.npz"


def in_idx(tmp_path, pixels):
    (tmp_path / "idx").mkdir(exist_ok=True)
    (tmp_path / "idx" / "train-images-idx3-ubyte").write_bytes(idx_bytes(pixels[..., 0].copy()))
    return tmp_path / "idx"


def in_cifar(tmp_path, pixels):
    (tmp_path / "cifar").mkdir(exist_ok=True)
    batch = {"data": np.resize(pixels, (2, 3072)), "labels": [0, 1]}
    (tmp_path / "cifar" / "test_batch").write_bytes(pickle.dumps(batch))
    return tmp_path / "cifar"


def in_parquet(tmp_path, pixels):
    pq.write_table(pa.table({"image": [image.tobytes() for image in pixels]}), tmp_path / "d.parquet")
    return tmp_path / "d.parquet"


KINDS_OF_SOURCE = [in_folder, in_npy, in_npz, in_idx, in_cifar, in_parquet]


@pytest.mark.parametrize("make", KINDS_OF_SOURCE)
def test_the_fingerprint_follows_the_content(tmp_path, rng, make):
    one, two = rng.integers(0, 256, (2, 4, 6, 6, 3), dtype=np.uint8)
    path = make(tmp_path, one)
    files = [path] if path.is_file() else list(path.iterdir())
    before, sizes = open_source(str(path)).fingerprint, [file.stat().st_size for file in files]
    assert open_source(str(path)).fingerprint == before
    time.sleep(0.02)  # longer than the clock of a file system ticks
    make(tmp_path, two)
    assert [file.stat().st_size for file in files] == sizes
    assert open_source(str(path)).fingerprint != before


@pytest.mark.parametrize("make", [in_npz, in_idx, in_cifar])
def test_where_files_are_read_whole_their_time_does_not_matter(tmp_path, rng, make):
    one, two = rng.integers(0, 256, (2, 4, 6, 6, 3), dtype=np.uint8)
    path = make(tmp_path, one)
    (file,) = [path] if path.is_file() else path.iterdir()
    before, times = open_source(str(path)).fingerprint, (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    make(tmp_path, two)
    os.utime(file, ns=times)
    assert open_source(str(path)).fingerprint != before
    make(tmp_path, one)
    assert open_source(str(path)).fingerprint == before


def test_a_source_may_be_moved(tmp_path, rng):
    path = in_folder(tmp_path, rng.integers(0, 256, (1, 6, 6, 3), dtype=np.uint8))
    before = open_source(str(path)).fingerprint
    path.rename(tmp_path / "elsewhere")
    assert open_source(str(tmp_path / "elsewhere")).fingerprint == before
    (tmp_path / "elsewhere" / "1.bmp").rename(tmp_path / "elsewhere" / "2.bmp")
    assert open_source(str(tmp_path / "elsewhere")).fingerprint != before
