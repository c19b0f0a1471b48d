"""Protected deliveries: fresh noise of the right size, on a grid, and what does not go with it."""

import numpy as np
import onnx
import pytest

import mole
from deliveries import SMALL, make_layer
from fronts import FEATURES, feature_key, feature_layer, front_model, write_map_front
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.verify import verify
from mole.protection.channel import clip, grid_step
from mole.protection.front_file import read_front
from mole.protection.front_runner import FrontRunner
from mole.provider import protector
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from mole.provider.row_numbers import RowNumbers
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from secrets_kept import DEVELOPER, RECIPIENT


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
    # Of 1,200 numbers, each bound is 6 deviations or more away: chance does not reach it.
    assert noise.std() == pytest.approx(certificate.sigma, rel=0.13)
    assert abs(noise.mean()) < 0.2 * certificate.sigma
    assert np.abs(np.corrcoef(noise.ravel(), clean.ravel())[0, 1]) < 0.2


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
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.2  # 7 deviations of 1,200 numbers


def test_noise_does_not_follow_from_the_key(pair):
    """The same names and the same key, and other noise all the same."""
    rows = [released(one) for one in pair]
    assert not np.isclose(rows[0], rows[1]).mean() > 0.05


def test_a_delivery_of_images_is_named_by_them_and_a_protected_one_is_not(place, pair, tmp_path):
    """An ordinary delivery's name is a keyed digest of its data."""
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
        lambda clipped, certificate, noise: clipped,
        lambda clipped, certificate, noise: clipped + 0.5 * certificate.sigma * normals(noise, clipped),
        lambda clipped, certificate, noise: clipped + certificate.sigma * noise.normals(clipped.shape[1]),
        lambda clipped, certificate, noise: clipped + certificate.sigma * one_direction(noise, clipped),
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
    assert by_epsilon.certificates["train"].epsilon() == pytest.approx(1.0, rel=1e-3)
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
        ((make_layer(), feature_key()), "gives 12 features and the first layer takes 3x8x8"),
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
