"""Only what was counted leaves: images that change, or come and go, between two looks at them."""

import numpy as np
import pytest
from PIL import Image

from fronts import feature_key, feature_layer, write_front
from mole.errors import DeliveryError, SourceError
from mole.provider.counted_source import NamingSplit, image_digest
from mole.provider.counting import Counting
from mole.provider.deliver import deliver
from mole.provider.ledger import Ledger
from mole.provider.protect import Protect
from mole.provider.spending import Spending
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError

IMAGES = 12


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))


@pytest.fixture
def photos(tmp_path, rng):
    (tmp_path / "photos").mkdir()
    write_front(tmp_path / "front.onnx")
    for number in range(IMAGES):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number:02}.png")
    return tmp_path / "photos"


@pytest.fixture
def give(photos):
    def given(**options):
        protect = Protect(photos.parent / "front.onnx", bits=1.0, budget=1.0)
        out = photos.parent / "out"
        return deliver(photos, feature_layer(), feature_key(), out, protect=protect, **options)

    return given


def damage(path):
    """Pixels that cannot be decoded, behind a good header."""
    content = bytearray(path.read_bytes())
    start = content.index(b"IDAT") + 4
    content[start : start + 4] = b"\xff" * 4
    path.write_bytes(content)


def totals():
    key = feature_key()
    return Spending.kept(Ledger(key.fingerprint, key.path)).totals()


@pytest.fixture
def after_counting(monkeypatch):
    """Have something happen between the look that counts and the one that makes rows."""

    def happens(what):
        real = Counting.check_budget

        def look(self):
            most = real(self)
            what()
            return most

        monkeypatch.setattr(Counting, "check_budget", look)

    return happens


def test_damaged_images_are_all_named_before_anything_is_counted(give, photos):
    for name in ("03.png", "07.png"):
        damage(photos / name)
    with pytest.raises(
        SourceError, match=r"2 images cannot be used .*03\.png.*07\.png.*: give skip_bad=True"
    ):
        give()
    assert totals() == {}
    made = give(skip_bad=True)
    assert (made.delivery.manifest.rows, made.spent) == (IMAGES - 2, pytest.approx(1.0))
    assert [error.name[-6:] for error in made.skipped] == ["03.png", "07.png"]


def test_an_image_that_is_whole_again_when_its_row_is_made_does_not_leave(give, photos, after_counting):
    whole = (photos / "05.png").read_bytes()
    damage(photos / "05.png")
    after_counting(lambda: (photos / "05.png").write_bytes(whole))
    made = give(skip_bad=True)
    assert made.delivery.manifest.rows == len(totals()) == IMAGES - 1


def test_another_image_in_the_place_of_one_that_was_counted_does_not_leave(give, photos, after_counting):
    after_counting(lambda: (photos / "05.png").write_bytes((photos / "06.png").read_bytes()))
    with pytest.raises(BadSampleError, match=r"05\.png cannot be used: it changed while the delivery"):
        give()


def test_it_is_left_out_where_bad_images_are(give, photos, after_counting):
    Image.new("RGB", (8, 8)).save(photos.parent / "black.png")
    after_counting(lambda: (photos / "05.png").write_bytes((photos.parent / "black.png").read_bytes()))
    made = give(skip_bad=True)
    assert made.delivery.manifest.rows == IMAGES - 1


def test_nothing_is_refused_that_stays_as_it_is(give):
    assert give().delivery.manifest.rows == len(totals()) == IMAGES


def test_a_file_of_arrays_that_changes_is_noticed(photos, after_counting, rng):
    images = photos.parent / "images.npy"
    np.save(images, rng.integers(0, 256, (IMAGES, 8, 8, 3), dtype=np.uint8))

    def change():
        np.load(images, mmap_mode="r+")[5] = 7

    after_counting(change)
    with pytest.raises(BadSampleError, match=r"sample 5 .* changed while"):
        deliver(
            images, feature_layer(), feature_key(), photos.parent / "out",
            protect=Protect(photos.parent / "front.onnx", bits=1.0),
        )  # fmt: skip


def test_what_names_a_sample_comes_of_the_same_look_as_its_pixels(photos):
    key = feature_key()
    split = NamingSplit(open_source(photos, labels=False).splits["train"], key)
    first = split.read(3).values
    Image.new("RGB", (8, 8)).save(photos / split.name_of(3).rpartition("/")[2])
    assert split.digests == {3: image_digest(first, key)}


def test_an_image_whose_copy_is_there_later_on_counts_twice():
    """One of two copies could not be read when the delivery began."""
    key = feature_key()
    spending = Spending.beside(Ledger(key.fingerprint, key.path))
    spending.spend("one", {"copy": 1.0}, 2.0)
    assert spending.most_after("one", {"copy": 2.0}, 2.0) == 2.0
    with pytest.raises(DeliveryError, match="up to 2 bits"):
        spending.spend("one", {"copy": 2.0}, 1.0)
    spending.spend("one", {"copy": 2.0}, 2.0)
    assert spending.totals() == {"copy": 2.0}
