"""A bucket on a server of moto's, for whoever asks for it."""

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of a server that talks like S3."""
    pytest.importorskip("s3fs", reason="needs the extra 's3'")
    moto_server = pytest.importorskip("moto.server", reason="needs moto[server]")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Another program's view of an empty bucket, with s3fs set up to find the same server."""
    boto3 = pytest.importorskip("boto3", reason="needs boto3")
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
