"""Known pairs, solved for the core: ceil(q / kappa) of them are enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from attackers import CORES, Delivery, cifar, fashion, needs_cifar, random_conv, seed_of
from mole.attacks.known_pairs import run
from strategies import fewer_examples


def relative_error(images: np.ndarray, plain: np.ndarray) -> float:
    return float(np.linalg.norm(images - plain) / np.linalg.norm(plain))


@needs_cifar
@pytest.mark.parametrize("core", CORES)
def test_a_third_of_the_published_number_is_enough_at_kappa_3(rng, core):
    sample = cifar("x_train", 6400) if core == "whitened" else None
    layer = random_conv(rng, 1, (3, 32, 32), 1)
    delivery = Delivery(layer, cifar("x_test", 100), kappa=3, core=core, sample=sample)
    known = cifar("x_train", 450, start=7000)
    enough = run(delivery.injecting(known), rng)
    assert enough.facts["pairs that determine the core"] == 342
    assert enough.facts["pairs that the paper asks for"] == 1024
    assert relative_error(enough.images, delivery.plain) < 0.02
    too_few = run(delivery.injecting(known[:300]), rng)
    assert relative_error(too_few.images, delivery.plain) > 5 * relative_error(
        enough.images, delivery.plain
    )


@given(seed=st.integers(0, 2**32), kappa=st.sampled_from([1, 2, 3, 4, 6]))
@fewer_examples(0.15)
def test_pairs_are_counted_exactly(seed, kappa):
    """One pair fewer than ceil(q / kappa) is not enough; that many are."""
    rng = np.random.default_rng(seed)
    layer = random_conv(rng, 1, (1, 6, 12), 1)
    plain = rng.normal(size=(20, 1, 6, 12))
    delivery = Delivery(layer, plain, kappa=kappa, seed=seed_of(rng))
    needed = -(-(72 // kappa) // kappa)
    known = rng.normal(size=(needed, 1, 6, 12))
    enough, too_few = (run(delivery.injecting(part), rng) for part in (known, known[:-1]))
    assert enough.facts["pairs that determine the core"] == needed
    assert relative_error(enough.images, plain) < 1e-2
    if needed > 1:
        assert relative_error(too_few.images, plain) > 2e-2


def test_the_curve_tells_the_error_without_the_truth(rng):
    delivery = Delivery(random_conv(rng, 1, (1, 28, 28), 1), fashion("x_private", 200), kappa=4)
    finding = run(delivery.injecting(fashion("x_public", 100)), rng)
    curve = finding.facts["error against pairs"]
    errors = [point["error"] for point in curve]
    assert [point["pairs"] for point in curve] == sorted({point["pairs"] for point in curve})
    assert errors[0] > 0.2
    assert errors[-1] < 0.01
    assert relative_error(finding.images, delivery.plain) < 2 * errors[-1] + 1e-3
    assert "gave the core" in finding.words


def test_a_few_pairs_show_what_they_span(rng):
    delivery = Delivery(random_conv(rng, 1, (1, 28, 28), 1), fashion("x_private", 100))
    finding = run(delivery.injecting(fashion("x_public", 40)), rng)
    assert "do not determine the core" in finding.words
    error = finding.facts["error against pairs"][-1]["error"]
    assert 0.1 < relative_error(finding.images, delivery.plain) < 1
    assert abs(relative_error(finding.images, delivery.plain) - error) < 0.15


def test_one_pair_leaves_none_to_measure_with(rng):
    delivery = Delivery(random_conv(rng, 1, (1, 28, 28), 1), fashion("x_private", 10))
    finding = run(delivery.injecting(fashion("x_public", 1)), rng)
    assert finding.facts["error against pairs"] == []
    assert "1 known pair of" in finding.words


def test_pairs_of_another_key_give_nothing(rng):
    layer = random_conv(rng, 1, (1, 28, 28), 1)
    delivery, other = (Delivery(layer, fashion("x_private", 50), kappa=4) for _ in range(2))
    known = fashion("x_public", 100)
    view = delivery.injecting(known)
    object.__setattr__(view, "known_morphed", mole.morph(known, other.key))
    assert relative_error(run(view, rng).images, delivery.plain) > 0.8
