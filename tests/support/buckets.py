"""What lies in the bucket of a test, as another program sees it."""

import io
from collections.abc import Callable
from typing import Any


def put(client: Any, key: str, content: bytes) -> None:
    client.put_object(Bucket="bucket", Key=key, Body=content)


def get(client: Any, key: str) -> bytes:
    return client.get_object(Bucket="bucket", Key=key)["Body"].read()


def saved(save: Callable[..., object], *values: Any, **options: Any) -> bytes:
    """What a function writes to a file."""
    sink = io.BytesIO()
    save(sink, *values, **options)
    return sink.getvalue()
