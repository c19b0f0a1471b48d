"""A layout says where the blocks of a sample lie: cutting, joining, and M against the dense matrix."""

from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mole.errors import ParameterError, ShapeError
from mole.scheme.layouts import LAYOUTS, Layout, RowsLayout, TilesLayout, tile_sides
from mole.scheme.morphing import Core, Morphing
from mole.scheme.shapes import element_count, unroll, valid_kappas


class ScatteredLayout(Layout):
    """A layout made up for tests. It only says where elements stand: the rest must follow from that."""

    name = "rows"

    @cached_property
    def places(self):
        order = np.random.default_rng(0).permutation(self.elements)
        return order.reshape(self.blocks, self.block)


@st.composite
def layouts(draw) -> Layout:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    kind = draw(st.sampled_from([RowsLayout, ScatteredLayout, TilesLayout]))
    if kind is TilesLayout:
        grid = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        tile = draw(st.integers(1, 3))
        shape = (draw(st.integers(1, 3)), *(tile * side for side in grid))
        return TilesLayout.of_side(shape, draw(st.sampled_from(tile_sides(shape))))
    return kind(shape, draw(st.sampled_from(valid_kappas(shape))))


def dense(layout: Layout, core: np.ndarray) -> np.ndarray:
    """M, element by element: two elements of a sample mix if they lie in the same block."""
    matrix = np.zeros((layout.elements, layout.elements))
    for places in layout.places:
        for i, row in enumerate(places):
            for j, column in enumerate(places):
                matrix[row, column] = core[i, j]
    return matrix


def samples(layout: Layout, count: int = 3) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, *layout.input_shape))


def some_core(layout: Layout) -> Core:
    matrix = np.random.default_rng(2).normal(size=(layout.block, layout.block)) + 3 * np.eye(layout.block)
    return Core(matrix, np.linalg.inv(matrix))


@given(layouts())
def test_every_element_stands_in_one_block(layout):
    assert layout.places.shape == (layout.blocks, layout.block)
    assert sorted(layout.places.ravel()) == list(range(element_count(layout.input_shape)))


@given(layouts(), st.integers(0, 3))
def test_joining_undoes_cutting(layout, count):
    batch = samples(layout, count)
    blocks = layout.to_blocks(batch)
    assert blocks.shape == (count * layout.blocks, layout.block)
    assert np.array_equal(layout.to_rows(blocks), unroll(batch))
    assert np.array_equal(layout.to_blocks(unroll(batch)), blocks)
    for dtype in ("float64", "float32"):
        cut, joined = np.empty(blocks.shape, dtype), np.empty(unroll(batch).shape, dtype)
        assert layout.to_blocks(batch, out=cut) is cut
        assert np.array_equal(cut, blocks.astype(dtype))
        assert layout.to_rows(cut, out=joined) is joined
        assert np.array_equal(joined, unroll(batch).astype(dtype))
    turned = np.asfortranarray(unroll(batch))  # in another order in memory
    assert np.array_equal(layout.to_blocks(turned), blocks)


@given(layouts())
def test_blocks_hold_what_stands_in_their_places(layout):
    (row,) = unroll(samples(layout, 1))
    for block, places in zip(layout.to_blocks(row[np.newaxis]), layout.places, strict=True):
        assert np.array_equal(block, row[places])


@given(layouts(), st.data())
def test_inverse_rows_are_those_of_the_dense_matrix(layout, data):
    core = some_core(layout)
    start = data.draw(st.integers(0, layout.elements))
    stop = data.draw(st.integers(start, layout.elements))
    rows = layout.inverse_rows(core.inverse, start, stop)
    assert np.allclose(rows, np.linalg.inv(dense(layout, core.matrix))[start:stop], atol=1e-9)


@given(layouts())
def test_morphing_is_the_product_with_the_dense_matrix(layout):
    core, batch = some_core(layout), samples(layout)
    morphing = Morphing(layout, core)
    morphed = morphing.morph(batch)
    assert np.allclose(unroll(morphed), unroll(batch) @ dense(layout, core.matrix))
    assert np.allclose(morphing.unmorph(morphed), batch)


def test_another_layout_does_not_unmorph():
    rows, scattered = RowsLayout((2, 4, 4), 4), ScatteredLayout((2, 4, 4), 4)
    core, batch = some_core(rows), samples(rows)
    morphed = Morphing(rows, core).morph(batch)
    wrong = Morphing(scattered, core).unmorph(morphed)
    assert np.linalg.norm(wrong - batch) > 0.5 * np.linalg.norm(batch)
    one, other = (layout.inverse_rows(core.inverse, 0, 32) for layout in (rows, scattered))
    assert np.linalg.norm(one - other) > np.linalg.norm(one)


def test_rows_are_cut_and_joined_without_a_copy():
    layout = Layout.of("rows", (3, 4, 4), 3)
    batch = samples(layout)
    assert np.shares_memory(layout.to_blocks(batch), batch)
    assert np.shares_memory(layout.to_rows(layout.to_blocks(batch)), batch)
    inverse = np.eye(48)
    assert np.shares_memory(Layout.of("rows", (3, 4, 4), 1).inverse_rows(inverse, 3, 9), inverse)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_name_has_a_layout(name):
    assert Layout.of(name, (1, 8, 8), 4).name == name


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ParameterError, match="'spirals' is unknown: use rows, tiles or shuffled"):
        Layout.of("spirals", (1, 8, 8), 4)
    with pytest.raises(ParameterError, match="kappa = 5 does not divide"):
        Layout.of("rows", (1, 8, 8), 5)
    layout = Layout.of("rows", (1, 8, 8), 4)
    with pytest.raises(ShapeError, match=r"expected \(batch, 1, 8, 8\)"):
        layout.to_blocks(np.zeros((2, 8, 8)))
    for wrong in (np.zeros((6, 16)), np.zeros((4, 15)), np.zeros((8, 8))):
        with pytest.raises(ShapeError, match="4 blocks of 16 elements"):
            layout.to_rows(wrong)
    with pytest.raises(ShapeError, match="the core has side 8, and blocks of this input 16"):
        Morphing(layout, Core(np.eye(8), np.eye(8)))


def test_a_tile_is_a_square_of_pixels_in_all_channels():
    layout = TilesLayout.of_side((2, 4, 6), 2)
    assert (layout.tile, layout.tile_grid, layout.block, layout.kappa) == (2, (2, 3), 8, 6)
    image = np.arange(48.0).reshape(1, 2, 4, 6)
    for block, (row, column) in zip(layout.to_blocks(image), np.ndindex(2, 3), strict=True):
        tile = image[0, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert np.array_equal(block, tile.ravel())


@pytest.mark.parametrize(
    ("shape", "tile", "words"),
    [
        ((3, 32, 32), 5, "cannot be cut into tiles of side 5: use 2, 4, 8, 16 or 32"),
        ((3, 32, 32), 0, "use 2, 4"),
        ((3, 31, 32), 8, "use blocks of rows"),
        ((784,), 4, "use blocks of rows"),
    ],
)
def test_tiles_that_do_not_fill_a_sample_are_refused(shape, tile, words):
    with pytest.raises(ParameterError, match=words):
        TilesLayout.of_side(shape, tile)


def test_a_kappa_that_makes_no_tiles_is_refused():
    with pytest.raises(ParameterError, match="kappa = 2 does not cut a 1x8x8 sample into square tiles"):
        Layout.of("tiles", (1, 8, 8), 2)
