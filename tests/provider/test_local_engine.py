"""Shards are made beside those that are written, in room that is used again; and nobody waits for ever."""

import threading
import time

import numpy as np
import pytest

from deliveries import contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.provider import local_engine
from mole.provider.deliver import deliver
from mole.provider.shard_maker import ShardMaker


@pytest.fixture
def one_worker(monkeypatch):
    monkeypatch.setattr(local_engine, "MAX_WORKERS", 1)


def made(data, out, **options):
    deliver(data, make_layer(), make_key(), out, rows_per_shard=5, **options)
    return contents(out)


def busy() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(("shard", "write"))}


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_room_is_used_again_and_nothing_of_another_shard_is_left_in_it(
    tmp_path, monkeypatch, one_worker, dtype
):
    data = write_npz(tmp_path / "data.npz")
    expected = made(data, tmp_path / "quick", dtype=dtype)
    rooms, put = [], ShardMaker.put
    room = ShardMaker.room

    def slowly(self, job, shard, store):
        time.sleep(0.02)  # the next one is made meanwhile
        put(self, job, shard, store)

    def counted(self, jobs, encoding):
        rooms.append(room(self, jobs, encoding))
        return rooms[-1]

    monkeypatch.setattr(ShardMaker, "put", slowly)
    monkeypatch.setattr(ShardMaker, "room", counted)
    assert made(data, tmp_path / "slow", dtype=dtype) == expected
    assert len(rooms) == 2  # for 26 shards
    assert rooms[0].dtype == np.dtype(dtype)


def test_a_shard_that_cannot_be_written_ends_it_and_the_rest_can_be_made_later(tmp_path, monkeypatch):
    data = write_npz(tmp_path / "data.npz")
    expected, put = made(data, tmp_path / "whole"), ShardMaker.put

    def full(self, job, shard, store):
        if job.index == 7:
            raise DeliveryError("no space is left")
        put(self, job, shard, store)

    monkeypatch.setattr(ShardMaker, "put", full)
    with pytest.raises(DeliveryError, match="no space is left"):
        made(data, tmp_path / "out")
    assert busy() == set()
    monkeypatch.setattr(ShardMaker, "put", put)
    assert made(data, tmp_path / "out") == expected
