"""One place opens Parquet files and Arrow streams, on the thread that asks."""

import ast
import io
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imports import Tree
from mole.exchange.shard_files import ShardFile
from mole.exchange.shards import Shard, write_shard
from mole.sources.opening import open_source
from mole.storage.locations import FileMark, Location
from mole.storage.stores import LocalStore

OPENS = {
    "ParquetFile", "read_table", "ParquetDataset", "read_schema", "read_metadata", "read_pandas", "dataset",
    "open_stream", "open_file", "memory_map", "read_feather", "read_record_batch", "ParquetReader",
}  # fmt: skip
THE_PLACE = "mole.storage.arrow_reading"


def arrow_calls(code: str) -> list[tuple[str, ast.Call]]:
    """What is called of pyarrow's modules, by name."""
    tree = ast.parse(code)
    names = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.startswith("pyarrow")
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func).split("."), call) for call in calls]
    return [(parts[-1], call) for parts, call in named if parts[0] in names]


def openers(tree: Tree) -> set[str]:
    knowing = {module: code for module in tree.files if "pyarrow" in (code := tree.code_of(module))}
    return {
        module
        for module, code in knowing.items()
        if any(name in OPENS for name, _ in arrow_calls(code)) or "from pyarrow" in code
    }


def test_one_place_opens_them():
    assert openers(Tree()) == {THE_PLACE}


def test_everything_it_reads_is_read_without_arrows_threads():
    code = ast.parse(Tree().code_of(THE_PLACE))
    readers = [
        node
        for node in ast.walk(code)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("iter_batches", "IpcReadOptions", "read", "read_all", "read_row_groups")
    ]
    assert len(readers) >= 3
    for call in readers:
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert given.get("use_threads") == "False", ast.unparse(call)


class Watched(io.BytesIO):
    """A file that notes who reads it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.readers: set[int] = set()

    def read(self, *args):
        self.readers.add(threading.get_ident())
        return super().read(*args)

    def readinto(self, buffer):
        self.readers.add(threading.get_ident())
        return super().readinto(buffer)


@pytest.fixture
def shard(tmp_path):
    ids = [f"{index:016x}" for index in range(500)]
    values = np.random.default_rng(0).integers(-99, 99, (500, 192), dtype=np.int8)
    write_shard(Shard(values, np.arange(500), ids, {}), (3, 8, 8), tmp_path / "shard.parquet")
    return tmp_path / "shard.parquet"


def test_a_watched_file_notices_arrows_threads(shard):
    """So that the next test can fail."""
    watched = Watched(shard.read_bytes())
    pq.read_table(watched, use_threads=True)
    assert watched.readers - {threading.get_ident()}


def test_shards_are_read_by_the_thread_that_asks(shard, monkeypatch):
    watched = Watched(shard.read_bytes())
    watched.close = lambda: None
    monkeypatch.setattr(LocalStore, "open", lambda store, name: watched)
    file = ShardFile(LocalStore(shard.parent), "shard.parquet")
    assert len(file.read((3, 8, 8), "int8").values) == len(file.facts().row_ids) == file.row_count() == 500
    assert watched.readers == {threading.get_ident()}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_sources_are_read_by_the_thread_that_asks(tmp_path, monkeypatch, kind):
    table = pa.table({"image": [b"abc" * 50] * 300, "label": [0, 1, 2] * 100})
    if kind == "parquet":
        path = tmp_path / "train.parquet"
        pq.write_table(table, path, row_group_size=20)
    else:
        path = tmp_path / "data.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
        (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    watched = Watched(path.read_bytes())
    watched.close = lambda: None
    monkeypatch.setattr(Location, "open", lambda place, **how: watched)
    if kind == "arrow":
        monkeypatch.setattr(Location, "is_local", property(lambda place: False))
        monkeypatch.setattr(Location, "files", lambda place: place._local_files())
        monkeypatch.setattr(Location, "mark", lambda place: FileMark(10**6, ""))
    split = open_source(str(tmp_path)).splits["train"]
    assert split.table["image"].to_pylist() == table["image"].to_pylist()
    assert watched.readers == {threading.get_ident()}
