"""Where deliveries lie: the same behaviour on a disk and behind a URL. S3 is in test_s3.py."""

import errno
import hashlib
import os
from pathlib import Path

import fsspec
import pytest

from mole.errors import DeliveryError, FileError, LayerFileError, MissingExtraError
from mole.storage.locations import Location
from mole.storage.stores import FolderStore, LocalStore, digest_of, open_store


@pytest.fixture(params=["disk", "memory"])
def store(request, tmp_path):
    if request.param == "disk":
        return LocalStore(tmp_path / "delivery")
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    return open_store("memory://delivery")


def test_a_store_need_not_exist_yet(store):
    assert store.names() == set()


def test_written_files_can_be_read(store):
    store.write("manifest.json", b"{}")
    store.write("data/train [1].parquet", b"rows")
    store.write("data/train [1].parquet", b"other rows")
    assert store.names() == {"manifest.json", "data/train [1].parquet"}
    assert store.read("data/train [1].parquet") == b"other rows"
    with store.open("manifest.json") as file:
        assert file.read() == b"{}"


def test_a_function_can_make_a_file(store):
    store.make("data/layer", lambda path: path.write_bytes(b"content"))
    assert store.read("data/layer") == b"content"
    assert store.names() == {"data/layer"}


def test_a_function_that_fails_leaves_nothing(store):
    def fail(path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DeliveryError, match="data/layer cannot be written: No space left on device"):
        store.make("data/layer", fail)
    assert store.names() == set()


def test_no_message_shows_the_name_of_a_file_beside(store):
    def fail_as_arrow_does(path):
        raise OSError(errno.ENOSPC, f"writing to '{path.parent / f'.{path.name}.0a1b2c3d.part'}' failed")

    def fail_as_our_own_files_do(path):
        raise LayerFileError(f"{path} cannot be written: No space left on device")

    for fail in (fail_as_arrow_does, fail_as_our_own_files_do):
        with pytest.raises(DeliveryError) as caught:
            store.make("data/layer", fail)
        assert str(caught.value).endswith("data/layer cannot be written: No space left on device")
        assert ".part" not in str(caught.value)


def test_what_file_managers_leave_is_not_there(store):
    store.write("manifest.json", b"{}")
    for name in (".DS_Store", "Thumbs.db", "data/.DS_Store", "data/other.db"):
        store.write(name, b"icons")
    assert store.names() == {"manifest.json", "data/other.db"}


def test_removing_twice_is_fine(store):
    store.write("a", b"")
    store.remove("a")
    store.remove("a")
    assert store.names() == set()


def test_digests(store):
    content = os.urandom((1 << 20) + 5)
    store.write("a", content)
    assert digest_of(store, "a") == (hashlib.sha256(content).hexdigest(), len(content))


def test_missing_files(store, tmp_path):
    for ask in (store.read, store.open, lambda name: digest_of(store, name)):
        with pytest.raises(DeliveryError, match="data/none cannot be read: ") as caught:
            ask("data/none")
        assert store.label in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(DeliveryError, match="data/none cannot be written"):
        store.make("data/none", lambda path: path.unlink())


@pytest.mark.parametrize("name", ["../elsewhere", "/etc/passwd", "data/../../elsewhere", ""])
def test_no_name_leads_out_of_a_store(store, tmp_path, name):
    (tmp_path / "elsewhere").write_bytes(b"private")
    for ask in (store.read, store.open, store.remove, lambda name: store.write(name, b"")):
        with pytest.raises(DeliveryError, match="use a name inside it"):
            ask(name)
    assert (tmp_path / "elsewhere").read_bytes() == b"private"


def test_a_file_where_a_folder_is_needed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    fsspec.filesystem("memory").pipe_file("/file", b"")
    for path in (str(tmp_path / "file"), "memory://file"):
        with pytest.raises(DeliveryError, match="is a file, and a folder is needed here"):
            open_store(path).names()
    with pytest.raises(DeliveryError, match="cannot be written"):
        LocalStore(tmp_path / "file").write("a", b"")


def test_unfinished_files_are_not_listed_and_cleared_by_the_next_write(tmp_path):
    store = LocalStore(tmp_path)
    stale = tmp_path / ".a.12345678.part"
    stale.write_bytes(b"half")
    (tmp_path / ".mole-x.part").mkdir()
    (tmp_path / ".mole-x.part" / "layer").write_bytes(b"half")
    assert store.names() == set()
    store.write("a", b"whole")
    assert not stale.exists()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    store.write("a", b"old")

    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DeliveryError, match="a cannot be written: No space left on device"):
        store.write("a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert store.read("a") == b"old"


def test_what_a_path_or_url_opens(tmp_path):
    assert isinstance(open_store(str(tmp_path / "a::b")), LocalStore)
    assert open_store(f"file://{tmp_path}").folder == tmp_path
    assert isinstance(open_store("memory://x/"), FolderStore)
    assert open_store("memory://x/").label == "memory://x"
    with pytest.raises(DeliveryError, match="carrier-pigeon://loft cannot be opened"):
        open_store("carrier-pigeon://loft")


@pytest.mark.parametrize("url", ["s3://bucket/x", "gs://bucket/x"])
def test_a_missing_package_is_named(url, monkeypatch):
    def missing(url):
        raise ImportError("Install gcsfs to access it")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    fix = r"in the project's folder, pip install '\.\[s3\]'" if url.startswith("s3") else "Install gcsfs"
    with pytest.raises(MissingExtraError, match=f"{url} needs another package: {fix}"):
        open_store(url)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    store = LocalStore(tmp_path)
    os.mkfifo(tmp_path / "shard")
    for read in (store.open, store.read, lambda name: Location.of(str(tmp_path / name)).start(4)):
        with pytest.raises(FileError, match="shard cannot be read: it is a pipe or a device"):
            read("shard")
