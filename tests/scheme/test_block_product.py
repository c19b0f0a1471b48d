"""A product in parts is the product: on every layout, in every thread, and wherever a bad number stands."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mole.errors import ShapeError
from mole.scheme import block_product as module
from mole.scheme.block_product import ALIKE, block_product, multiply
from mole.scheme.layouts import RowsLayout, TilesLayout
from mole.scheme.morphing import Core, Morphing

LAYOUTS = [
    RowsLayout((2, 4, 4), 1), RowsLayout((2, 4, 4), 4), TilesLayout.of_side((2, 4, 4), 2),
    TilesLayout.of_side((2, 4, 4), 4), TilesLayout.of_side((3, 12), 3),
]  # fmt: skip


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request, monkeypatch):
    """Parts as small as they get, so that few samples are many parts."""
    monkeypatch.setattr(module, "ELEMENTS_AT_ONCE", 1)
    monkeypatch.setattr(module, "BLOCKS_AT_ONCE", 1)
    return request.param


def core_of(layout, dtype="float32"):
    return np.random.default_rng(1).normal(size=(layout.block, layout.block)).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.name} {layout.block}")
@pytest.mark.parametrize("count", [0, 1, ALIKE + 1, 5 * ALIKE + 7])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parts_make_up_the_whole_product(rng, threads, layout, count, dtype):
    rows = rng.normal(size=(count, layout.elements)).astype(dtype)
    matrix = core_of(layout, "float64" if dtype == "float64" else "float32")
    out = np.full_like(rows, np.nan)
    block_product(layout, rows, matrix, out, threads=threads)
    blocks = rows[:, layout.places].astype(np.float64) @ matrix.astype(np.float64)
    expected = np.empty(rows.shape)
    expected[:, layout.places.ravel()] = blocks.reshape(count, layout.elements)
    tolerance = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-12}[dtype]
    assert np.abs(out - expected).max(initial=0) < tolerance


def test_parts_are_several_and_none_is_a_sample_alone(threads):
    layout = RowsLayout((8,), 1)
    for count in range(1, 4 * ALIKE + 3):
        parts = module._parts(count, layout, threads)
        assert [index for part in parts for index in range(part.start, part.stop)] == [*range(count)]
        assert count == 1 or min(part.stop - part.start for part in parts) > 1
    assert len(parts) >= 3


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.name} {layout.block}")
def test_the_first_bad_sample_is_named_wherever_it_stands(rng, threads, layout):
    rows = rng.normal(size=(3 * ALIKE, layout.elements)).astype(np.float32)
    rows[1] = 3e38  # does not fit, but is a number
    out = np.empty_like(rows)
    with pytest.raises(ShapeError, match="do not fit in float32"):
        block_product(layout, rows, core_of(layout), out, threads=threads)
    for bad in (np.nan, np.inf, -np.inf):
        rows[2 * ALIKE + 5, 3] = bad
        with pytest.raises(ShapeError, match=f"sample {2 * ALIKE + 5} of the batch has a NaN"):
            block_product(layout, rows, core_of(layout), out, threads=threads)
    # A zero in the core hides nothing.
    with pytest.raises(ShapeError, match=f"sample {2 * ALIKE + 5} of the batch has a NaN"):
        block_product(layout, rows * 1e-9, np.eye(layout.block, dtype=np.float32), out, threads=threads)


def test_morphing_goes_where_it_is_told_and_through_the_product_that_is_given(rng):
    layout = TilesLayout.of_side((2, 4, 4), 2)
    morphing = Morphing(layout, Core(core_of(layout), core_of(layout)))
    batch, asked = rng.normal(size=(5, 2, 4, 4)).astype(np.float32), []

    def product(a, b, out):
        asked.append(a.shape)
        multiply(a, b, out)

    room = np.empty_like(batch)
    assert morphing.morph(batch, out=room, product=product) is room
    assert asked == [(20, 8)]
    assert room.tobytes() == morphing.morph(batch).tobytes()


def test_the_library_gets_its_threads_back_however_many_morph_at_once(rng, threads):
    def library() -> list[int]:
        return [found["num_threads"] for found in threadpool_info()]

    layout, before = LAYOUTS[2], library()
    morphing = Morphing(layout, Core(core_of(layout), core_of(layout)))
    batch = rng.normal(size=(5 * ALIKE, 2, 4, 4)).astype(np.float32)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: morphing.morph(batch, threads=threads).tobytes(), range(20)))
    assert library() == before
    assert set(made) == {morphing.morph(batch, threads=1).tobytes()}
