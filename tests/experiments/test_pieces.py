"""Finished pieces are kept: found again, made once by many, and made anew where a file is none."""

import threading
import time
from pathlib import Path

import pytest

from mole.errors import FileError
from mole.experiments.pieces import PieceStore


@pytest.fixture
def store(tmp_path) -> PieceStore:
    return PieceStore(tmp_path / "cache")


def test_a_piece_is_made_once_and_comes_back_as_it_was(store):
    made = []

    def make() -> dict:
        made.append(1)
        return {"share": 0.1, "each": (1, 2), "none": None}

    assert not store.has(("facts", 1))
    first, second = (store.piece(("facts", 1), make) for _ in range(2))
    assert made == [1]
    assert first == second == {"share": 0.1, "each": [1, 2], "none": None}
    assert store.has(("facts", 1))
    assert not store.has(("facts", 2))
    assert [file.suffix for file in store.folder.iterdir()] == [".json"]


@pytest.mark.parametrize("spoil", [b"", b'{"found": ', b"[]", b'{"facts": "1"}', b"\xff\xfe"])
def test_a_file_that_is_no_piece_counts_as_none(store, spoil):
    store.piece("facts", lambda: {"number": 1})
    store.path_of("facts", ".json").write_bytes(spoil)
    assert store.piece("facts", lambda: {"number": 2}) == {"number": 2}


def test_what_fails_is_not_kept(store):
    def fail() -> dict:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.piece("facts", fail)
    assert not store.has("facts")
    assert store.piece("facts", lambda: {"number": 1}) == {"number": 1}


def test_two_at_once_make_a_piece_once(store):
    began, found = [], []

    def make() -> dict:
        began.append(1)
        time.sleep(0.1)  # long enough for the other one to come by
        return {"number": len(began)}

    threads = [threading.Thread(target=lambda: found.append(store.piece("facts", make))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert began == [1]
    assert found == [{"number": 1}] * 3


def test_nothing_is_written_before_the_first_piece(tmp_path):
    store = PieceStore(tmp_path / "cache")
    assert not store.has("facts")
    assert not (tmp_path / "cache").exists()


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    Path(tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file/cache cannot be made"):
        PieceStore(tmp_path / "file" / "cache").piece("facts", dict)
