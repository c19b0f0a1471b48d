"""What a playground is sent that it cannot use: one sentence, and no more is read than may be."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from mole.limits import MAX_ASKED_BYTES, MAX_UPLOAD_BYTES
from playground_site import photo, png_of

ASKED = {"picture": "bag", "layout": "rows", "size": 16, "core": "orthogonal", "draw": 0}


HOSTILE = {
    "nothing": (b"", "it is empty"),
    "text": (b"hello" * 1000, "it is not an image"),
    "a damaged image": (photo()[: len(photo()) // 2], "it is not a readable image"),
    "an image too large to unpack": (png_of(60_000, 60_000), "it has more than 64 million pixels"),
    "a program": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "it is not an image"),
    "a drawing": (
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "it is not an",
    ),
    "another format": (photo("GIF"), "it is not an image"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_is_no_picture_gets_one_sentence(site, what):
    content, reason = HOSTILE[what]
    status, told = site.told("picture", content)
    assert status == 422
    assert told["error"].startswith(f"This file cannot be used: {reason}")
    assert told["error"].count("\n") == 0
    assert set(told) == {"error"}


@pytest.mark.parametrize("how", ["said", "not said"])
@pytest.mark.parametrize(("what", "most"), [("picture", MAX_UPLOAD_BYTES), ("look", MAX_ASKED_BYTES)])
def test_too_much_is_not_read(site, how, what, most):
    """Once with its length in the header, and once in pieces without."""
    host, port = site.host.split(":")
    begin = f"POST {urlsplit(site.url).path}{what} HTTP/1.1\r\nHost: {site.host}\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        if how == "said":
            raw.sendall(f"{begin}Content-Length: {most + 1}\r\n\r\n".encode())
        else:
            raw.sendall(f"{begin}Transfer-Encoding: chunked\r\n\r\n{most + 1:x}\r\n".encode())
            raw.sendall(bytes(most + 1))
        answer = raw.makefile("rb").read(4096).decode()
    assert answer.startswith("HTTP/1.1 413 ")
    assert "choose a smaller file" in answer


BAD = {
    "no JSON": b"{",
    "no object": b"[]",
    "nothing in it": b"{}",
    "deep": b"[" * 4000,
    "no text": b'{"picture": "\\ud800"}',
    "no number": json.dumps({**ASKED, "size": "16"}).encode(),
    "another kappa": json.dumps({**ASKED, "size": 5}).encode(),
    "a huge number": json.dumps({**ASKED, "size": 10**400}).encode(),
    "another core": json.dumps({**ASKED, "core": "../../etc/passwd"}).encode(),
    "another picture": json.dumps({**ASKED, "picture": "../../etc/passwd"}).encode(),
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("what", ["look", "attack", "protect"])
@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_asked_gets_a_sentence(site, what, bad):
    if (what, bad) == ("protect", "another core"):
        pytest.skip("noise has no core")
    status, told = site.told(what, BAD[bad])
    assert status in (400, 422)
    assert told["error"].endswith(".")
    assert "passwd" not in told["error"]


def test_an_attacker_that_is_unknown_is_refused(site):
    assert site.told("attack", json.dumps({**ASKED, "attacker": "__init__"}).encode())[0] == 400
