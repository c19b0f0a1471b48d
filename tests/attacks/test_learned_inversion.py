"""A learned decoder, where a layer loses what algebra could have given back."""

import numpy as np
import pytest

import mole
from attackers import FASHION, Delivery, fashion, random_conv
from mole.attacks.channel_fingerprint import run as fingerprint
from mole.attacks.learned_inversion import run
from mole.attacks.tools import trained_decoder
from mole.attacks.tools.views import NotApplicableError


def shorten(patch):
    patch.setattr(trained_decoder, "MOST_STEPS", 150)
    patch.setattr(trained_decoder, "MOST_SECONDS", 10_000.0)


@pytest.fixture(autouse=True)
def _a_short_training(monkeypatch):
    shorten(monkeypatch)


def lossy(rng, **options) -> mole.FirstLayer:
    return random_conv(rng, 4, (1, 28, 28), 5, stride=4, padding=2, bias=True, **options)


@pytest.fixture(scope="module")
def clothes():
    """A delivery, and what a decoder finds that learned from other clothes."""
    rng = np.random.default_rng(20261115)
    delivery = Delivery(lossy(rng), fashion("x_private", 64), public=fashion("x_public", 1500))
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return delivery, run(delivery.developer, rng)


def test_it_beats_least_squares_on_clothes(rng, clothes):
    delivery, finding = clothes
    learned = delivery.score(finding, FASHION)
    algebra = delivery.score(fingerprint(delivery.developer, rng), FASHION)
    assert learned.psnr > algebra.psnr + 3
    assert learned.ssim > algebra.ssim + 0.1
    assert learned.reidentified > 0.8
    # What it says of itself, measured on public images, holds for private ones.
    assert abs(finding.facts["error on public images left aside"] - learned.rmse) < 0.1


@pytest.mark.parametrize("outputs", [24])
def test_a_linear_bottleneck(rng, outputs):
    weight = rng.normal(size=(outputs, 784)) / 28
    layer = mole.FirstLayer.linear(weight, rng.normal(size=outputs), input_shape=(1, 28, 28))
    delivery = Delivery(layer, fashion("x_private", 64), public=fashion("x_public", 1500))
    learned = delivery.score(run(delivery.developer, rng), FASHION)
    algebra = delivery.score(fingerprint(delivery.developer, rng), FASHION)
    assert learned.psnr > algebra.psnr + 2


@pytest.mark.parametrize("shape", [(2, 30), (1, 6, 7, 8), (30,)])
def test_other_numbers_of_axes(rng, shape, monkeypatch):
    monkeypatch.setattr(trained_decoder, "MOST_STEPS", 3)
    if len(shape) == 1:
        layer = mole.FirstLayer.linear(rng.normal(size=(5, 30)), rng.normal(size=5), input_shape=shape)
    else:
        layer = random_conv(rng, 2, shape, 3, stride=3, bias=True)
    delivery = Delivery(layer, rng.normal(size=(4, *shape)), public=rng.normal(size=(64, *shape)))
    finding = run(delivery.developer, rng)
    assert finding.images.shape == (4, *shape)
    assert finding.facts["steps"] == 3


def test_learned_from_other_images_it_is_worse(rng, clothes):
    delivery, finding = clothes
    noise = rng.normal(size=(1500, 1, 28, 28)).astype(np.float32)
    strange = Delivery(delivery.layer, delivery.plain, public=noise)
    bad = strange.score(run(strange.developer, rng), FASHION)
    assert bad.psnr < delivery.score(finding, FASHION).psnr - 3


def test_features_of_another_key_give_no_image(rng):
    layer, public = lossy(rng), fashion("x_public", 800)
    delivery, other = (Delivery(layer, fashion("x_private", 64), public=public) for _ in range(2))
    delivery._common["augmented"] = other.stolen.augmented
    score = delivery.score(run(delivery.developer, rng), FASHION)
    assert score.reidentified < 0.2
    assert score.ssim < 0.4


def test_the_same_generator_gives_the_same_decoder(rng, monkeypatch):
    monkeypatch.setattr(trained_decoder, "MOST_STEPS", 5)
    delivery = Delivery(lossy(rng), fashion("x_private", 4), public=fashion("x_public", 100))
    one, same, other = (run(delivery.developer, np.random.default_rng(seed)).images for seed in (1, 1, 2))
    assert np.allclose(one, same, atol=1e-5)
    assert not np.allclose(one, other, atol=1e-3)


def test_it_declines_without_need_or_without_public_images(rng):
    plain = fashion("x_private", 4)
    whole = Delivery(random_conv(rng, 8, (1, 28, 28)), plain, public=fashion("x_public", 100))
    with pytest.raises(NotApplicableError, match="algebra gives it exactly"):
        run(whole.developer, rng)
    for public in (None, fashion("x_public", 10)):
        with pytest.raises(NotApplicableError, match="at least 64"):
            run(Delivery(lossy(rng), plain, public=public).developer, rng)
