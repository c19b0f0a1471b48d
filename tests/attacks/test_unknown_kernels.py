"""Kernels that nobody knows: images up to a mix of colours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from attackers import CIFAR, CORES, Delivery, cifar, fashion, needs_cifar, random_conv, seed_of
from images import smooth_images
from mole.attacks.tools.views import NotApplicableError
from mole.attacks.unknown_kernels import find_kernels, run
from strategies import fewer_examples


def explained(delivery: Delivery, weight: np.ndarray) -> float:
    """Share of the true kernels that mixtures of the found ones explain."""
    colours = weight.shape[1]
    true = delivery.layer.ungrouped_weight[delivery.order].astype(np.float64)
    found, wanted = (np.moveaxis(kernels, 1, 0).reshape(colours, -1).T for kernels in (weight, true))
    left = wanted - found @ np.linalg.lstsq(found, wanted, rcond=None)[0]
    return 1 - float(np.linalg.norm(left) / np.linalg.norm(wanted))


@needs_cifar
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kappa", [1, 3])
def test_cifar_comes_back_up_to_its_colours(rng, core, kappa):
    sample = cifar("x_train", 6400) if core == "whitened" else None
    layer = random_conv(rng, 64, (3, 32, 32), padding=1)
    delivery = Delivery(layer, cifar("x_test", 128), kappa=kappa, core=core, sample=sample)
    score = delivery.score(run(delivery.stolen, rng), CIFAR)
    assert score.psnr > 40
    assert score.reidentified == 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("core", ["orthogonal", "gaussian"])
def test_clothes_come_back_up_to_contrast(rng, core, bias):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1, bias=bias)
    delivery = Delivery(layer, fashion("x_private", 32), kappa=2, core=core)
    finding = run(delivery.stolen, rng)
    assert delivery.score(finding).psnr > 40
    assert "contrast stays open" in finding.words
    # Contrast does stay open: as they come, the images are not the truth.
    assert np.abs(finding.images - delivery.plain).max() > 0.1


def test_the_layer_of_another_key_gives_nothing(rng):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1)
    delivery, other = (Delivery(layer, fashion("x_private", 32)) for _ in range(2))
    delivery._common["augmented"] = other.stolen.augmented
    score = delivery.score(run(delivery.stolen, rng))
    assert score.psnr < 20
    assert abs(score.correlation) < 0.2


def test_a_random_matrix_has_no_kernels(rng):
    """The twin of the row space itself: where no convolution was, none is found."""
    delivery = Delivery(random_conv(rng, 16, (1, 12, 12), padding=1), rng.normal(size=(2, 1, 12, 12)))
    augmented = delivery.stolen.augmented
    noise = rng.normal(size=augmented.matrix.shape)
    fake = mole.AugmentedLayer(
        noise, None, (1, 12, 12), augmented.output_shape, 1, "rows", augmented.key_fingerprint
    )
    delivery._common["augmented"] = fake
    with pytest.raises(NotApplicableError, match="where these end does not show"):
        run(delivery.stolen, rng)


LAYERS = {
    "1 axis": ((2, 60), 8, 5, {"padding": 2}),
    "3 axes": ((1, 9, 9, 9), 6, 2, {}),
    "dilation": ((2, 24, 24), 16, 3, {"dilation": 2, "padding": 2}),
    "groups": ((4, 20, 20), 24, 3, {"groups": 2, "padding": 1}),
    "one pixel": ((3, 10, 10), 8, 1, {}),
    "uneven": ((2, 18, 26), 16, (2, 5), {"padding": ((0, 1), (3, 1))}),
    "large kernel": ((1, 28, 28), 24, 7, {"padding": 3}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_kind_of_stride_one_convolution(rng, name):
    shape, channels, kernel, options = LAYERS[name]
    layer = random_conv(rng, channels, shape, kernel, bias=True, **options)
    delivery = Delivery(layer, rng.normal(size=(4, *shape)), core="gaussian", dtype="float64")
    assert explained(delivery, find_kernels(delivery.stolen, rng).weight) > 0.999
    finding = run(delivery.stolen, rng)
    assert finding.facts["numbers pinned down"] == finding.facts["numbers in an image"]
    assert delivery.score(finding).rmse < 0.05


@given(seed=st.integers(0, 2**32), colours=st.integers(1, 3), spare=st.integers(2, 6))
@fewer_examples(0.15)
def test_random_layers(seed, colours, spare):
    rng = np.random.default_rng(seed)
    layer = random_conv(rng, 4 * colours + spare, (colours, 12, 12), padding=1)
    plain = smooth_images(rng, 4, (colours, 12, 12))
    delivery = Delivery(layer, plain, seed=seed_of(rng), dtype="float64")
    assert explained(delivery, find_kernels(delivery.stolen, rng).weight) > 0.999


def with_empty_edges(rng) -> mole.FirstLayer:
    weight = np.zeros((16, 1, 3, 3))
    weight[:, :, 1, 1] = rng.normal(size=(16, 1))
    return mole.FirstLayer.conv(weight, None, input_shape=(1, 16, 16), padding=1)


def linear(rng) -> mole.FirstLayer:
    return mole.FirstLayer.linear(rng.normal(size=(64, 36)), None, input_shape=(1, 6, 6))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda rng: random_conv(rng, 32, (1, 16, 16), stride=2), "stride of 2x2"),
        (linear, "no kernel that moves"),
        (lambda rng: random_conv(rng, 3, (3, 16, 16), padding=1), "too few channels"),
        (with_empty_edges, "zeros at their edges"),
    ],
    ids=["strides", "linear", "too few channels", "kernels with zeros at their edges"],
)
def test_layers_that_it_declines(rng, make, reason):
    layer = make(rng)
    view = Delivery(layer, rng.normal(size=(2, *layer.input_shape))).stolen
    with pytest.raises(NotApplicableError, match=reason):
        run(view, rng)
