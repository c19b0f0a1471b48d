"""Channel fingerprint and deconvolution: every image back, and a plain word where it cannot be."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import TensorDataset

import mole
from attackers import (
    CIFAR,
    CORES,
    Delivery,
    cifar,
    cifar_labels,
    fashion,
    needs_cifar,
    random_conv,
    seed_of,
)
from images import smooth_images
from mole.attacks.channel_fingerprint import run
from mole.attacks.tools.channel_order import by_bias, by_row_space, by_statistics, find_order
from mole.attacks.tools.views import NotApplicableError
from mole.scheme.convolution import features_of
from mole.torch import export_first_layer, train
from mole.torch.networks import build_network, small_vgg
from strategies import fewer_examples, layer_cases


def same_features(delivery: Delivery, order: np.ndarray) -> bool:
    """Whether an order gives the first layer's features: identical kernels may change places."""
    shuffled = delivery.developer.features(4)
    features = np.empty_like(shuffled)
    features[:, order] = shuffled
    true = features_of(delivery.layer, delivery.plain[:4])
    return np.abs(features - true).max() <= 1e-3 * max(np.abs(true).max(), 1e-6)


@needs_cifar
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kappa", [1, 3])
@pytest.mark.parametrize("kernels", ["random", "trained"])
def test_every_cifar_image_comes_back(rng, trained_on_cifar, core, kappa, kernels):
    layer = trained_on_cifar if kernels == "trained" else random_conv(rng, 64, (3, 32, 32), padding=1)
    sample = cifar("x_train", 6400) if core == "whitened" else None
    delivery = Delivery(layer, cifar("x_test", 256), kappa=kappa, core=core, sample=sample)
    score = delivery.score(run(delivery.developer, rng), CIFAR)
    assert (score.channels, score.reidentified) == (1.0, 1.0)
    assert score.rmse < 1e-2
    assert score.psnr > 40


@pytest.fixture(scope="module")
def trained_on_cifar() -> mole.FirstLayer:
    """A first layer of 64 channels without a bias, after a short training."""
    torch.manual_seed(0)
    head = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*head, small_vgg((64, 16, 16), 10))
    images = cifar("x_train", 2000)
    labels = torch.from_numpy(cifar_labels("y_train", len(images)))
    train(model, TensorDataset(torch.from_numpy(images), labels), epochs=2)
    return export_first_layer(model, input_shape=(3, 32, 32))


def test_trained_kernels_of_the_small_network(rng):
    """Its 16 channels have a bias, which is enough, and a row space, which is enough too."""
    torch.manual_seed(0)
    model = build_network("small_vgg", (1, 28, 28), 10)
    images = torch.from_numpy(fashion("x_public", 1000))
    train(model, TensorDataset(images, (images.mean(dim=(1, 2, 3)) * 3).long() % 10), epochs=2)
    layer = export_first_layer(model, input_shape=(1, 28, 28))
    delivery = Delivery(layer, fashion("x_private", 64), core="gaussian", kappa=2)
    for method in (by_bias, by_row_space):
        assert (method(delivery.developer, rng).order == delivery.order).all()
    assert delivery.score(run(delivery.developer, rng)).rmse < 1e-2


def test_another_layer_finds_nothing(rng):
    """The negative twin: a developer with other kernels than those that were augmented."""
    shape = (1, 28, 28)
    own, other = (random_conv(rng, 24, shape, padding=1) for _ in range(2))
    delivery = Delivery(own, fashion("x_private", 64))
    right = find_order(delivery.developer, rng)
    mistaken = Delivery(own, delivery.plain)
    mistaken.layer = other
    wrong = find_order(mistaken.developer, rng)
    assert right.margin > 1e3
    assert wrong.margin < 3
    score = mistaken.score(run(mistaken.developer, rng))
    assert score.channels < 0.5
    assert score.rmse > 0.5


@pytest.mark.parametrize("channels", [26, 12, 6])
def test_fewer_channels_than_kernel_elements_still_hold_every_pixel(rng, channels):
    layer = random_conv(rng, channels, (3, 20, 20), padding=1)
    delivery = Delivery(layer, smooth_images(rng, 16, (3, 20, 20)))
    finding = run(delivery.developer, rng)
    score = delivery.score(finding)
    assert score.channels == 1
    assert score.rmse < 1e-2
    assert "every number" in finding.words


def test_fewer_channels_than_colours_hold_a_part(rng):
    layer = random_conv(rng, 2, (3, 12, 12), padding=1, bias=True)
    delivery = Delivery(layer, smooth_images(rng, 64, (3, 12, 12)))
    finding = run(delivery.developer, rng)
    assert finding.facts["numbers pinned down"] == 288
    assert "288 of the 432 numbers" in finding.words
    score = delivery.score(finding)
    assert score.channels == 1
    assert 0.1 < score.rmse < 1


def test_equal_numbers_in_the_bias_say_nothing(rng):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1)
    flat = mole.FirstLayer.conv(layer.weight, np.zeros(16), input_shape=(1, 28, 28), padding=1)
    delivery = Delivery(flat, fashion("x_private", 32))
    assert by_bias(delivery.developer, rng) is None
    assert delivery.score(run(delivery.developer, rng)).channels == 1


@pytest.mark.parametrize("options", [{"stride": 2, "padding": 3}, {"stride": (1, 2)}, {"dilation": 2}])
def test_stride_and_dilation(rng, options):
    layer = random_conv(rng, 32, (3, 24, 20), 7 if "padding" in options else 3, **options)
    delivery = Delivery(layer, smooth_images(rng, 16, (3, 24, 20)), kappa=2)
    finding = run(delivery.developer, rng)
    score = delivery.score(finding)
    assert score.channels == 1
    assert finding.facts["order found by"] == "the row space of the augmented layer"
    if finding.facts["numbers pinned down"] == 3 * 24 * 20:
        assert score.rmse < 1e-2


@pytest.mark.parametrize("shape", [(2, 200), (1, 8, 9, 10)])
def test_one_and_three_axes(rng, shape):
    delivery = Delivery(random_conv(rng, 12, shape, padding=1), rng.normal(size=(8, *shape)))
    score = delivery.score(run(delivery.developer, rng))
    assert score.channels == 1
    assert score.rmse < 1e-2


class TestLayersWhoseRowSpaceShowsNothing:
    """A patch embedding, and a Linear layer, with no more channels than they see pixels."""

    def patches(self, rng, **options) -> mole.FirstLayer:
        return random_conv(rng, 12, (1, 28, 28), 4, stride=4, **options)

    def test_a_bias_gives_the_order_all_the_same(self, rng):
        delivery = Delivery(self.patches(rng, bias=True), fashion("x_private", 64))
        assert delivery.score(run(delivery.developer, rng)).channels == 1

    def test_statistics_do(self, rng):
        delivery = Delivery(self.patches(rng), fashion("x_private", 1000), public=fashion("x_public", 1000))
        finding = run(delivery.developer, rng)
        assert finding.facts["order found by"] == "statistics of its features"
        assert delivery.score(finding).channels == 1

    def test_statistics_of_something_else_do_not(self, rng):
        noise = rng.normal(size=(1000, 1, 28, 28)).astype(np.float32)
        delivery = Delivery(self.patches(rng), fashion("x_private", 1000), public=noise)
        assert delivery.score(run(delivery.developer, rng)).channels < 0.8

    def test_without_either_it_declines(self, rng):
        for kappa in (1, 7):  # bands that are copies of each other add nothing
            delivery = Delivery(self.patches(rng), fashion("x_private", 4), kappa=kappa)
            with pytest.raises(NotApplicableError, match="without public images"):
                run(delivery.developer, rng)

    def test_linear(self, rng):
        weight = rng.normal(size=(40, 784)).astype(np.float32)
        layer = mole.FirstLayer.linear(weight, None, input_shape=(1, 28, 28))
        plain = fashion("x_private", 1000)
        with pytest.raises(NotApplicableError):
            run(Delivery(layer, plain[:4]).developer, rng)
        public = Delivery(layer, plain, public=fashion("x_public", 1000))
        assert public.score(run(public.developer, rng)).channels > 0.9

    def test_bands_of_a_small_core_show_the_order_of_a_linear_layer(self, rng):
        layer = mole.FirstLayer.linear(rng.normal(size=(40, 784)), None, input_shape=(1, 28, 28))
        delivery = Delivery(layer, fashion("x_private", 4), kappa=28)
        finding = run(delivery.developer, rng)
        assert finding.facts["order found by"] == "the row space of the augmented layer"
        assert delivery.score(finding).channels == 1


@given(case=layer_cases(), seed=st.integers(0, 2**32))
@fewer_examples(0.5)
def test_random_layers_give_their_order_or_decline(case, seed):
    rng = np.random.default_rng(seed)
    delivery = Delivery(case.layer, case.batch, kappa=case.kappa, seed=seed_of(rng), dtype="float64")
    try:
        found = find_order(delivery.developer, rng)
    except NotApplicableError:
        assert case.layer.bias is None or case.layer.channels > len(np.unique(case.layer.bias))
        return
    assert same_features(delivery, found.order)


def test_statistics_need_public_images(rng):
    delivery = Delivery(random_conv(rng, 8, (1, 28, 28)), fashion("x_private", 8))
    assert by_statistics(delivery.developer, rng) is None
