"""Looking at feature maps: pictures without any trick."""

import numpy as np
import pytest
from hypothesis import given

import mole
from attackers import CIFAR, Delivery, cifar, fashion, needs_cifar, random_conv
from mole.attacks.feature_view import _as_input, picture_likeness, run
from mole.attacks.tools.views import LayerGeometry, NotApplicableError
from strategies import convolution_cases


@needs_cifar
def test_cifar_is_recognised_by_looking(rng):
    delivery = Delivery(random_conv(rng, 64, (3, 32, 32), padding=1), cifar("x_test", 128), kappa=3)
    score = delivery.score(run(delivery.stolen, rng), CIFAR)
    assert score.best_map > 0.9
    assert score.reidentified > 0.9


@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2}, {"dilation": 2, "bias": True}])
def test_clothes_are_recognised_by_looking(rng, options):
    delivery = Delivery(random_conv(rng, 16, (1, 28, 28), **options), fashion("x_private", 64))
    finding = run(delivery.stolen, rng)
    score = delivery.score(finding)
    assert finding.images.shape == (64, 1, 28, 28)
    assert f"number {finding.facts['map shown']}, " in finding.words  # both count from one
    assert score.correlation > 0.7
    assert score.reidentified > 0.4  # chance is one in 64, and clothes of a kind resemble each other
    assert score.best_map > 0.8


def test_the_layer_of_another_key_shows_nothing(rng):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1)
    delivery, other = (Delivery(layer, fashion("x_private", 64)) for _ in range(2))
    delivery._common["augmented"] = other.stolen.augmented
    score = delivery.score(run(delivery.stolen, rng))
    assert abs(score.correlation) < 0.2
    assert score.reidentified < 0.2


def test_layers_without_a_grid_decline(rng):
    linear = mole.FirstLayer.linear(rng.normal(size=(5, 36)), None, input_shape=(1, 6, 6))
    one_number = random_conv(rng, 5, (1, 6, 6), 6)
    for layer in (linear, one_number):
        with pytest.raises(NotApplicableError, match="no picture to look at"):
            run(Delivery(layer, rng.normal(size=(2, 1, 6, 6))).stolen, rng)


def test_noise_looks_less_like_a_picture(rng):
    image, noise = fashion("x_private", 8), rng.normal(size=(8, 1, 28, 28))
    smooth, _ = picture_likeness(np.concatenate([image, noise / noise.std() * image.std()], axis=1))
    assert smooth[0] > 0.7
    assert smooth[1] < 0.1


@given(case=convolution_cases())
def test_maps_are_laid_over_the_pixels_they_come_from(case):
    """A map that shows at each output where its kernel lies: enlarged, it is off by less than a stride."""
    geometry, grid = LayerGeometry.of(case.layer), case.layer.grid
    for axis, side in enumerate(grid):
        outputs = np.arange(case.layer.output_grid[axis])
        middle = geometry.dilation[axis] * (geometry.kernel[axis] - 1) / 2
        centre = geometry.stride[axis] * outputs + middle - geometry.padding[axis][0]
        maps = np.broadcast_to(
            centre.reshape(1, *(-1 if a == axis else 1 for a in range(len(grid)))),
            (1, *case.layer.output_grid),
        )
        shown = np.moveaxis(_as_input(maps, geometry, (1, *grid)), axis + 1, -1).reshape(-1, side)[0]
        at = np.arange(side)
        covered = (at >= centre[0]) & (at <= centre[-1])
        assert (np.abs(shown - at)[covered] <= geometry.stride[axis] / 2).all()
