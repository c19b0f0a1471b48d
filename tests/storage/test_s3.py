"""Stores and deliveries on S3, against moto's server."""

import numpy as np
import pytest

from buckets import get, put
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.provider.sealing import delivery_store
from mole.sources.opening import open_source
from mole.storage.stores import FolderStore, LocalStore, digest_of, open_store
from secrets_kept import DEVELOPER, RECIPIENT

# boto's own use of the clock, in versions of Python that call it deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")


@pytest.fixture
def store(s3):
    opened = open_store("s3://bucket/delivery/")
    assert isinstance(opened, FolderStore)
    return opened


def test_written_files_can_be_read(s3, store):
    assert store.names() == set()
    store.write("manifest.json", b"{}")
    store.write("data/train-00000-of-00001.parquet", b"rows")
    assert store.names() == {"manifest.json", "data/train-00000-of-00001.parquet"}
    assert get(s3, "delivery/data/train-00000-of-00001.parquet") == b"rows"
    assert store.read("manifest.json") == b"{}"
    store.write("manifest.json", b"{1}")
    with store.open("manifest.json") as file:
        assert file.read() == b"{1}"


def test_names_are_those_of_this_moment(s3, store):
    store.write("a", b"")
    assert store.names() == {"a"}
    put(s3, "delivery/b", b"from another machine")
    put(s3, "delivery-2/c", b"of another delivery")
    put(s3, "delivery/", b"")
    assert store.names() == {"a", "b"}
    s3.delete_object(Bucket="bucket", Key="delivery/a")
    assert store.names() == {"b"}


def test_what_others_write_counts_at_once(s3, store):
    store.write("a", b"short")
    assert store.names() == {"a"}
    put(s3, "delivery/a", b"longer than before")
    with store.open("a") as file:
        assert file.read() == b"longer than before"
    put(s3, "delivery/b", b"")
    store.remove("b")
    assert store.names() == {"a"}


def test_large_files_are_written_and_digested(s3, store, tmp_path, rng):
    content = rng.bytes(7 << 20)
    store.make("layer", lambda path: path.write_bytes(content))
    assert get(s3, "delivery/layer") == content
    (tmp_path / "again").write_bytes(content)
    assert digest_of(store, "layer") == digest_of(open_store(str(tmp_path)), "again")


def test_removing_twice_is_fine(store):
    store.write("a", b"")
    store.remove("a")
    store.remove("a")
    assert store.names() == set()


def test_missing_files(store, tmp_path):
    for ask in (store.read, store.open, lambda name: digest_of(store, name)):
        with pytest.raises(DeliveryError, match=r"^s3://bucket/delivery/none cannot be read: \S"):
            ask("none")
    with pytest.raises(DeliveryError, match=r"^s3://bucket/delivery/none cannot be written: \S"):
        store.make("none", lambda path: None)


def test_a_bucket_that_is_not_there(s3, tmp_path):
    store = open_store("s3://no-such-bucket/delivery")
    with pytest.raises(DeliveryError, match=r"^s3://no-such-bucket/delivery/a cannot be written: \S"):
        store.write("a", b"")
    with pytest.raises(DeliveryError, match="cannot be written"):
        store.make("a", lambda path: path.write_bytes(b"kept"))


def test_a_file_where_a_folder_is_needed(s3):
    put(s3, "delivery", b"")
    with pytest.raises(DeliveryError, match="s3://bucket/delivery is a file, and a folder is needed here"):
        open_store("s3://bucket/delivery").names()


def test_a_sealed_delivery_on_s3(s3, tmp_path):
    data = write_npz(tmp_path / "data.npz")
    options = {"dtype": "int8", "rows_per_shard": 64, "recipients": [RECIPIENT]}
    deliver(data, make_layer(), make_key(), "s3://bucket/delivery", **options)
    entries = [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    assert all(name.endswith(".age") for name in entries)
    assert all(get(s3, name).startswith(b"age-encryption.org/v1\n") for name in entries)
    assert all(check.holds for check in verify("s3://bucket/delivery", identity=str(DEVELOPER)))
    with pytest.raises(DeliveryError, match="s3://bucket/delivery is sealed"):
        verify("s3://bucket/delivery")
    s3.delete_object(Bucket="bucket", Key="delivery/manifest.json.age")
    store = delivery_store("s3://bucket/delivery", [RECIPIENT], make_key())
    with pytest.raises(DeliveryError, match="is not empty"):
        deliver(data, make_layer(), make_key(), "s3://bucket/delivery", **options)
    assert "manifest.json" not in store.names()


def test_a_whole_delivery_from_s3_to_s3(s3, tmp_path):
    put(s3, "private.npz", write_npz(tmp_path / "data.npz").read_bytes())
    store, key = open_store("s3://bucket/delivery"), make_key()
    options = {"dtype": "int8", "rows_per_shard": 16}
    deliver(open_source("s3://bucket/private.npz"), make_layer(), key, store, **options)
    checks = {check.what: check for check in verify(store)}
    assert all(check.holds for check in checks.values())
    assert "9 of 9 shards were tested, on one row each" in checks["data"].detail
    deliver(
        open_source(str(tmp_path / "data.npz")), make_layer(), key, LocalStore(tmp_path / "out"), **options
    )
    for name in LocalStore(tmp_path / "out").names():
        if name.startswith("data/"):
            assert get(s3, f"delivery/{name}") == (tmp_path / "out" / name).read_bytes()
    with np.load(tmp_path / "data.npz") as truth:
        assert np.array_equal(recover(store, key)["y_train"], truth["y_train"])
    put(s3, "delivery/README.md", b"changed")
    assert not all(check.holds for check in verify(store))


def test_one_writer_at_a_time(s3):
    """The lock is written on the condition that there is none, which S3 itself decides."""
    store = open_store("s3://bucket/delivery")
    with store.locked():
        (entry,) = s3.list_objects_v2(Bucket="bucket")["Contents"]
        assert entry["Key"] == "delivery/deliver.lock"
        with pytest.raises(DeliveryError, match=r"s3://bucket/delivery is being written by process \d+"):
            open_store("s3://bucket/delivery").locked().__enter__()
    assert "Contents" not in s3.list_objects_v2(Bucket="bucket")


def test_a_bucket_that_is_not_there_is_told_before_the_key_is_opened(s3, tmp_path):
    data = write_npz(tmp_path / "data.npz", train=20, test=0)
    sentence = "s3://no-such-bucket/d cannot be written: there is no such bucket"
    with pytest.raises(DeliveryError, match=sentence):
        deliver(data, make_layer(), lambda: pytest.fail("the key was opened"), "s3://no-such-bucket/d")


def test_a_delivery_in_a_bucket_is_replaced_only_when_that_is_asked_for(s3, tmp_path):
    data = write_npz(tmp_path / "data.npz", train=20, test=0)
    deliver(data, make_layer(), make_key(), "s3://bucket/d")
    with pytest.raises(DeliveryError, match="another delivery already, made with another dtype"):
        deliver(data, make_layer(), make_key(), "s3://bucket/d", dtype="float16")
    deliver(data, make_layer(), make_key(), "s3://bucket/d", dtype="float16", replace=True)
    assert all(check.holds for check in verify("s3://bucket/d"))
    put(s3, "d/thesis.txt", b"precious")
    with pytest.raises(DeliveryError, match="only a delivery is ever replaced"):
        deliver(data, make_layer(), make_key(), "s3://bucket/d", replace=True)
    assert get(s3, "d/thesis.txt") == b"precious"
