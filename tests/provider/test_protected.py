"""Protected deliveries: fresh noise of the right size, on a grid; nothing else comes from the images."""

from contextlib import suppress

import numpy as np
import onnx
import pytest

import mole
from deliveries import SMALL, contents, make_layer, write_npz
from fronts import FEATURES, feature_key, feature_layer, front_model, write_front, write_map_front
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.shards import Encoding, save_encoding
from mole.exchange.verify import verify
from mole.protection.channel import clip, grid_step
from mole.protection.front_file import read_front
from mole.protection.front_runner import FrontRunner
from mole.provider import counting, delivery_maker, local_engine, protector, shard_maker, witnesses
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from mole.provider.row_numbers import RowNumbers
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from secrets_kept import DEVELOPER, RECIPIENT


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protected")
    write_npz(folder / "data.npz")
    write_front(folder / "front.onnx")
    return folder


@pytest.fixture(scope="module")
def protect(place):
    return Protect(place / "front.onnx", bits=1.0)


@pytest.fixture(scope="module")
def pair(place, protect):
    """The same delivery twice, from the same key; whoever uses them leaves them as they were."""
    return [
        deliver(
            place / "data.npz", feature_layer(), feature_key(), place / name, protect=protect, **SMALL
        ).delivery
        for name in ("one", "two")
    ]


@pytest.fixture(scope="module")
def made(pair):
    return pair[0]


@pytest.fixture(scope="module")
def clean(place):
    """The clipped features of the training images, without noise."""
    front = read_front(place / "front.onnx")
    split = open_source(place / "data.npz").splits["train"]
    plain = Preparation(front.input_shape, front.normalisation).plain_samples(split, range(len(split)))
    with FrontRunner(front) as run:
        return clip(run(plain), 1.0)[0]


def released(delivery, key=None):
    """The noisy features of the training images, in the order of the source."""
    key = key or feature_key()
    found = [(shard.row_ids, delivery.encoding.decode(shard.values)) for shard in delivery.shards("train")]
    ids = [one for row_ids, _ in found for one in row_ids]
    rows = key.morphing.unmorph(np.concatenate([rows for _, rows in found]))
    return rows[np.argsort(RowNumbers.of(delivery, key, "train").samples_of(ids))]


def what_fails(delivery, **options):
    return [check.what for check in verify(delivery, **options) if check.holds is False]


def test_rows_are_clipped_features_with_noise_of_the_right_size(clean, made):
    certificate = made.manifest.protection.certificates["train"]
    noise = released(made) - clean
    assert certificate.bits == pytest.approx(1.0)
    assert noise.std() == pytest.approx(certificate.sigma, rel=0.1)
    assert abs(noise.mean()) < 0.1 * certificate.sigma
    assert np.abs(np.corrcoef(noise.ravel(), clean.ravel())[0, 1]) < 0.1


def test_it_verifies_and_its_features_are_those_of_the_first_layer(made):
    assert [check.what for check in verify(made)][-3:] == ["noise", "augmented layer", "data"]
    assert all(check.holds for check in verify(made))
    layer, order = feature_layer(), feature_key().channel_order(7)
    rows = np.concatenate([made.encoding.decode(shard.values) for shard in made.shards("train")])
    features = feature_key().morphing.unmorph(rows) @ layer.weight.T + layer.bias
    assert np.allclose(made.layer().features(rows), features[:, order], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_in_fewer_bits(place, protect, tmp_path, dtype):
    made = deliver(
        place / "data.npz", feature_layer(), feature_key(), tmp_path, dtype=dtype, protect=protect
    )
    assert all(check.holds for check in verify(made.delivery))


def test_values_lie_on_the_grid(made):
    step = grid_step(made.manifest.protection.certificates["train"].sigma)
    off = released(made) / step - np.rint(released(made) / step)
    assert np.abs(off).max() < 1e-3  # what 32 bits round in the product with the core


def test_two_runs_give_different_noise_under_the_same_key(clean, pair):
    noise = [released(one) - clean for one in pair]
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.1


def test_noise_does_not_follow_from_the_key(pair):
    """The same names and the same key, and other noise all the same."""
    rows = [released(one) for one in pair]
    assert not np.isclose(rows[0], rows[1]).mean() > 0.05


@pytest.fixture
def others(place, tmp_path):
    """As many images with the same labels, and not one of them the same, nor of the same number type."""
    arrays = dict(np.load(place / "data.npz"))
    for name in ("x_train", "x_test"):
        arrays[name] = (257 * (255 - arrays[name].astype(np.uint16))) // 3
    np.savez(tmp_path / "others.npz", **arrays)
    return tmp_path / "others.npz"


@pytest.fixture
def rows_of_nothing(monkeypatch):
    """What chance decides is the same in every run, and rows are noise without any features.

    So two deliveries have the same bytes, unless something besides the features of rows depends on images.
    """
    monkeypatch.setattr(counting, "token_hex", lambda count: "0" * 2 * count)

    def noise_alone(clipped, sigma, noise):
        return sigma * np.random.default_rng(len(clipped)).normal(size=clipped.shape)

    monkeypatch.setattr(protector, "release", noise_alone)


class PlugPulledError(Exception):
    """In the place of a power cut."""


@pytest.fixture
def deliver_both(place, protect, others, tmp_path, monkeypatch):
    """Deliver different images to the same place one after the other, for every byte of both deliveries."""

    def both(**options):
        found = []
        for number, data in enumerate((place / "data.npz", others)):
            monkeypatch.setenv("MOLE_STATE", str(tmp_path / f"state{number}"))
            out = tmp_path / "out"
            with suppress(PlugPulledError):
                deliver(data, feature_layer(), feature_key(), out, protect=protect, **SMALL, **options)
            found.append(contents(out))
            out.rename(tmp_path / f"out{number}")
        return found

    return both


@pytest.mark.filterwarnings("ignore::mole.errors.MoleWarning")
@pytest.mark.usefixtures("rows_of_nothing")
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "int8"},
        {"dtype": "float16", "layer_dtype": "float16"},
        {"views": 2},
        {"layer_dtype": None},
    ],
    ids=["8 bits", "16 bits", "views", "requests"],
)
def test_not_a_byte_besides_the_noisy_rows_depends_on_the_images(deliver_both, options):
    one, two = deliver_both(**options)
    assert one == two


@pytest.mark.usefixtures("rows_of_nothing")
def test_nor_does_one_of_an_unfinished_delivery(deliver_both, monkeypatch):
    real, calls = protector.Protector.rows, []

    def rows(self, images, split):
        calls.append(split)
        if len(calls) % 3 == 0:
            raise PlugPulledError
        return real(self, images, split)

    monkeypatch.setattr(protector.Protector, "rows", rows)
    monkeypatch.setattr(local_engine, "processors", lambda: 1)
    one, two = deliver_both()
    in_both = set(one) & set(two)  # which shards were finished by then is chance
    assert "unfinished.json" in in_both
    assert {name: one[name] for name in in_both} == {name: two[name] for name in in_both}


def number_types_left(self, split, rows):
    return rows._replace(plain=self._protector.rows(rows.plain, split))


def witnesses_of_images(self, job, row_id, morphed):
    plain = self._maker.read_row(job, row_id)
    return plain.reshape(1, -1)[:, :FEATURES]


def scales_of_images(self, maker):
    images = maker.read(self._plan.jobs[0]).plain
    encoding = Encoding.fit("int8", 5 * images.reshape(len(images), -1)[:, :FEATURES])
    save_encoding(self._store, encoding)
    return encoding


@pytest.mark.usefixtures("rows_of_nothing")
@pytest.mark.parametrize(
    ("where", "name", "leak"),
    [
        (shard_maker.ShardMaker, "_protected", number_types_left),
        (witnesses.WitnessMaker, "_plain", witnesses_of_images),
        (delivery_maker.DeliveryMaker, "_fit", scales_of_images),
    ],
    ids=["number types", "witnesses", "scales"],
)
def test_a_leak_is_found(deliver_both, monkeypatch, where, name, leak):
    """The negative twin: something is made from images besides the rows."""
    monkeypatch.setattr(where, name, leak)
    one, two = deliver_both(dtype="int8")
    assert one != two


def test_a_delivery_of_images_is_named_by_them_and_a_protected_one_is_not(place, pair, tmp_path):
    """The twin of the test above: an ordinary delivery's name is a keyed digest of its data."""
    plain = [
        deliver(place / "data.npz", make_layer(), mole.MorphKey.generate((3, 8, 8)), tmp_path / name)
        for name in ("a", "b")
    ]
    assert plain[0].delivery.manifest.delivery_id != plain[1].delivery.manifest.delivery_id  # other keys
    assert pair[0].manifest.delivery_id != pair[1].manifest.delivery_id  # the same key


def normals(noise, clipped):
    return noise.normals(clipped.size).reshape(clipped.shape)


def one_direction(noise, clipped):
    """As much in all, and in the first number alone."""
    return np.sqrt(clipped.shape[1]) * noise.normals(len(clipped))[:, None] * np.eye(clipped.shape[1])[0]


@pytest.mark.parametrize(
    "broken",
    [
        lambda clipped, sigma, noise: clipped,
        lambda clipped, sigma, noise: clipped + 0.5 * sigma * normals(noise, clipped),
        lambda clipped, sigma, noise: clipped + sigma * noise.normals(clipped.shape[1]),
        lambda clipped, sigma, noise: clipped + sigma * one_direction(noise, clipped),
    ],
    ids=["no noise", "half of it", "the same for all", "in one direction"],
)
def test_noise_that_is_missing_is_found(place, protect, tmp_path, monkeypatch, broken):
    monkeypatch.setattr(protector, "release", broken)
    made = deliver(place / "data.npz", feature_layer(), feature_key(), tmp_path, protect=protect)
    assert what_fails(made.delivery) == ["noise"]


def test_splits_have_bounds_of_their_own(place, tmp_path):
    protect = Protect(place / "front.onnx", bits={"train": 1.0, "test": 8.0})
    made = deliver(place / "data.npz", feature_layer(), feature_key(), tmp_path, protect=protect)
    certificates = made.delivery.manifest.protection.certificates
    assert {name: round(one.bits, 6) for name, one in certificates.items()} == {"train": 1.0, "test": 8.0}
    assert all(check.holds for check in verify(made.delivery))
    with pytest.raises(ParameterError, match="one for each split, or one for all"):
        deliver(
            place / "data.npz", feature_layer(), feature_key(), tmp_path / "other",
            protect=Protect(place / "front.onnx", bits={"train": 1.0}),
        )  # fmt: skip


def test_sigma_and_epsilon(place, tmp_path):
    by_sigma = Protect(place / "front.onnx", sigma=2.0).terms(read_front(place / "front.onnx"), ["train"])
    assert by_sigma.certificates["train"].sigma == 2.0
    by_epsilon = Protect(place / "front.onnx", epsilon=1.0).terms(
        read_front(place / "front.onnx"), ["train"]
    )
    assert by_epsilon.certificates["train"].epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)
    for amounts in ({}, {"bits": 1.0, "sigma": 1.0}):
        with pytest.raises(ParameterError, match="in one way"):
            Protect(place / "front.onnx", **amounts)


@pytest.mark.parametrize("cut", [{}, {"tile": 2}, {"tile": 3}], ids=["rows", "tiles", "filled tiles"])
def test_feature_maps_are_clipped_as_a_whole_in_every_layout(place, tmp_path, cut):
    maps = (2, 4, 4)
    protect = Protect(write_map_front(tmp_path / "maps.onnx", maps), bits=1.0)
    kernels = np.random.default_rng(0).normal(size=(5, 2, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(kernels, None, input_shape=maps, padding=1)
    key = mole.MorphKey.generate(maps, insecure_seed=bytes(32), **cut)
    made = deliver(place / "data.npz", layer, key, tmp_path / "out", protect=protect).delivery
    assert made.manifest.protection.certificates["train"].features == 32
    assert all(check.holds for check in verify(made))


def test_sealed_and_morphed_besides(place, protect, tmp_path):
    made = deliver(
        place / "data.npz",
        feature_layer(),
        feature_key(),
        tmp_path,
        protect=protect,
        recipients=[RECIPIENT],
    )
    assert made.delivery.is_sealed
    assert not what_fails(tmp_path, identity=str(DEVELOPER))


def test_images_do_not_come_back(made):
    with pytest.raises(DeliveryError, match="cannot be turned back into images: it is protected"):
        mole.recover(made, feature_key())


@pytest.mark.parametrize(
    ("does_not_go", "words"),
    [
        ((make_layer(), feature_key()), "the front gives 12 features and the first layer takes 3x8x8"),
        (
            (feature_layer(), feature_key(core="gaussian")),
            "needs a key with an orthogonal core, and this one's is gaussian",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together(place, protect, tmp_path, does_not_go, words):
    with pytest.raises(ParameterError, match=words):
        deliver(place / "data.npz", *does_not_go, tmp_path / "out", protect=protect)
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_a_front_that_gives_no_numbers_is_told_of(place, tmp_path):
    weight = np.full((192, FEATURES), np.nan, np.float32)
    onnx.save(front_model(weight), tmp_path / "front.onnx")
    with pytest.warns(MoleWarning, match=r"1,560 values that are no finite numbers"):
        made = deliver(
            place / "data.npz", feature_layer(), feature_key(), tmp_path / "out",
            protect=Protect(tmp_path / "front.onnx", bits=1.0),
        )  # fmt: skip
    assert all(check.holds for check in verify(made.delivery))
