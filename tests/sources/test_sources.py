"""Image folders, NumPy files, idx and CIFAR: real files, with the pixels and labels that went into them."""

import gzip
import os
import pickle
import re
import struct
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mole.errors import MoleError, SourceError
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError

LOSSLESS = (".png", ".bmp", ".tif", ".tiff", ".webp")


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


# Folders


def test_class_folders_give_labels(tmp_path, rng):
    images = {("cat", "1.png"): rgb(rng), ("cat", "2.png"): rgb(rng), ("dog", "1.png"): rgb(rng)}
    for (name, file), pixels in images.items():
        save_image(tmp_path / name / file, pixels)
    source = open_source(str(tmp_path))
    assert (source.kind, source.classes, set(source.splits)) == ("image folder", ("cat", "dog"), {"train"})
    split = source.splits["train"]
    assert split.labels.tolist() == [0, 0, 1]
    assert split.extra["file_name"] == ["1.png", "2.png", "1.png"]
    for index, pixels in enumerate(images.values()):
        assert split.read(index).axes == "hwc"
        np.testing.assert_array_equal(split.read(index).values, pixels)
    assert split.name_of(2) == f"{tmp_path}/dog/1.png"


def test_split_folders_give_splits_with_the_same_classes(tmp_path, rng):
    for where in ("train/cat/1.png", "train/dog/1.png", "Test/dog/9.png", "Test/eel/9.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert source.classes == ("cat", "dog", "eel")
    assert {name: split.labels.tolist() for name, split in source.splits.items()} == {
        "train": [0, 1],
        "test": [1, 2],
    }


def test_a_split_spelled_in_two_ways_loses_nothing(tmp_path, rng):
    for where in ("train/cat/1.png", "Train/cat/2.png"):
        save_image(tmp_path / where, rgb(rng))
    assert open_source(str(tmp_path)).splits["train"].labels.tolist() == [0, 0]


def test_a_split_without_classes_does_not_take_the_labels_of_another(tmp_path, rng):
    for where in ("train/cat/1.png", "train/dog/1.png", "test/1.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert source.splits["train"].labels.tolist() == [0, 1]
    assert source.splits["test"].labels is None


@pytest.mark.parametrize("name", ["dev", "val", "valid", "validation"])
def test_a_third_split_is_known_by_its_name(tmp_path, rng, name):
    for split in ("train", "test", name):
        save_image(tmp_path / split / "cat" / "1.png", rgb(rng))
        save_image(tmp_path / split / "dog" / "1.png", rgb(rng))
    source = open_source(str(tmp_path))
    assert set(source.splits) == {"train", "test", name}
    assert source.classes == ("cat", "dog")


def test_a_class_may_be_called_dev(tmp_path, rng):
    for where in ("dev/1.png", "ops/1.png"):
        save_image(tmp_path / where, rgb(rng))
    assert open_source(str(tmp_path)).classes == ("dev", "ops")
    save_image(tmp_path / "alone" / "dev" / "1.png", rgb(rng))
    assert open_source(str(tmp_path / "alone")).classes == ("dev",)


@pytest.mark.parametrize(
    "folders", [("train", "test", "extra"), ("train/cat", "extra/cat"), ("train", "test/cat", "extra")]
)
def test_splits_and_classes_side_by_side_are_refused(tmp_path, rng, folders):
    for folder in folders:
        save_image(tmp_path / folder / "1.png", rgb(rng))
    message = refusal(tmp_path)
    assert "has folders named like splits" in message
    assert "next to others (extra)" in message


def test_images_of_other_kinds_are_named(tmp_path, rng):
    for where in ("cat/1.png", "cat/2.png"):
        save_image(tmp_path / where, rgb(rng))
    for name in ("3.GIF", "4.heic"):
        (tmp_path / "cat" / name).write_bytes(b"an image of another kind")
    (tmp_path / "notes.txt").write_text("no image")
    source = open_source(str(tmp_path))
    assert source.count == 2
    assert source.unread == (f"{tmp_path}/cat/3.GIF", f"{tmp_path}/cat/4.heic")


def test_a_class_may_be_called_train(tmp_path, rng):
    for where in ("train/1.png", "ship/1.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert (source.classes, source.splits["train"].labels.tolist()) == (("ship", "train"), [0, 1])


def test_a_flat_folder_has_no_labels(tmp_path, rng):
    save_image(tmp_path / "1.png", rgb(rng))
    source = open_source(str(tmp_path))
    assert source.classes is None
    assert source.splits["train"].labels is None


def test_images_in_and_out_of_class_folders_are_refused(tmp_path, rng):
    for where in ("cat/1.png", "preview.png"):
        save_image(tmp_path / where, rgb(rng))
    assert "put every image into one, or none" in refusal(tmp_path, named=tmp_path / "preview.png")


def test_hidden_files_are_left_out_and_links_followed(tmp_path, rng):
    pixels = rgb(rng)
    save_image(tmp_path / "elsewhere" / "1.png", pixels)
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "circle").symlink_to(folder)
    save_image(folder / ".cache" / "2.png", pixels)
    (folder / "cat" / "._1.png").write_bytes(b"a file that macOS makes")
    np.testing.assert_array_equal(only_sample(folder).values, pixels)


@pytest.mark.parametrize("name", ["a::b", "with space", "[x]*?", "percent%20", "ümlaut"])
def test_folders_of_any_name_are_opened(tmp_path, rng, name):
    pixels = rgb(rng)
    save_image(tmp_path / name / "1.png", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path / name).values, pixels)


def test_relative_paths_and_file_urls(tmp_path, rng, monkeypatch):
    save_image(tmp_path / "photos" / "cat" / "1.png", rgb(rng))
    monkeypatch.chdir(tmp_path)
    for path in ("photos", "./photos/", "photos/../photos", f"file://{tmp_path}/photos"):
        assert open_source(path).classes == ("cat",)


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


# Image files


@pytest.mark.parametrize("suffix", LOSSLESS)
def test_lossless_formats_keep_every_pixel(tmp_path, rng, suffix):
    pixels = rgb(rng)
    save_image(tmp_path / f"1{suffix.upper()}", pixels, **({"lossless": True} if suffix == ".webp" else {}))
    values, axes = only_sample(tmp_path)
    assert axes == "hwc"
    np.testing.assert_array_equal(values, pixels)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg"])
def test_jpeg_is_close(tmp_path, suffix):
    ramp = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)
    save_image(tmp_path / f"1{suffix}", ramp, quality=100)
    values, axes = only_sample(tmp_path)
    assert axes == "hw"
    assert np.abs(values.astype(int) - ramp).max() <= 2


def test_grey_palette_and_two_colour_images(tmp_path, rng):
    grey = rng.integers(0, 256, (5, 7), dtype=np.uint8)
    save_image(tmp_path / "grey" / "1.png", grey)
    np.testing.assert_array_equal(only_sample(tmp_path / "grey").values, grey)

    indices = rng.integers(0, 3, (5, 7), dtype=np.uint8)
    colours = np.array([[255, 0, 0], [0, 200, 10], [1, 2, 3]], dtype=np.uint8)
    palette = Image.new("P", (7, 5))
    palette.putdata(indices.reshape(-1).tolist())
    palette.putpalette(colours.reshape(-1).tolist())
    (tmp_path / "palette").mkdir()
    palette.save(tmp_path / "palette" / "1.png")
    np.testing.assert_array_equal(only_sample(tmp_path / "palette").values, colours[indices])

    bits = rng.integers(0, 2, (5, 7)).astype(bool)
    save_image(tmp_path / "bits" / "1.png", bits)
    np.testing.assert_array_equal(only_sample(tmp_path / "bits").values, bits * np.uint8(255))


@pytest.mark.parametrize("channels", [2, 4])
def test_transparency_is_kept_for_the_preparation_to_decide(tmp_path, rng, channels):
    pixels = rng.integers(0, 256, (5, 7, channels), dtype=np.uint8)
    save_image(tmp_path / "1.png", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path).values, pixels)


def test_a_transparent_colour_is_transparency_too(tmp_path):
    save_image(tmp_path / "grey" / "1.png", np.array([[7, 8]], dtype=np.uint8), transparency=7)
    np.testing.assert_array_equal(only_sample(tmp_path / "grey").values, [[[7, 0], [8, 255]]])
    colours = np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8)
    save_image(tmp_path / "rgb" / "1.png", colours, transparency=(4, 5, 6))
    np.testing.assert_array_equal(only_sample(tmp_path / "rgb").values, [[[1, 2, 3, 255], [4, 5, 6, 0]]])


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_stay_sixteen_bits(tmp_path, rng, suffix):
    pixels = rng.integers(0, 65536, (5, 7), dtype=np.uint16)
    save_image(tmp_path / f"1{suffix}", pixels)
    values, axes = only_sample(tmp_path)
    assert (values.dtype, axes) == (np.uint16, "hw")
    np.testing.assert_array_equal(values, pixels)


def test_float_images(tmp_path, rng):
    pixels = rng.random((5, 7), dtype=np.float32)
    save_image(tmp_path / "1.tif", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path).values, pixels)


UPRIGHT = {
    1: lambda pixels: pixels,
    3: lambda pixels: pixels[::-1, ::-1],
    6: lambda pixels: np.rot90(pixels, -1),
    8: lambda pixels: np.rot90(pixels, 1),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation_is_undone(tmp_path, rng, orientation):
    pixels, exif = rgb(rng), Image.Exif()
    exif[0x0112] = orientation
    save_image(tmp_path / "1.png", pixels, exif=exif)
    np.testing.assert_array_equal(only_sample(tmp_path).values, UPRIGHT[orientation](pixels))


def bad_sample(path):
    with pytest.raises(BadSampleError) as caught:
        only_sample(path.parent)
    assert caught.value.name == str(path)
    return checked_message(caught.value, path)


def test_pages_are_not_dropped_in_silence(tmp_path, rng):
    first, second = Image.fromarray(rgb(rng)), Image.fromarray(rgb(rng))
    first.save(tmp_path / "1.tif", save_all=True, append_images=[second])
    assert "2 pages" in bad_sample(tmp_path / "1.tif")


@pytest.mark.parametrize("suffix", [*LOSSLESS, ".jpg"])
def test_cut_off_images_are_bad_samples(tmp_path, rng, suffix):
    path = tmp_path / f"1{suffix}"
    save_image(path, rgb(rng, side=40))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    bad_sample(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n"])
def test_files_that_are_no_images_are_bad_samples(tmp_path, content):
    (tmp_path / "1.png").write_bytes(content)
    bad_sample(tmp_path / "1.png")


def test_a_file_that_vanished_is_a_bad_sample(tmp_path, rng):
    (tmp_path / "1.png").symlink_to(tmp_path / "nowhere")
    message = bad_sample(tmp_path / "1.png")
    assert message.count(str(tmp_path)) == 1
    assert "No such file" in message


@pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("suffix", [*LOSSLESS, ".jpg"])
def test_damaged_images_give_pixels_or_a_bad_sample(tmp_path, rng, suffix):
    """A flipped byte may change the pixels, but nothing except a BadSampleError comes out."""
    path = tmp_path / f"1{suffix}"
    save_image(path, rgb(rng, side=12))
    whole = path.read_bytes()
    (split,) = open_source(str(tmp_path)).splits.values()
    refused = 0
    for _ in range(150):
        content = bytearray(whole)
        content[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(content)
        try:
            split.read(0)
        except BadSampleError:
            refused += 1
    assert refused


# What cannot be opened at all


def test_what_is_not_there(tmp_path):
    assert "is not there" in refusal(tmp_path / "nothing")


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


# NumPy files


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


# MNIST's idx


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def mnist(tmp_path, rng):
    arrays = {
        "train-images-idx3-ubyte": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "train-labels-idx1-ubyte": rng.integers(0, 10, 6, dtype=np.uint8),
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (2, 28, 28), dtype=np.uint8),
        "t10k-labels-idx1-ubyte": rng.integers(0, 10, 2, dtype=np.uint8),
    }
    return tmp_path, arrays


@pytest.mark.parametrize("kinds", [("",), (".gz",), ("", ".gz")])
def test_idx(mnist, kinds):
    folder, arrays = mnist
    for name, array in arrays.items():
        for kind in kinds:
            pack = gzip.compress if kind else bytes
            (folder / f"{name}{kind}").write_bytes(pack(idx_bytes(array)))
    source = open_source(str(folder))
    for split, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = arrays[f"{prefix}-images-idx3-ubyte"], arrays[f"{prefix}-labels-idx1-ubyte"]
        assert source.splits[split].labels.tolist() == labels.tolist()
        for index, image in enumerate(images):
            np.testing.assert_array_equal(source.splits[split].read(index).values, image)


def test_two_sets_of_idx_files(mnist):
    folder, arrays = mnist
    for name in ("a", "b"):
        (folder / name).mkdir()
        file = "train-images-idx3-ubyte"
        (folder / name / file).write_bytes(idx_bytes(arrays[file]))
    assert "more than one data set" in refusal(folder)


def test_damaged_idx(mnist):
    folder, arrays = mnist
    plain = idx_bytes(arrays["train-images-idx3-ubyte"])
    packed = gzip.compress(plain)
    damaged = (
        plain[:-1],
        plain[:3],
        b"",
        b"\0\0\x0d" + plain[3:],
        packed[:-9],
        packed[:40] + b"\xff" * 9 + packed[49:],
    )
    path = folder / "train-images-idx3-ubyte"
    for content in damaged:
        path.write_bytes(content)
        assert "not an idx file" in refusal(path.parent, named=path)


# CIFAR's batches


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
    refusal(tmp_path, named=tmp_path / "test_batch")


def test_cut_off_cifar(tmp_path, cifar):
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"data": cifar[0], "labels": cifar[1]})[:-100])
    assert "cut off" in refusal(tmp_path, named=tmp_path / "test_batch")
