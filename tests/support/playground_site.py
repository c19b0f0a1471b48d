"""The playground as it runs: a process of its own on a real port, and pictures to give it."""

import http.client
import io
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from command import HEARS_CTRL_C
from warm_start import MOLE


@dataclass(frozen=True)
class Site:
    """A running playground."""

    process: subprocess.Popen
    url: str

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def ask(self, path: str, body: bytes | None = None, url: str | None = None, **headers: str):
        """Status, headers and content of an answer; header names are written with underscores."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        path = urlsplit(url or self.url).path + path
        connection.request("GET" if body is None else "POST", path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def told(self, what: str, body: bytes) -> tuple[int, dict]:
        status, _, content = self.ask(what, body)
        return status, json.loads(content)


@contextmanager
def playground(folder: Path) -> Iterator[Site]:
    """A playground that works in an empty folder, and leaves nothing there."""
    with subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C + MOLE, "playground", "--no-browser"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield Site(process, process.stdout.readline().strip())
            assert list(folder.iterdir()) == []
        finally:
            process.kill()


def png_of(width: int, height: int, rows: bytes = b"") -> bytes:
    """A PNG file that says it is so large, whatever it holds."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def photo(kind: str = "PNG") -> bytes:
    colours = np.mgrid[0:60, 0:80].sum(axis=0)[..., np.newaxis] * np.array([1, 2, 3]) % 256
    file = io.BytesIO()
    Image.fromarray(colours.astype(np.uint8)).save(file, kind)
    return file.getvalue()
