"""Sources and deliveries on S3, against moto's server."""

import io
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError, SourceError
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.provider.sealing import delivery_store
from mole.sources.inspection import inspect
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError
from mole.storage.stores import FolderStore, LocalStore, digest_of, open_store
from secrets_kept import DEVELOPER, RECIPIENT

pytest.importorskip("s3fs", reason="needs the extra 's3'")
boto3 = pytest.importorskip("boto3", reason="needs boto3")
moto_server = pytest.importorskip("moto.server", reason="needs moto[server]")

# boto's own use of the clock, in versions of Python that call it deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")


@pytest.fixture(scope="module")
def endpoint():
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint, monkeypatch):
    """Another program's view of an empty bucket, with s3fs set up to find the same server."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": endpoint})
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="bucket")
    yield client
    for entry in client.list_objects_v2(Bucket="bucket").get("Contents", []):
        client.delete_object(Bucket="bucket", Key=entry["Key"])
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def put(client, key, content):
    client.put_object(Bucket="bucket", Key=key, Body=content)


def get(client, key):
    return client.get_object(Bucket="bucket", Key=key)["Body"].read()


def saved(save, *values, **options):
    sink = io.BytesIO()
    save(sink, *values, **options)
    return sink.getvalue()


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (3, 6, 7, 3), dtype=np.uint8)


def png(pixels):
    return saved(Image.fromarray(pixels).save, "PNG")


# Sources


def test_a_folder_of_images(s3, pixels):
    for key, image in zip(("cat/1.png", "cat/2.png", "dog/1.png"), pixels, strict=True):
        put(s3, f"photos/{key}", png(image))
    put(s3, "photos/", b"")  # as the console makes a folder
    put(s3, "photos/.cache/3.png", b"")
    put(s3, "photos-of-others/1.png", b"")
    source = open_source("s3://bucket/photos")
    split = source.splits["train"]
    assert (source.classes, split.labels.tolist()) == (("cat", "dog"), [0, 0, 1])
    assert split.name_of(2) == "s3://bucket/photos/dog/1.png"
    for index, image in enumerate(pixels):
        np.testing.assert_array_equal(split.read(index).values, image)


def test_a_folder_that_has_changed_is_read_anew(s3, pixels):
    put(s3, "photos/1.png", png(pixels[0]))
    assert open_source("s3://bucket/photos").count == 1
    put(s3, "photos/2.png", png(pixels[1]))
    assert open_source("s3://bucket/photos").count == 2


def test_content_that_changed_in_place_is_noticed(s3, pixels):
    first, second = (saved(Image.fromarray(image).save, "BMP") for image in pixels[:2])
    assert len(first) == len(second)
    put(s3, "photos/1.bmp", first)
    before = open_source("s3://bucket/photos").fingerprint
    assert open_source("s3://bucket/photos").fingerprint == before
    put(s3, "photos/1.bmp", second)
    assert open_source("s3://bucket/photos").fingerprint != before


def test_a_new_folder_next_to_one_that_was_read(s3, pixels):
    put(s3, "photos/a/x/1.png", png(pixels[0]))
    assert open_source("s3://bucket/photos").count == 1
    put(s3, "photos/b/1.png", png(pixels[1]))
    assert open_source("s3://bucket/photos/b").count == 1


def test_files(s3, pixels):
    put(s3, "x.npy", saved(np.save, pixels))
    put(s3, "d.npz", saved(np.savez, x_train=pixels, y_train=np.arange(3)))
    table = pa.table({"image": [png(image) for image in pixels], "label": [2, 0, 1]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    put(s3, "tables/train-00000-of-00001.parquet", sink.getvalue())
    expected = {
        "x.npy": None,
        "d.npz": [0, 1, 2],
        "tables": [2, 0, 1],
        "tables/train-00000-of-00001.parquet": [2, 0, 1],
    }
    for path, labels in expected.items():
        split = open_source(f"s3://bucket/{path}").splits["train"]
        assert (split.labels if labels is None else split.labels.tolist()) == labels
        np.testing.assert_array_equal(split.read(1).values, pixels[1])


def test_a_saved_dataset(s3, pixels):
    table = pa.table({"image": [png(image) for image in pixels]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    put(s3, "d/data-00000-of-00001.arrow", sink.getvalue())
    put(s3, "d/state.json", b'{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    np.testing.assert_array_equal(open_source("s3://bucket/d").splits["train"].read(2).values, pixels[2])


def test_dicom_files(s3):
    pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
    local = Path(pydicom.__file__).parent / "data" / "test_files" / "rtdose.dcm"
    put(s3, "scans/ill/scan", local.read_bytes())
    there, here = open_source("s3://bucket/scans").splits["train"], open_source(str(local)).splits["train"]
    assert there.labels.tolist() == [0] * 15
    assert there.name_of(3) == "s3://bucket/scans/ill/scan (frame 3)"
    np.testing.assert_array_equal(there.read(3).values, here.read(3).values)


@pytest.mark.parametrize("path", ["bucket/nothing", "no-such-bucket/photos"])
def test_a_source_that_is_not_there(s3, path):
    with pytest.raises(SourceError, match=f"^s3://{path} is not there"):
        open_source(f"s3://{path}")


def test_a_file_that_vanished_is_a_bad_sample(s3, pixels):
    put(s3, "photos/1.png", png(pixels[0]))
    split = open_source("s3://bucket/photos").splits["train"]
    s3.delete_object(Bucket="bucket", Key="photos/1.png")
    with pytest.raises(
        BadSampleError, match=r"^s3://bucket/photos/1.png cannot be used: cannot be read: \S"
    ) as caught:
        split.read(0)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there(s3, monkeypatch):
    monkeypatch.setitem(
        fsspec.config.conf,
        "s3",
        {"endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"retries": {"max_attempts": 0}}},
    )
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "retries", 1)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(SourceError, match=r"^s3://bucket/photos cannot be read: .*127\.0\.0\.1:9"):
        open_source("s3://bucket/photos")
    with pytest.raises(DeliveryError, match=r"^s3://bucket/delivery cannot be listed: .*127\.0\.0\.1:9"):
        open_store("s3://bucket/delivery").names()


# Deliveries


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
    assert "9 of 9 shards have a witness" in checks["data"].detail
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


def test_a_folder_of_images_is_judged_by_the_ends_of_its_files(s3, rng):
    content = saved(Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save, format="PNG")
    for index, part in enumerate((content, content, content[:-30], b"")):
        put(s3, f"photos/{index}.png", part)
    found = inspect(open_source("s3://bucket/photos"), Preparation((3, 8, 8)))
    assert [problem.first.name for problem in found.problems] == [
        "s3://bucket/photos/2.png",
        "s3://bucket/photos/3.png",
    ]
