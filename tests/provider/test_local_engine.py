"""Shards are made beside those that are written, in room that is used again; and nobody waits for ever."""

import threading
import time

import numpy as np
import pytest
from PIL import Image

import mole
from deliveries import contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.provider import local_engine, shard_maker
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


@pytest.mark.parametrize(
    ("sizes", "at_once", "turns"),
    [
        ([2, 2, 2, 1], 2, "a0 a1 b0 b1 c0 d0 c1"),
        ([1, 2], 3, "a0 b0 b1"),
        ([3], 2, "a0 a1 a2"),
        ([], 2, ""),
    ],
)
def test_the_last_shards_are_made_in_turns(sizes, at_once, turns):
    shards = [
        local_engine.ShardInTheMaking(None, name, range(size))
        for name, size in zip("abcd", sizes, strict=False)
    ]
    order = [f"{shard.job}{index}" for shard, index in local_engine.in_turns(shards, at_once)]
    assert order == turns.split()


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


@pytest.mark.parametrize("rows_per_shard", [None, 7])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_pieces_that_several_make_at_once_are_the_shard_that_one_makes_without_bad_images(
    tmp_path, monkeypatch, rng, dtype, rows_per_shard
):
    (tmp_path / "photos").mkdir()
    for number in range(30):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    for bad in (4, 5, 17):
        (tmp_path / "photos" / f"{bad}.png").write_bytes(b"not an image")
    monkeypatch.setattr(shard_maker, "PIECE_BYTES", 3 * 4 * 192)  # of three images
    monkeypatch.setattr(local_engine, "processors", lambda: 4)
    found = []
    put = ShardMaker.put

    def slowly(self, job, shard, store):
        time.sleep(0.02 * (3 - job.index % 3))  # later shards may be written first
        put(self, job, shard, store)

    monkeypatch.setattr(ShardMaker, "put", slowly)
    for workers in (1, 2, 4):
        monkeypatch.setattr(local_engine, "MAX_WORKERS", workers)
        out = tmp_path / f"by {workers}"
        options = {"dtype": dtype, "skip_bad": True, "rows_per_shard": rows_per_shard}
        deliver(tmp_path / "photos", make_layer(), make_key(), out, **options)
        found.append(contents(out))
        recovered = mole.recover(out, make_key())["x_train"]
        assert len(recovered) == 27
    assert found[0] == found[1] == found[2]
    plain = [
        np.asarray(Image.open(tmp_path / "photos" / f"{number}.png"))
        for number in sorted(range(30), key=lambda number: f"{number}.png")
        if number not in (4, 5, 17)
    ]
    by_content = [sorted(image.astype(int).sum() for image in images) for images in (recovered, plain)]
    tolerance = 0 if dtype == "float32" else 400  # of 192 values, each a little off
    assert np.abs(np.subtract(*by_content)).max() <= tolerance
