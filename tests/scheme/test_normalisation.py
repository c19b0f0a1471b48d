import numpy as np
import pytest

from mole import Normalisation
from mole.errors import ParameterError, ShapeError


def test_bytes_and_floats_give_the_same_plain_data(rng):
    normalisation = Normalisation(mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
    images = rng.integers(0, 256, size=(5, 3, 4, 4), dtype=np.uint8)
    plain = normalisation.apply(images)
    assert plain.dtype == np.float32
    expected = (images / 255 - np.reshape([0.4, 0.5, 0.6], (3, 1, 1))) / np.reshape(
        [0.2, 0.25, 0.3], (3, 1, 1)
    )
    assert np.allclose(plain, expected, atol=1e-5)
    assert np.allclose(normalisation.apply(images / 255), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("mean", "std"),
    [((0.5,), (0.0,)), ((0.5,), (0.1, 0.2)), ((), ()), ((float("nan"),), (1,)), (("a",), (1,)), (1, 1)],
)
def test_a_useless_normalisation_is_refused(mean, std):
    with pytest.raises(ParameterError):
        Normalisation(mean, std)


def test_images_that_do_not_fit_are_refused():
    grey = Normalisation((0.5,), (0.5,))
    with pytest.raises(ShapeError, match="1 channels"):
        grey.apply(np.zeros((2, 3, 4, 4)))
    with pytest.raises(ShapeError, match="far above 1"):
        grey.apply(np.full((2, 1, 4, 4), 255.0))
    with pytest.raises(ShapeError, match="not a NumPy array"):
        grey.apply([[1.0]])
    with pytest.raises(ShapeError, match="int64"):
        grey.apply(np.zeros((2, 1, 4, 4), dtype=np.int64))
