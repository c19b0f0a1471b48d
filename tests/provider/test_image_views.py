"""Views of training images: secret, reproducible, each a row of its own; and each image comes back once."""

import hashlib
import json
import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

import mole
from deliveries import SHAPE, contents, make_key, make_layer, unfinish, write_npz
from mole.audit.from_delivery import subject_of_delivery
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.manifest import Manifest
from mole.exchange.verify import verify
from mole.limits import MAX_VIEWS
from mole.provider.image_names import Originals
from mole.provider.image_views import ITSELF, PADDING, drawn_views, view_of
from mole.provider.ledger import Ledger
from mole.provider.plan import Plan
from mole.provider.recover import recover, row_table
from mole.provider.row_numbers import RowNumbers
from mole.provider.shard_maker import ShardMaker
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore
from secrets_kept import DEVELOPER, RECIPIENT

pytestmark = pytest.mark.filterwarnings("ignore:each image of split")


def deliver(*given, **options):
    return mole.deliver(*given, **{"rows_per_shard": 16, **options})


@pytest.fixture
def place(tmp_path):
    """20 images to learn from and 5 for tests, and a delivery with 3 views of the former."""
    write_npz(tmp_path / "data.npz", train=20, test=5)
    made = deliver(tmp_path / "data.npz", make_layer(), make_key(), tmp_path / "out", views=3)
    return tmp_path, made.delivery


def test_every_row_is_a_shifted_or_mirrored_image_and_one_of_each_is_the_image(place):
    folder, delivery = place
    with np.load(folder / "data.npz") as arrays:
        images, labels = arrays["x_train"].transpose(0, 3, 1, 2), arrays["y_train"]
    key, found = make_key(), dict[int, list[int]]()
    numbers = RowNumbers.of(delivery, key, "train")
    for shard in delivery.shards("train"):
        plain = key.morphing.unmorph(shard.values.reshape(-1, *SHAPE))
        pixels = np.rint(255 * make_layer().normalisation.undo(plain)).astype(int)
        for row, label, row_id in zip(pixels, shard.labels, shard.row_ids, strict=True):
            (sample,) = numbers.samples_of([row_id])
            assert label == labels[sample]
            kinds = [kind for kind in range(MAX_VIEWS) if np.array_equal(oracle(images[sample], kind), row)]
            assert len(kinds) == 1
            found.setdefault(sample, []).extend(kinds)
    assert sorted(found) == list(range(20))
    assert all(len(set(kinds)) == 3 and ITSELF in kinds for kinds in found.values())
    assert len({kind for kinds in found.values() for kind in kinds}) > 20  # not the same for all
    test = delivery.split("test")
    assert (test.rows, test.views) == (5, 1)


def oracle(image, kind):
    """By Pillow's way of cutting: outside the image it is black."""
    mirrored, (top, left) = kind // 81, divmod(kind % 81, 9)
    box = (left - PADDING, top - PADDING, left - PADDING + 8, top - PADDING + 8)
    cut = Image.fromarray(image.transpose(1, 2, 0)).crop(box)
    cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else cut
    return np.asarray(cut).transpose(2, 0, 1)


def test_views_keep_the_number_type():
    for dtype in (np.uint8, np.uint16, np.float32):
        image = np.arange(192, dtype=dtype).reshape(SHAPE)
        assert view_of(image, 5).dtype == dtype
        assert np.array_equal(view_of(image, ITSELF), image)


def test_views_are_dealt_like_cards_as_the_format_says():
    kinds = drawn_views(make_key(), "d/train/5", samples=5, views=7)
    words = make_key().stream("views/d/train/5").take(5 * 6).tolist()
    for row in kinds.tolist():
        left = [kind for kind in range(MAX_VIEWS) if kind != ITSELF]
        assert row[0] == ITSELF
        for place, kind in enumerate(row[1:]):
            drawn = place + words.pop(0) % (len(left) - place)
            left[place], left[drawn] = left[drawn], left[place]
            assert kind == left[place]


def test_all_views_there_are_come_once():
    kinds = drawn_views(make_key(), "d/train/4", samples=4, views=MAX_VIEWS)
    assert all(sorted(row) == list(range(MAX_VIEWS)) for row in kinds.tolist())
    few = drawn_views(make_key(), "d/train/3000", samples=3000, views=2)[:, 1]
    counts = np.bincount(few, minlength=MAX_VIEWS)
    assert counts[ITSELF] == 0
    assert counts[counts > 0].size == MAX_VIEWS - 1
    assert counts.max() < 50  # of about 19
    other = drawn_views(make_key(1), "d/train/3000", samples=3000, views=2)[:, 1]
    assert 0.9 < np.mean(few != other) < 1  # another key draws others
    again = drawn_views(make_key(), "d/train/3000", samples=3000, views=2)[:, 1]
    assert np.array_equal(few, again)


def test_it_is_checked_and_recorded(place):
    _, delivery = place
    checks = verify(delivery)
    assert all(check.holds for check in checks), checks
    assert "6 of 6 shards" not in checks[-1].detail  # 60 rows in 4 shards, and 5 in one
    assert "5 of 5 shards were tested, on one row each" in checks[-1].detail
    train = delivery.split("train")
    assert (train.samples, train.views, train.rows) == (20, 3, 60)
    content = json.loads((delivery.store.folder / "manifest.json").read_text())
    assert content["version"] == 5
    assert content["splits"]["train"]["views"] == 3
    assert "views" not in content["splits"]["test"]
    assert (
        "Each image of `train` stands there as 3 rows" in (delivery.store.folder / "README.md").read_text()
    )
    assert sum(entry.rows for entry in Ledger(make_key().fingerprint).entries()
               if entry.delivery_id == delivery.manifest.delivery_id) == 65  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_each_image_comes_back_once(place, dtype):
    folder, _ = place
    out = folder / dtype
    deliver(folder / "data.npz", make_layer(), make_key(), out, views=4, dtype=dtype)
    seen = []
    arrays = recover(out, make_key(), progress=lambda *now: seen.append(now))
    assert seen[-1] == (25, 25)
    with np.load(folder / "data.npz") as truth:
        for split in ("train", "test"):
            pixels = arrays[f"x_{split}"].transpose(0, 2, 3, 1).astype(int)
            assert pixels.shape == truth[f"x_{split}"].shape
            assert np.abs(pixels - truth[f"x_{split}"]).max() <= (8 if dtype == "int8" else 0)
            assert np.array_equal(arrays[f"y_{split}"], truth[f"y_{split}"])
    assert all(check.holds for check in verify(out))


def test_the_table_of_ids_tells_views_apart(place):
    folder, delivery = place
    table = row_table(delivery, make_key(), folder / "data.npz").to_pydict()
    assert list(table) == ["split", "index", "view", "name", "row_id"]
    assert table["split"] == ["test"] * 5 + ["train"] * 60
    assert table["index"] == [*range(5), *np.repeat(range(20), 3).tolist()]
    assert table["view"] == [0] * 5 + [0, 1, 2] * 20
    assert table["name"][5 + 3].startswith("sample 1 of")
    assert len(set(table["row_id"])) == 65
    source = open_source(str(folder / "data.npz"))
    assert len(Originals.of(source, delivery, make_key()).names["train"]) == 20


def test_it_resumes_and_gives_the_same_bytes(place):
    folder, delivery = place
    whole = contents(delivery.store.folder)
    shutil.copytree(folder / "out", folder / "again")
    store = LocalStore(folder / "again")
    unfinish(mole.Delivery.open(store))
    for name in ("data/train-00001-of-00004.parquet", "probes.safetensors"):
        store.remove(name)
    deliver(folder / "data.npz", make_layer(), make_key(), store, views=3)
    assert contents(folder / "again") == whole
    assert deliver(folder / "data.npz", make_layer(), make_key(), store, views=3).was_complete
    with pytest.raises(DeliveryError, match="made with another number of views"):
        deliver(folder / "data.npz", make_layer(), make_key(), store, views=4)
    with pytest.raises(DeliveryError, match="made with another number of views"):
        deliver(folder / "data.npz", make_layer(), make_key(), store)


def test_one_view_is_the_delivery_as_ever(place):
    folder, _ = place
    deliver(folder / "data.npz", make_layer(), make_key(), folder / "one", views=1)
    deliver(folder / "data.npz", make_layer(), make_key(), folder / "none")
    assert contents(folder / "one") == contents(folder / "none")
    assert Manifest.read(LocalStore(folder / "one")).version == 2
    assert "view" not in row_table(folder / "one", make_key()).column_names


def test_a_bad_image_has_no_views(tmp_path, rng):
    for index in range(6):
        path = tmp_path / "photos" / "train" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)).save(path)
    broken = (tmp_path / "photos" / "train" / "3.png").read_bytes()
    (tmp_path / "photos" / "train" / "3.png").write_bytes(broken[:-200])
    made = deliver(
        tmp_path / "photos", make_layer(), make_key(), tmp_path / "out", views=3, skip_bad=True,
        resize="crop", rows_per_shard=4,
    )  # fmt: skip
    assert [bad.name.rsplit("/", 1)[1] for bad in made.skipped] == ["3.png"]
    assert made.delivery.split("train").rows == 15
    assert all(check.holds for check in verify(made.delivery))
    assert recover(made.delivery, make_key())["x_train"].shape == (5, *SHAPE)


def test_the_audit_compares_with_the_views_themselves(place):
    folder, delivery = place
    source = open_source(str(folder / "data.npz"))
    subject = subject_of_delivery(delivery, key=make_key(), layer=make_layer(), truth=source)
    assert subject.warnings == ()  # the source is the delivery's
    recovered = make_key().morphing.unmorph(subject.morphed)
    assert np.allclose(subject.truth.plain, recovered[: len(subject.truth.plain)], atol=1e-3)


def test_what_views_cost_is_said(place):
    folder, _ = place
    with pytest.warns(
        MoleWarning, match="leaves as 5 views: 100 rows of 20 images. Attacks need many rows"
    ):
        deliver(folder / "data.npz", make_layer(), make_key(), folder / "five", views=5)


@pytest.mark.parametrize("views", [0, -1, MAX_VIEWS + 1, 2.5])
def test_a_wrong_number_is_refused(place, views):
    folder, _ = place
    with pytest.raises(ParameterError, match=rf"views is {views}: give a number from 1 to 162"):
        deliver(folder / "data.npz", make_layer(), make_key(), folder / "no", views=views)
    assert not (folder / "no").exists()


def test_views_are_for_images_to_learn_from(tmp_path, rng):
    np.savez(tmp_path / "test.npz", x_test=rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8))
    with pytest.raises(ParameterError, match="split 'test' is not for learning"):
        deliver(tmp_path / "test.npz", make_layer(), make_key(), tmp_path / "no", views=2)
    np.savez(tmp_path / "rows.npz", x_train=rng.normal(size=(5, 16)))
    linear = mole.FirstLayer.linear(rng.normal(size=(4, 16)), None, input_shape=(16,))
    key = mole.MorphKey.generate((16,), insecure_seed=bytes(32))
    with pytest.raises(ParameterError, match="the samples are 16, which is not an image: leave out views"):
        deliver(tmp_path / "rows.npz", linear, key, tmp_path / "no", views=2)
    np.savez(tmp_path / "first.npz", x_mine=rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8))
    made = deliver(tmp_path / "first.npz", make_layer(), make_key(), tmp_path / "yes", views=2)
    assert made.delivery.manifest.rows == 10


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "its views and its 'plain_shape' do not fit its version"),
        ({"version": 4}, "do not fit its version|'column'"),
        ({"train": {"views": 1}}, "'views' is not a whole number from 2 to 162"),
        ({"train": {"views": 163}}, "'views' is not a whole number"),
        ({"train": {"views": "3"}}, "'views' is not a whole number"),
        ({"train": {"rows": 61}}, "'rows' is not a whole number from 0 to 60"),
        ({"train": {"samples": 1 << 28}}, "'samples' is not a whole number"),
        ({"train": {"views": None}}, "'views'"),
    ],
)
def test_a_manifest_that_lies_about_views_is_refused(place, change, why):
    _, delivery = place
    content = json.loads((delivery.store.folder / "manifest.json").read_text())
    content["splits"]["train"] |= change.pop("train", {})
    text = json.dumps({**content, **change, "seal": "0" * 64}, indent=1).encode() + b"\n"
    text = text.replace(b"0" * 64, hashlib.sha256(text).hexdigest().encode(), 1)
    with pytest.raises(DeliveryError, match=why):
        Manifest.parse(text, "manifest.json")


def test_sealed_views_open_for_their_receiver_and_their_key(place):
    folder, _ = place
    made = deliver(
        folder / "data.npz", make_layer(), make_key(), folder / "sealed", views=3, recipients=[RECIPIENT]
    )
    opened = mole.Delivery.open(folder / "sealed", identity=str(DEVELOPER))
    assert opened.manifest == made.delivery.manifest
    assert all(check.holds for check in verify(opened))
    assert len(recover(folder / "sealed", make_key())["x_train"]) == 20


def test_another_machine_makes_the_same_rows(place):
    """A plan travels without the views: whoever has the key draws them again."""
    folder, delivery = place
    address = str(folder / "data.npz")
    plan = Plan(open_source(address), make_key(), make_layer(), address, rows_per_shard=16, views=3)
    there = pickle.loads(pickle.dumps(plan))
    assert there.delivery_id == delivery.manifest.delivery_id
    maker = ShardMaker(there, there.open_source(), make_key())
    for job, shard in zip(there.jobs, [*delivery.shards("test"), *delivery.shards("train")], strict=True):
        made = maker.make(job, delivery.encoding)
        np.testing.assert_allclose(made.values, shard.values, rtol=0, atol=1e-5)  # last bits: by threads
        assert list(made.row_ids) == list(shard.row_ids)
        assert np.array_equal(made.labels, shard.labels)
