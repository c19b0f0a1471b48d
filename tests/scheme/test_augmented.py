"""The augmented layer on morphed data, against PyTorch's layer on plain data."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mole
from images import smooth_images
from mole.errors import ParameterError, ShapeError
from mole.scheme.layer_matrix import layer_matrix
from strategies import layer_cases

SEED, OTHER_SEED = bytes(range(32)), bytes(32)


def relative_error(ours: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(ours - truth) / np.linalg.norm(truth))


@given(case=layer_cases(), core=st.sampled_from(["orthogonal", "gaussian"]))
def test_augmented_layer_on_morphed_data_is_torchs_layer_on_plain_data(case, core):
    key = mole.MorphKey.generate(case.layer.input_shape, kappa=case.kappa, core=core, insecure_seed=SEED)
    augmented = mole.augment(case.layer, key, dtype="float64")
    features = augmented.features(mole.morph(case.batch, key))
    expected = case.torch_features()[:, key.channel_order(case.layer.channels)]
    assert features.shape == expected.shape
    assert np.allclose(features, expected, atol=1e-7)


@given(case=layer_cases())
def test_with_another_key_the_features_differ(case):
    """The negative twin: data morphed with one key, a layer augmented with another."""
    key, other = (
        mole.MorphKey.generate(case.layer.input_shape, kappa=case.kappa, insecure_seed=seed)
        for seed in (SEED, OTHER_SEED)
    )
    assume(key.morphing.core.size > 1)  # a core of side 1 is a sign
    features = mole.augment(case.layer, other, dtype="float64").features(mole.morph(case.batch, key))
    expected = case.torch_features()
    assume(layer_matrix(case.layer).any())  # else the kernel meets nothing but padding
    assert not np.allclose(features, expected[:, other.channel_order(case.layer.channels)], atol=1e-7)


CHANNELS = 8  # of 64, because a feature is a sum over 3,072 elements however many there are


def vgg_layer(rng: np.random.Generator) -> mole.FirstLayer:
    """Some channels of VGG-16's first layer at CIFAR size."""
    weight = rng.normal(size=(CHANNELS, 3, 3, 3), scale=27**-0.5).astype(np.float32)
    bias = rng.normal(size=CHANNELS, scale=0.1).astype(np.float32)
    return mole.FirstLayer.conv(weight, bias, input_shape=(3, 32, 32), padding=1)


@pytest.mark.parametrize(
    ("core", "limit", "kappa"),
    [  # a whitened core of the full size takes a minute to learn: benchmarks/numerics.py has it
        ("orthogonal", 1e-5, 1), ("orthogonal", 1e-5, 12),
        ("whitened", 1e-5, 3), ("whitened", 1e-5, 12),
        ("gaussian", 1e-3, 1), ("gaussian", 1e-3, 3), ("gaussian", 1e-3, 12),
    ],
)  # fmt: skip
def test_features_at_cifar_size_are_accurate_in_32_bits(rng, core, limit, kappa):
    torch = pytest.importorskip("torch")
    layer = vgg_layer(rng)
    enough = 2 * 3072 // kappa  # for each element of the core two images, and each image has every block
    sample = smooth_images(rng, enough, (3, 32, 32)) if core == "whitened" else None
    key = mole.MorphKey.generate(
        layer.input_shape, kappa=kappa, core=core, sample=sample, insecure_seed=SEED
    )
    images = smooth_images(rng, 16, (3, 32, 32))
    features = mole.augment(layer, key).features(mole.morph(images, key))
    expected = torch.nn.functional.conv2d(
        *(torch.from_numpy(array).double() for array in (images, layer.weight, layer.bias)), padding=1
    ).numpy()[:, key.channel_order(CHANNELS)]
    assert features.dtype == np.float32
    assert relative_error(features, expected) <= limit


def test_half_precision_is_stored_and_close(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(8, 3, 3, 3)), None, input_shape=(3, 8, 8))
    key = mole.MorphKey.generate((3, 8, 8), insecure_seed=SEED)
    half, full = (mole.augment(layer, key, dtype=dtype) for dtype in ("float16", "float64"))
    assert half.dtype == np.float16
    assert full.nbytes == 4 * half.nbytes == 8 * 192 * 8 * 36
    assert relative_error(half.matrix.astype(np.float64), full.matrix) < 1e-3


def test_what_does_not_fit_is_refused(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(8, 3, 3, 3)), None, input_shape=(3, 8, 8))
    with pytest.raises(ShapeError, match="make a key for this layer"):
        mole.augment(layer, mole.MorphKey.generate((3, 8, 9), insecure_seed=SEED))
    key = mole.MorphKey.generate((3, 8, 8), insecure_seed=SEED)
    for dtype in ("int8", "bfloat16", "nonsense"):
        with pytest.raises(ParameterError, match="float32 or float16"):
            mole.augment(layer, key, dtype=dtype)
    augmented = mole.augment(layer, key)
    with pytest.raises(ParameterError, match="AugmentedLayer cannot be augmented"):
        mole.augment(augmented, key)
    for shape in ((2, 8, 8, 3), (2, 8, 3, 8), (2, 5)):
        with pytest.raises(ShapeError, match=r"expected \(batch, 3, 8, 8\)"):
            augmented.features(np.zeros(shape))
    biased = mole.FirstLayer.conv(layer.weight, np.full(8, 1e6), input_shape=(3, 8, 8))
    with pytest.raises(ShapeError, match="do not fit in float16"):
        mole.augment(biased, key, dtype="float16")
    with pytest.raises(ShapeError, match="do not fit in float32"):
        mole.augment(mole.FirstLayer.conv(1e39 * layer.weight, None, input_shape=(3, 8, 8)), key)
    huge = mole.FirstLayer.conv(1e6 * layer.weight, None, input_shape=(3, 8, 8))
    with pytest.raises(ShapeError, match="do not fit in float16"):
        mole.augment(huge, key, dtype="float16")


def test_a_layer_larger_than_the_machine_is_refused():
    layer = mole.FirstLayer.conv(np.ones((64, 3, 3, 3)), None, input_shape=(3, 224, 224), padding=1)
    key = mole.MorphKey.generate((3, 224, 224), kappa=1344, insecure_seed=SEED)
    for form, size in (("dense", r"1\.9 TB"), (None, r"815\.7 GB")):
        with pytest.raises(ParameterError, match=f"would take {size}"):
            mole.augment(layer, key, form=form)


def test_matrix_is_the_papers_product(rng):
    """C^ac = M^-1 C with its groups of n^2 columns shuffled."""
    layer = mole.FirstLayer.conv(rng.normal(size=(4, 2, 2, 2)), None, input_shape=(2, 4, 4))
    key = mole.MorphKey.generate((2, 4, 4), insecure_seed=SEED)
    product = key.morphing.core.inverse @ layer_matrix(layer)
    groups = product.reshape(32, 4, 9)[:, key.channel_order(4)]
    augmented = mole.augment(layer, key, dtype="float64")
    assert np.allclose(augmented.matrix, groups.reshape(32, 36), atol=1e-12)


def test_rows_and_columns_are_those_of_the_matrix(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(4, 2, 2, 2)), None, input_shape=(2, 4, 4))
    key = mole.MorphKey.generate((2, 4, 4), kappa=2, insecure_seed=SEED)
    augmented = mole.augment(layer, key, dtype="float64")
    units = np.eye(32).reshape(32, 2, 4, 4)
    whole = augmented.features(units).reshape(32, 36)  # what single input elements add to the features
    chosen = np.array([5, 0, 31])
    assert augmented.elements == 32
    assert np.allclose(augmented.rows(chosen), whole[chosen])
    assert np.allclose(augmented.columns(chosen), whole[:, chosen])
    assert not np.allclose(augmented.rows(chosen), whole[chosen[::-1]])


def test_an_unknown_layout_is_refused(rng):
    with pytest.raises(ParameterError, match="layout 'spirals' is unknown"):
        mole.AugmentedLayer(rng.normal(size=(4, 4)), None, (1, 2, 2), (1, 2, 2), 1, "spirals", "0" * 32)
