import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import block_size, check_shape, element_count, roll, rows_of, unroll, valid_kappas

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


@given(shape=shapes, count=st.integers(0, 3))
def test_roll_undoes_unroll(shape, count):
    batch = np.arange(count * element_count(shape), dtype=np.float64).reshape(count, *shape)
    rows = unroll(batch)
    assert rows.shape == (count, element_count(shape))
    assert np.array_equal(roll(rows, shape), batch)


def test_unroll_goes_channel_by_channel_then_row_by_row():
    channels, height, width = 2, 3, 4
    image = np.empty((1, channels, height, width))
    for c in range(channels):
        for h in range(height):
            for w in range(width):
                image[0, c, h, w] = c * height * width + h * width + w  # the paper's position
    assert unroll(image)[0].tolist() == list(range(24))


@given(shape=shapes)
def test_kappas_are_exactly_the_divisors(shape):
    elements = element_count(shape)
    expected = tuple(k for k in range(1, elements + 1) if elements % k == 0)
    assert valid_kappas(shape) == expected


@pytest.mark.parametrize("kappa", [1.0, "3", None])
def test_a_kappa_that_is_no_number_is_refused(kappa):
    with pytest.raises(ParameterError, match="kappa is a whole number"):
        block_size((3, 32, 32), kappa)


@pytest.mark.parametrize("kappa", [0, -1, 5, 4096])
def test_an_impossible_kappa_is_refused_with_values_that_work(kappa):
    with pytest.raises(ParameterError, match=r"does not divide the 3072 .* use \d+.* or \d+"):
        block_size((3, 32, 32), kappa)


@pytest.mark.parametrize("shape", [(), (0,), (3, -1), (3.5,), "abc", None, (float("inf"),)])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(ParameterError, match="such as"):
        check_shape(shape)


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"expected \(batch, 3, 8, 8\)"):
        rows_of(np.zeros((2, 3, 8, 9)), (3, 8, 8))
    with pytest.raises(ShapeError, match="batch axis"):
        unroll(np.zeros(3))
    with pytest.raises(ShapeError, match=r"\(batch, 12\)"):
        roll(np.zeros((2, 13)), (3, 2, 2))
