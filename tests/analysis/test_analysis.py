"""The formulas: exact fractions in small sizes, counts over real matrices, and what must grow with what."""

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from mole import analysis
from mole.analysis import overhead, security
from mole.provider.keys.derivation import SEED_BYTES
from mole.scheme.layer_matrix import layer_entries
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Morphing, gaussian_core
from mole.scheme.shapes import valid_kappas
from strategies import layer_cases

sigmas = st.floats(0.01, 0.99)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    """Elements of a sample, and a kappa that divides them."""
    elements = draw(st.integers(1, 400))
    return elements, draw(st.sampled_from(valid_kappas((elements,))))


# Exact fractions -----------------------------------------------------------------------------------------


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 200))
def test_the_near_guess_bound_is_the_exact_fraction(above, below, elements):
    distance = Fraction(min(above, below), max(above, below))
    exact = Fraction(1, 2) * distance ** (elements - 1)
    found = security.log2_near_guess_bound(distance=float(distance), elements=elements)
    assert found == pytest.approx(math.log2(exact.numerator) - math.log2(exact.denominator), abs=1e-9)


@given(st.integers(1, 200))
def test_the_channel_order_guess_is_the_exact_fraction(channels):
    exact = -sum(math.log10(factor) for factor in range(1, channels + 1))
    assert security.log10_channel_order_guess(channels=channels) == pytest.approx(exact, abs=1e-9)


@given(sizes(), st.integers(1, 30), st.integers(1, 30))
def test_the_reversing_bound_is_the_exact_fraction_or_one(size, positions, kernel):
    elements, kappa = size
    side = elements // kappa
    found = security.log2_reversing_bound(
        input_elements=elements, output_positions=positions, kernel_elements=kernel, kappa=kappa, sigma=0.5
    )
    free = (side - positions) * side + kernel
    assert found == (-free if side >= positions else 0)


# What grows with what ------------------------------------------------------------------------------------


@given(st.integers(2, 60), sigmas)
def test_a_larger_kappa_makes_every_attack_easier_and_morphing_cheaper(side, sigma):
    elements = side**2
    by_kappa = [
        (
            security.log2_core_guess_bound(input_elements=elements, kappa=kappa, sigma=sigma),
            -security.counted_pairs(input_elements=elements, kappa=kappa),
            -security.published_pairs(input_elements=elements, kappa=kappa),
            -overhead.counted_provider_macs(input_elements=elements, kappa=kappa),
            security.log2_reversing_bound(
                input_elements=elements, output_positions=side, kernel_elements=9, kappa=kappa, sigma=sigma
            ),
        )
        for kappa in valid_kappas((elements,))
    ]
    for column in zip(*by_kappa, strict=True):
        assert list(column) == sorted(column)
        assert column[0] < column[-1]


@given(sizes(), sigmas, sigmas)
def test_a_stricter_sigma_never_makes_guessing_harder(size, one, other):
    low, high = sorted((one, other))
    elements, kappa = size
    bounds = [
        security.log2_core_guess_bound(input_elements=elements, kappa=kappa, sigma=sigma)
        for sigma in (low, high)
    ]
    assert bounds[0] <= bounds[1] <= -1


@given(sizes())
def test_pairs_are_as_many_as_give_q_rows(size):
    elements, kappa = size
    pairs = security.counted_pairs(input_elements=elements, kappa=kappa)
    assert pairs * kappa >= elements // kappa > (pairs - 1) * kappa


def test_that_many_pairs_do_determine_the_core_and_one_fewer_does_not(rng):
    shape, kappa = (1, 6, 6), 3
    core = gaussian_core(rng.normal(size=(12, 12)))
    needed = security.counted_pairs(input_elements=36, kappa=kappa)
    assert needed == 4 < security.published_pairs(input_elements=36, kappa=kappa) == 12
    plain = rng.normal(size=(needed, *shape))
    layout = Layout.of("rows", shape, kappa)
    rows, morphed = (layout.to_blocks(x) for x in (plain, Morphing(layout, core).morph(plain)))
    assert np.allclose(np.linalg.solve(rows, morphed), core.matrix)
    assert np.linalg.matrix_rank(rows[:-kappa]) < 12


# Counts over real matrices -------------------------------------------------------------------------------


@given(layer_cases())
def test_the_first_layers_macs_are_the_entries_of_its_matrix(case):
    """Padding is written out as part of the sample, because its zeros count."""
    layer = case.layer
    found = analysis.LayerSizes.of(layer)
    if layer.kind != "linear":
        grid = (side + sum(pair) for side, pair in zip(layer.grid, layer.padding, strict=True))
        layer = mole.FirstLayer.conv(
            layer.weight, None, input_shape=(layer.input_channels, *grid), stride=layer.stride,
            dilation=layer.dilation, groups=layer.groups,
        )  # fmt: skip
    counted = overhead.first_layer_macs(
        output_elements=found.output_elements, kernel_elements=found.kernel_elements
    )
    assert counted == len(layer_entries(layer).value)


@given(layer_cases())
def test_the_augmented_layer_has_as_many_elements_and_macs_as_counted(case):
    key = mole.MorphKey.generate(case.layer.input_shape, kappa=case.kappa, insecure_seed=bytes(32))
    augmented = mole.augment(case.layer, key)
    found = analysis.LayerSizes.of(case.layer)
    counts = {"input_elements": found.input_elements, "output_elements": found.output_elements}
    assert overhead.counted_layer_elements(**counts) == augmented.matrix.size
    assert overhead.augmented_layer_macs(**counts) == augmented.matrix.size
    assert security.counted_equations(**counts) == augmented.matrix.size


def test_the_published_size_is_that_of_another_matrix(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(8, 2, 3, 3)), None, input_shape=(2, 6, 6), padding=1)
    augmented = mole.augment(layer, mole.MorphKey.generate((2, 6, 6)))
    assert overhead.published_layer_elements(input_elements=72) == 72**2 != augmented.matrix.size


@given(st.sampled_from([(1, 4, 4), (3, 4, 4), (2, 3, 6)]), st.data())
def test_the_providers_macs_are_the_elements_of_m_that_are_not_zero(shape, data):
    elements = math.prod(shape)
    kappa = data.draw(st.sampled_from([k for k in valid_kappas(shape) if k < elements]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    side = elements // kappa
    matrix = np.kron(np.eye(kappa), rng.uniform(0.5, 1, size=(side, side)))  # equation 4
    products = np.count_nonzero(matrix)
    assert overhead.counted_provider_macs(input_elements=elements, kappa=kappa) == products
    published = overhead.published_provider_macs(
        input_channels=shape[0], input_elements=elements, kappa=kappa
    )
    assert (published == products) == (kappa == shape[0])


def test_lemma_2_ties_the_relative_error_of_images_to_the_distance_of_matrices(rng):
    """For morphed data without covariance. As it is written, with sigma N^(-1/4), it needs kappa = 1."""
    for side, kappa in ((12, 1), (6, 2), (3, 4)):
        truth, guess = (m / np.linalg.norm(m) * math.sqrt(side) for m in rng.normal(size=(2, side, side)))
        morphed = rng.normal(size=(200_000, kappa * side))
        morphed *= 1 / math.sqrt(kappa * side)  # norm 1 on average
        blocks = morphed.reshape(-1, kappa, side)
        error = math.sqrt(np.mean((blocks @ (truth - guess)) ** 2))
        distance = np.linalg.norm(truth - guess) / math.sqrt(side)
        own_rms = 1 / math.sqrt(kappa * side)
        assert error / own_rms == pytest.approx(distance, rel=0.02)
        as_written = error / (side**2) ** -0.25
        assert (as_written == pytest.approx(distance, rel=0.02)) == (kappa == 1)


# Sizes, settings, figures --------------------------------------------------------------------------------


@given(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)), st.data())
def test_sizes_without_weights_are_those_of_a_layer(counts, data):
    channels, inputs, axes = counts
    kernel, stride, padding = (data.draw(st.integers(*limits)) for limits in ((1, 5), (1, 3), (0, 2)))
    smallest = max(1, kernel - 2 * padding)
    shape = (inputs, *(data.draw(st.integers(smallest, smallest + 6)) for _ in range(axes)))
    weight = np.zeros((channels, inputs, *(kernel,) * axes))
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, stride=stride, padding=padding)
    found = analysis.LayerSizes.conv(
        input_shape=shape, channels=channels, kernel=kernel, stride=stride, padding=padding
    )
    assert found == analysis.LayerSizes.of(layer)


def test_the_presets_layers_are_the_networks():
    vgg, resnet = (analysis.PRESETS[name].setting.layer for name in ("cifar-vgg16", "imagenet-resnet152"))
    assert (vgg.input_elements, vgg.output_elements, vgg.kernel_elements) == (3072, 65536, 27)
    assert (resnet.input_elements, resnet.output_elements, resnet.kernel_elements) == (150528, 802816, 147)


def test_the_seed_has_as_many_bits_as_the_keys():
    assert security.SEED_BITS == 8 * SEED_BYTES


@pytest.mark.parametrize("name", analysis.PRESETS)
def test_every_printed_number_finds_its_figure(name):
    preset = analysis.PRESETS[name]
    figures = {figure.name: figure for figure in preset.figures()}
    assert len(figures) == len(preset.figures())
    for printed, (value, _) in preset.printed.items():
        assert figures[printed].published == value


def test_figures_that_need_an_unknown_number_are_left_out():
    layer = analysis.LayerSizes.conv(input_shape=(1, 8, 8), channels=4, kernel=3)
    names = {figure.name for figure in analysis.figures_of(analysis.Setting(layer=layer))}
    assert not names & {"inference share", "training share", "data share", "plain bytes"}
    full = analysis.Setting(layer=layer, network_macs=10**6, images=100)
    assert names < {figure.name for figure in analysis.figures_of(full)}


LAYER = {"input_channels": 1, "input_elements": 64, "output_channels": 4, "output_positions": 36,
         "kernel_elements": 9}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(analysis.LayerSizes)])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_a_size_that_is_none_is_named(name, value):
    with pytest.raises(mole.MoleError, match=f"{name.replace('_', ' ')} is {value}: give a positive"):
        analysis.LayerSizes(**{**LAYER, name: value})


@pytest.mark.parametrize("sigma", [0, 1, -0.5, 2, math.nan])
def test_a_sigma_that_is_none_is_an_error(sigma):
    layer = analysis.LayerSizes(**LAYER)
    with pytest.raises(mole.MoleError, match="between 0 and 1"):
        analysis.figures_of(analysis.Setting(layer=layer, sigma=sigma))


def test_other_values_that_cannot_be_are_errors():
    layer = analysis.LayerSizes(**LAYER)
    with pytest.raises(mole.MoleError, match="kappa = 7 does not divide"):
        analysis.figures_of(analysis.Setting(layer=layer, kappa=7))
    with pytest.raises(mole.MoleError, match="images is 0"):
        analysis.Setting(layer=layer, images=0)
    with pytest.raises(mole.MoleError, match="0 < d <= 1"):
        security.log2_near_guess_bound(distance=1.5, elements=3)
    with pytest.raises(mole.MoleError, match="does not fit on a sample of 1x4x4"):
        analysis.LayerSizes.conv(input_shape=(1, 4, 4), channels=1, kernel=5)
