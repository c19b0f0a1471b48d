"""Columns of a shard are what pyarrow itself makes of the same values."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mole.exchange.shards import LABEL, Shard, _numbers, _texts, write_shard


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize(
    "part", [slice(None), slice(0), slice(1, 5), slice(None, None, 3), slice(None, None, -1)]
)
def test_numbers(dtype, part):
    values = np.arange(-6, 6).astype(dtype)[part]
    assert _numbers(values).equals(pa.array(values))


def test_numbers_of_another_byte_order():
    assert _numbers(np.array([1, 2, 3], ">i8")).equals(pa.array([1, 2, 3]))


def test_numbers_outlive_who_made_them():
    made = [_numbers(np.full(1000, value)) for value in range(50)]
    assert [one[-1].as_py() for one in made] == list(range(50))


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "long" * 99], ["naïve", "日本"]])
def test_texts(texts):
    assert _texts(texts).equals(pa.array(texts, pa.string()))
    _texts(texts).validate(full=True)


def test_labels_of_any_integers_are_written_as_64_bits(tmp_path):
    labels = np.array([3, 1], ">i2")
    write_shard(Shard(np.ones((2, 4), np.int8), labels, ["a", "b"], {}), (1, 2, 2), tmp_path / "shard")
    assert pq.read_table(tmp_path / "shard")[LABEL].equals(pa.chunked_array([[3, 1]]))
