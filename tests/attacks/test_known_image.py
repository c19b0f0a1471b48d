"""One known image gives all others."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mole
from attackers import CORES, Delivery, cifar, fashion, needs_cifar, random_conv, seed_of
from mole.attacks.known_image import _learned_layer, run
from mole.attacks.tools.views import NotApplicableError
from strategies import layer_cases


def relative_error(images: np.ndarray, plain: np.ndarray) -> float:
    return float(np.linalg.norm(images - plain) / np.linalg.norm(plain))


@needs_cifar
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kappa", [1, 3])
def test_one_cifar_image_gives_a_hundred_others(rng, core, kappa):
    sample = cifar("x_train", 6400) if core == "whitened" else None
    layer = random_conv(rng, 64, (3, 32, 32), padding=1, bias=True)
    delivery = Delivery(layer, cifar("x_test", 100), kappa=kappa, core=core, sample=sample)
    finding = run(delivery.injecting(cifar("x_train", 1, start=7000)), rng)
    assert relative_error(finding.images, delivery.plain) < 1e-3
    assert finding.words.startswith("One known image gave")


@pytest.mark.parametrize("core", CORES)
def test_one_garment_gives_the_others(rng, core):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1, bias=True)
    sample = fashion("x_public", 3000) if core == "whitened" else None
    delivery = Delivery(layer, fashion("x_private", 100), core=core, sample=sample)
    finding = run(delivery.injecting(fashion("x_public", 1)), rng)
    assert relative_error(finding.images, delivery.plain) < 1e-3


def test_an_image_that_is_not_the_known_one_gives_nothing(rng):
    layer = random_conv(rng, 16, (1, 28, 28), padding=1)
    delivery = Delivery(layer, fashion("x_private", 100))
    view = delivery.injecting(fashion("x_public", 1))
    object.__setattr__(view, "known", fashion("x_public", 2)[1:])
    assert relative_error(run(view, rng).images, delivery.plain) > 0.3


@pytest.mark.parametrize(("patch", "needed"), [(4, 1), (7, 4), (14, 49)])
def test_patch_embeddings_need_more_and_say_how_many(rng, patch, needed):
    layer = random_conv(rng, patch**2, (1, 28, 28), patch, stride=patch, bias=True)
    known = np.random.default_rng(1).normal(size=(needed, 1, 28, 28)).astype(np.float32)
    delivery = Delivery(layer, fashion("x_private", 20))
    if needed > 1:
        with pytest.raises(NotApplicableError, match=f"at least {needed} known"):
            run(delivery.injecting(known[:-1]), rng)
    finding = run(delivery.injecting(known), rng)
    assert finding.facts["known images needed at least"] == needed
    assert finding.facts["of them determined"] == patch**2
    assert relative_error(finding.images, delivery.plain) < 0.05


def test_a_linear_layer_needs_as_many_as_an_image_has_numbers(rng):
    layer = mole.FirstLayer.linear(rng.normal(size=(80, 64)), None, input_shape=(1, 8, 8))
    plain, known = rng.normal(size=(10, 1, 8, 8)), rng.normal(size=(70, 1, 8, 8))
    delivery = Delivery(layer, plain, dtype="float64")
    with pytest.raises(NotApplicableError, match="at least 64 known images, and there are 63"):
        run(delivery.injecting(known[:63]), rng)
    with pytest.raises(NotApplicableError, match="there is 1"):
        run(delivery.injecting(known[:1]), rng)
    assert relative_error(run(delivery.injecting(known), rng).images, plain) < 1e-3


@given(case=layer_cases(), seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_kernels_are_learned_in_the_secret_order(case, seed):
    rng = np.random.default_rng(seed)
    layer = case.layer
    assume(np.prod(layer.input_shape) <= 200)
    known = rng.normal(size=(2 * int(np.prod(layer.input_shape)) + 30, *layer.input_shape))
    delivery = Delivery(layer, case.batch, kappa=case.kappa, seed=seed_of(rng), dtype="float64")
    learned, rank = _learned_layer(delivery.injecting(known), len(known))
    # Taps that only ever meet padding cannot be learned, and do not matter: compare what layers do.
    order = delivery.order
    true = mole.layer_matrix(layer).reshape(-1, layer.channels, int(np.prod(layer.output_grid)))[:, order]
    assert np.allclose(mole.layer_matrix(learned).reshape(true.shape), true, atol=1e-5)
    assert rank <= learned.weight[0].size
