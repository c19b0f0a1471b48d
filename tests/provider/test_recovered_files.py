"""What `recover` writes: arrays, a table or images, each for its owner alone and complete."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mole
from chosen_layout import cut
from command import files_in
from deliveries import contents
from mole.errors import DeliveryError, FileError, ParameterError
from mole.provider.deliver import deliver
from mole.provider.image_names import ImageNames, Originals
from mole.provider.recover import largest_error, recover
from mole.provider.recovered_files import image_table, named, save_images, save_table
from mole.provider.recovered_forms import check_folder_free, check_form, form_of
from mole.sources.opening import open_source
from mole.storage import atomic
from source_files import save_image

SHAPE = (3, 4, 4)


def layer_and_key(shape=SHAPE, normalisation=None):
    weight = np.random.default_rng(1).normal(size=(4, shape[0], 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, padding=1, normalisation=normalisation)
    return layer, mole.MorphKey.generate(shape, insecure_seed=bytes(32), **cut())


def made(source, out, shape=SHAPE, normalisation=None, **options):
    layer, key = layer_and_key(shape, normalisation)
    return deliver(source, layer, key, out, class_names=True, **options).delivery, key


@pytest.fixture
def photos(tmp_path, rng):
    for name in ("train/cat/1.png", "train/dog/1.png", "train/dog/2.tif", "test/cat/x.bmp"):
        save_image(tmp_path / "photos" / name, rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    return tmp_path / "photos"


def all_names(delivery, arrays, originals=None):
    return ImageNames(list(delivery.manifest.splits), arrays, delivery.manifest.classes, originals)


def test_images_lie_where_they_lay(photos, tmp_path):
    delivery, key = made(photos, tmp_path / "d")
    arrays, originals = recover(delivery, key), Originals.of(open_source(photos), delivery, key)
    assert save_images(arrays, all_names(delivery, arrays, originals), tmp_path / "back") == 4
    assert files_in(tmp_path / "back") - {"train", "test", "train/cat", "train/dog", "test/cat"} == {
        "train/cat/1.png", "train/dog/1.png", "train/dog/2.png", "test/cat/x.png"
    }  # fmt: skip
    for path in photos.rglob("*.*"):
        back = (tmp_path / "back" / path.relative_to(photos)).with_suffix(".png")
        assert np.array_equal(np.asarray(Image.open(back)), np.asarray(Image.open(path)))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "back").rglob("*") if path.is_file()}
    folders = [tmp_path / "back", *(path for path in (tmp_path / "back").rglob("*") if path.is_dir())]
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_without_the_source_images_are_numbered(photos, tmp_path):
    delivery, key = made(photos, tmp_path / "d", labels=False)
    arrays = recover(delivery, key)
    save_images(arrays, all_names(delivery, arrays), tmp_path / "back")
    assert files_in(tmp_path / "back") == {
        "train",
        "test",
        "train/0.png",
        "train/1.png",
        "train/2.png",
        "test/0.png",
    }


def test_one_split_needs_no_folder_and_two_files_of_one_name_two(photos, tmp_path):
    delivery, key = made(photos / "train", tmp_path / "d", labels=False)
    arrays, originals = recover(delivery, key), Originals.of(open_source(photos / "train"), delivery, key)
    save_images(arrays, all_names(delivery, arrays, originals), tmp_path / "back")
    assert files_in(tmp_path / "back") == {"1.png", "1 (1).png", "2.png"}


@pytest.mark.parametrize(
    "files",
    [
        ["a (2).png", "a.jpg", "a.png"],
        ["A (2).PNG", "a.jpg", "a.png"],
        ["a (3) (3).png", "a (3).png", "a.png", "A.jpg"],
        ["1 (2).png", "..", "1.png"],
    ],
)
def test_no_image_takes_the_place_of_another(tmp_path, files):
    pixels = np.arange(len(files), dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 2, 2), np.uint8)
    arrays = {"x_train": pixels}
    names = ImageNames(["train"], arrays, None, Originals({}, {"train": files}, {}))
    assert len({str(place).casefold() for place in names.of("train")}) == len(files)
    assert save_images(arrays, names, tmp_path / "back") == len(files)
    found = [np.asarray(Image.open(file))[0, 0] for file in (tmp_path / "back").iterdir()]
    assert sorted(found) == list(range(len(files)))


def test_sixteen_bits_stay_sixteen(tmp_path, rng):
    values = rng.integers(0, 1 << 16, (3, 4, 4), dtype=np.uint16)
    np.savez(tmp_path / "d.npz", x_train=values, y_train=np.array([7, 0, 7]))
    delivery, key = made(tmp_path / "d.npz", tmp_path / "d", (1, 4, 4))
    check_form(delivery, "images")
    arrays = recover(delivery, key)
    save_images(arrays, all_names(delivery, arrays), tmp_path / "back")
    for place, image in zip(("7/0.png", "0/1.png", "7/2.png"), values, strict=True):
        with Image.open(tmp_path / "back" / place) as found:
            assert found.mode == "I;16"
            np.testing.assert_array_equal(np.asarray(found), image)


def test_frames_have_numbers(tmp_path):
    from dicom_files import save

    stack = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    save(tmp_path / "scans" / "1.2.840.5", stack)
    save(tmp_path / "scans" / "b.dcm", stack[0])
    delivery, key = made(tmp_path / "scans", tmp_path / "d", (1, 4, 4))
    originals = Originals.of(open_source(tmp_path / "scans"), delivery, key)
    places = list(all_names(delivery, recover(delivery, key), originals).of("train"))
    assert list(map(str, places)) == ["1.2.840.5-0000.png", "1.2.840.5-0001.png", "b-0000.png"]


@pytest.mark.parametrize(
    "name", ["../../cat", "/etc", "..", "a/b", ".hidden", "a\x1bb", "x" * 300, "", "a\\b", "\0"]
)
def test_no_name_of_a_delivery_leads_out_of_the_folder(tmp_path, name):
    images, labels = np.zeros((3, 1, 2, 2), np.uint8), np.array([0, 1, -5])
    files = Originals({}, {name or "s": [name, f"{name}.png", "ok"]}, {})
    for split, classes in ((name or "s", (name, "dog")), ("train", ("cat", name))):
        arrays = {f"x_{split}": images, f"y_{split}": labels}
        places = list(ImageNames([split, "other"], arrays, classes, files).of(split))
        assert len({str(place).casefold() for place in places}) == 3
        for place in places:
            assert not place.is_absolute()
            assert not {"..", "etc", ""} & set(place.parts)
            assert all(part.isprintable() and len(part) < 255 and "\\" not in part for part in place.parts)


@pytest.mark.parametrize("out", ["r.zip", "r.png", "r.npz.gz", "r.csv", "photos.v2"])
def test_other_endings_are_refused_with_the_choices(out):
    with pytest.raises(
        ParameterError, match=r"something\.npz, something\.parquet, or a folder, with a slash"
    ):
        form_of(out)


def test_floats_are_refused_as_images_and_mixed_types_as_a_table(tmp_path, rng):
    np.savez(tmp_path / "d.npz", x_train=rng.random((2, 3, 4, 4)), x_test=np.zeros((2, 3, 4, 4), np.uint8))
    delivery, _ = made(tmp_path / "d.npz", tmp_path / "d")
    with pytest.raises(
        DeliveryError, match=r"cannot hold float64 of 3x4x4: write an \.npz or a \.parquet file"
    ):
        check_form(delivery, "images")
    with pytest.raises(DeliveryError, match=r"test: uint8, train: float64\): write an \.npz file"):
        check_form(delivery, "parquet")
    check_form(delivery, "npz")
    manifest = replace(
        delivery.manifest, splits={"test": replace(delivery.split("test"), source_dtype="uint16")}
    )
    with pytest.raises(DeliveryError, match="cannot hold uint16 of 3x4x4"):
        check_form(replace(delivery, manifest=manifest), "images")


def test_a_table_of_images_is_a_source_again(photos, tmp_path):
    delivery, key = made(photos, tmp_path / "d")
    arrays = named(recover(delivery, key), Originals.of(open_source(photos), delivery, key))
    table = image_table(arrays, list(delivery.manifest.splits), delivery.manifest.classes)
    save_table(table, tmp_path / "r.parquet")
    assert stat.S_IMODE((tmp_path / "r.parquet").stat().st_mode) == 0o600
    rows = pq.read_table(tmp_path / "r.parquet")
    assert rows["shape"].to_pylist() == [[3, 4, 4]] * 4
    found = dict(zip(rows["name"].to_pylist(), rows["class_name"].to_pylist(), strict=True))
    assert found == {str(path): path.parent.name for path in photos.rglob("*.*")}
    again = open_source(tmp_path / "r.parquet").splits["train"]
    assert again.labels.tolist() == rows["label"].to_pylist()
    for index, name in enumerate(rows["name"].to_pylist()):
        assert np.array_equal(again.read(index).values, np.asarray(Image.open(name)).transpose(2, 0, 1))


def test_what_is_there_is_not_lost(tmp_path):
    arrays = {"x_train": np.zeros((2, 1, 2, 2), np.uint8)}
    names, out = ImageNames(["train"], arrays), tmp_path / "back"
    save_images(arrays, names, out)
    with pytest.raises(FileError, match="exists already: choose another name, or replace it"):
        save_images(arrays, names, out)
    (out / "0.png").write_bytes(b"older")
    (out / "5.png").write_bytes(b"older")
    save_images(arrays, names, out, force=True)
    assert files_in(tmp_path) == {"back", "back/0.png", "back/1.png"}
    (out / "letter.txt").write_text("precious")
    with pytest.raises(FileError, match=r"holds more than PNG files \(letter\.txt\), and stays"):
        save_images(arrays, names, out, force=True)
    assert (out / "letter.txt").read_text() == "precious"
    (tmp_path / "link").symlink_to(out)
    for path in (tmp_path / "link", out / "letter.txt"):
        with pytest.raises(FileError, match="is not a folder"):
            check_folder_free(path, force=True)


@pytest.mark.parametrize("where", ["a file", "the old one", "the new one"])
def test_an_interruption_loses_no_older_images(tmp_path, monkeypatch, where):
    arrays = {"x_train": np.zeros((2, 1, 2, 2), np.uint8)}
    names, out = ImageNames(["train"], arrays), tmp_path / "back"
    save_images(arrays, names, out)
    (out / "5.png").write_bytes(b"older")
    before, rename, flush, done = contents(out), Path.rename, atomic._flush, []

    def interrupt(what):
        if what == where and not done:
            done.append(what)
            raise KeyboardInterrupt

    def renamed(self, target):
        interrupt("the new one" if target == out else "")
        rename(self, target)
        interrupt("the old one" if self == out else "")

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(atomic, "_flush", lambda file: interrupt("a file") or flush(file))
    with pytest.raises(KeyboardInterrupt):
        save_images(arrays, names, out, force=True)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["back"]


def test_what_arrives_meanwhile_stays(tmp_path, monkeypatch):
    arrays = {"x_train": np.zeros((2, 1, 2, 2), np.uint8)}
    names, out = ImageNames(["train"], arrays), tmp_path / "back"
    save_images(arrays, names, out)
    flush = atomic._flush
    monkeypatch.setattr(atomic, "_flush", lambda file: (out / "letter.txt").write_text("!") and flush(file))
    with pytest.raises(FileError, match="holds more than PNG files"):
        save_images(arrays, names, out, force=True)
    assert files_in(tmp_path) == {"back", "back/0.png", "back/1.png", "back/letter.txt"}


def test_a_failure_leaves_nothing(tmp_path):
    arrays = {"x_train": np.zeros((2, 5, 2, 2), np.uint8)}  # no PNG has five channels
    with pytest.raises(TypeError, match="Cannot handle this data type"):
        save_images(arrays, ImageNames(["train"], arrays), tmp_path / "back")
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("numbers", "normalisation"),
    [("uint8", None), ("uint16", None), ("uint8", mole.Normalisation((0.5,), (0.1,)))],
)
def test_the_error_of_eight_bits_is_what_it_is_said_to_be(tmp_path, rng, numbers, normalisation):
    side, top = 16, np.iinfo(numbers).max
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    waves = [np.sin(a * x + b * y) for a, b in rng.uniform(1, 9, (200, 2))]
    images = np.rint((np.stack(waves) / 2 + 0.5)[:, np.newaxis] * top).astype(numbers)
    np.savez(tmp_path / "d.npz", x_train=images)
    delivery, key = made(tmp_path / "d.npz", tmp_path / "d", (1, side, side), normalisation, dtype="int8")
    arrays = recover(delivery, key)
    true = np.abs(arrays["x_train"].astype(float) - images).max()
    assert true > 0
    assert 0.6 * true <= largest_error(delivery, key) <= 1.6 * true
    exact, _ = made(tmp_path / "d.npz", tmp_path / "e", (1, side, side), normalisation)
    assert largest_error(exact, key) == 0
    assert np.array_equal(recover(exact, key)["x_train"], images)


def test_another_source_is_refused(photos, tmp_path):
    delivery, key = made(photos, tmp_path / "d")
    next(Path(photos).rglob("*.bmp")).rename(photos / "test" / "cat" / "y.png")
    save_image(photos / "test" / "cat" / "z.png", np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(DeliveryError, match="made from 1 samples in split 'test', and the data has 2"):
        Originals.of(open_source(photos), delivery, key)
