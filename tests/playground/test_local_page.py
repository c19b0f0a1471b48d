"""The playground as it runs: a real process on a real port, asked by hand and by a real browser."""

import http.client
import io
import json
import signal
import socket
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
import pytest
from PIL import Image

from browsers import DARK, DARK_PHONE, LIGHT, PHONE, barriers_of, in_a_browser, overflow
from command import call
from mole.limits import MAX_ASKED_BYTES, MAX_UPLOAD_BYTES
from warm_start import MOLE

ASKED = {"picture": "bag", "layout": "rows", "size": 16, "core": "orthogonal", "draw": 0}
DONE = 60_000  # milliseconds, on a busy machine


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


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("playground")
    with subprocess.Popen(
        [sys.executable, "-c", MOLE, "playground", "--no-browser"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
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


def test_it_listens_on_this_machine_alone(site):
    port = int(site.host.split(":")[1])
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("needs /proc/net/tcp")
    lines = [line.split() for line in table.read_text().splitlines()[1:]]
    listening = {line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}  # 127.0.0.1
    assert f":{port:04X} " not in Path("/proc/net/tcp6").read_text()


@pytest.mark.parametrize("path", ["", "playground.css", "playground.js", "nothing"])
def test_every_answer_is_guarded_and_sets_no_cookie(site, path):
    status, headers, _ = site.ask(path)
    assert status == (404 if path == "nothing" else 200)
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src data:;")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in headers
    assert "Server" not in headers
    assert "Access-Control-Allow-Origin" not in headers


FOREIGN = {
    "another host": {"Host": "playground.example"},
    "another host at this port": {"Host": "playground.example:{port}"},
    "this host at another port": {"Host": "127.0.0.1:1"},
    "no host": {"Host": ""},
    "another page": {"Origin": "https://playground.example"},
    "another page of this machine": {"Origin": "http://127.0.0.1:1"},
    "a page without an origin": {"Origin": "null"},
    "this page under https": {"Origin": "https://127.0.0.1:{port}"},
    "a browser that says so": {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
}


@pytest.mark.parametrize("who", FOREIGN)
@pytest.mark.parametrize("body", [None, b"{}"], ids=["get", "post"])
def test_others_are_refused(site, who, body):
    port = site.host.split(":")[1]
    headers = {name: value.format(port=port) for name, value in FOREIGN[who].items()}
    status, _, content = site.ask("" if body is None else "welcome", body, **headers)
    assert status == 403
    assert site.url not in content.decode()


def test_this_page_is_not_refused(site):
    """The twin of the test above."""
    port = site.host.split(":")[1]
    for name in ("127.0.0.1", "localhost"):
        own = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}", "Sec_Fetch_Site": "same-origin"}
        assert site.ask("welcome", b"", **own)[0] == 200
    assert site.ask("", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200  # a link to it


@pytest.mark.parametrize("wrong", ["/", "/{other}/", "/{half}/", "/{token}x/", "/%00/", "//", "/welcome"])
def test_without_the_token_there_is_nothing(site, wrong):
    token = urlsplit(site.url).path.strip("/")
    assert len(token) >= 32
    path = wrong.format(other="x" * len(token), half=token[:-1], token=token)
    for body, more in ((None, ""), (b"", "welcome")):
        assert site.ask(more, body, url=f"http://{site.host}{path}")[0] == 403


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


ASKED_AT_ONCE = """
import os, signal, socket
from urllib.parse import urlsplit
from mole.playground.visiting import serve

def opened(url):
    socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=5).close()
    print("answers")
    os.kill(os.getpid(), signal.SIGTERM)

try:
    serve(0, opened)
except KeyboardInterrupt:
    print("ended")
"""


def test_it_can_be_asked_as_soon_as_its_address_is_told():
    done = subprocess.run(
        [sys.executable, "-c", ASKED_AT_ONCE], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["answers", "ended"]


def test_a_port_that_is_taken_is_told_in_a_sentence(site, tmp_path):
    port = site.host.split(":")[1]
    done = call("playground", "--port", port, "--no-browser", "--quiet", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"mole: port {port} of this machine cannot be had: Address already in use; choose another\n"
    )


@contextmanager
def visit(browser, site, **how):
    """The page in a window, when all has been worked out; and what is wrong with it by then."""
    context = browser.new_context(**how)
    page = context.new_page()
    wrong: list[str] = []
    own = (site.url, "data:image/png;base64,", "data:,")
    page.on("request", lambda one: one.url.startswith(own) or wrong.append(f"requests {one.url}"))
    page.on("console", lambda message: wrong.append(f"says {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"fails {error}"))
    page.on("dialog", lambda dialog: (wrong.append("opens a dialog"), dialog.dismiss()))
    page.goto(site.url)
    settled(page)
    yield page, wrong
    context.close()


def settled(page) -> None:
    page.get_by_text("Done: morphed in").wait_for(timeout=DONE)
    page.locator("#protected[aria-busy=false]").wait_for(timeout=DONE)


def sources(page) -> dict[str, str]:
    """Every picture that is shown of results, by where it stands."""
    places = "[...document.querySelectorAll('#results img')]"
    return dict(page.evaluate(f"{places}.map(i => [i.dataset.img || i.closest('.card').id, i.src])"))


MORPHED = {"morphed", "attacker-stranger"}
NOISY = {"row", "decoded"}


@pytest.fixture(scope="module")
def visited(browser, site):
    with visit(browser, site, **LIGHT) as (page, wrong):
        page.get_by_label("Bag").check(force=True)
        page.get_by_alt_text("Bag: the original").wait_for(timeout=DONE)
        settled(page)
        yield page, wrong


@in_a_browser
@pytest.mark.parametrize(
    ("control", "changed"),
    [
        ("picture", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
        ("kappa", {"morphed"}),
        ("tiles", {"morphed"}),
        ("tile", {"morphed"}),
        ("core", MORPHED),
        ("key", {"morphed"}),
        ("bits", NOISY),
        ("noise", NOISY),
        ("upload", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
        ("drop", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
    ],
)
def test_every_control_changes_what_it_should_by_keyboard(visited, control, changed, tmp_path):
    """One after the other on one page, as a visitor does it; the last two bring pictures."""
    page, wrong = visited
    before = sources(page)
    text = page.inner_text("#size-text")
    file = tmp_path / "mine.png"
    file.write_bytes(photo())
    match control:
        case "picture":
            page.get_by_label("Bag").focus()
            page.keyboard.press("ArrowLeft")  # to the shirt
        case "kappa" | "tile":
            page.locator("#size").focus()
            page.keyboard.press("ArrowRight")
        case "tiles":
            page.get_by_label("Rows").focus()
            page.keyboard.press("ArrowRight")
        case "core":
            page.get_by_label("Orthogonal").focus()
            page.keyboard.press("ArrowDown")
        case "bits":
            page.locator("#bits").focus()
            page.keyboard.press("ArrowRight")
        case "key" | "noise":
            page.locator("#another" if control == "key" else "#noise").focus()
            page.keyboard.press("Enter")
        case "upload":
            page.set_input_files("#file", file)
        case "drop":
            page.evaluate(
                """(bytes) => {
                    const dataTransfer = new DataTransfer();
                    dataTransfer.items.add(new File([new Uint8Array(bytes)], "mine.bmp"));
                    document.dispatchEvent(new DragEvent("drop", { dataTransfer }));
                }""",
                [*png_of(24, 24, bytes(24 * 25))],
            )
    first = sorted(changed)[0]
    page.locator(f"[data-img={first}], #{first} img").first.wait_for()
    _until(page, lambda: sources(page)[first] != before[first])
    settled(page)
    after = sources(page)
    assert {place for place in changed if after[place] == before[place]} == set()
    if changed == NOISY:
        assert {place for place in after if after[place] != before[place]} <= {*NOISY, "picked"}
    if control in ("kappa", "tiles", "tile"):
        assert page.inner_text("#size-text") != text
        assert page.locator("#size").get_attribute("aria-valuetext") == page.inner_text("#size-text")
        assert after["plain"] == before["plain"]
    assert page.inner_text("#error") == ""
    assert wrong == []


def _until(page, holds) -> None:
    for _ in range(DONE // 50):
        if holds():
            return
        page.wait_for_timeout(50)
    pytest.fail("nothing changed")


@in_a_browser
def test_a_hostile_file_gets_a_sentence_on_the_page(visited, tmp_path):
    page, wrong = visited
    before = sources(page)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"<script>alert(1)</script>")
    page.set_input_files("#file", bad)
    page.get_by_text("This file cannot be used: it is not an image").wait_for(timeout=DONE)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES + 1)
    page.set_input_files("#file", large)
    page.get_by_text("This is more than 33.6 MB: choose a smaller file.").wait_for(timeout=DONE)
    assert sources(page) == before
    # A refusal is a line of the browser's own console.
    assert [line for line in wrong if "status of 422" not in line] == []


@in_a_browser
@pytest.mark.parametrize(
    "how", [LIGHT, DARK, PHONE, DARK_PHONE], ids=["light", "dark", "phone", "dark phone"]
)
def test_nothing_bars_anybody_from_the_page(browser, site, how):
    with visit(browser, site, **how) as (page, wrong):
        assert "it is obfuscation, not encryption" in page.inner_text("header").lower().replace(
            "morphing", "it"
        )
        assert "The stranger gets next to nothing" in page.inner_text("#headline")
        assert page.locator("#attackers .badge.bad").count() == 3
        broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
        assert page.evaluate(broken) == 0
        assert [*wrong, *overflow(page), *barriers_of(page)] == []


@in_a_browser
def test_that_the_test_above_can_fail(browser, site):
    with visit(browser, site, **PHONE) as (page, wrong):
        page.evaluate("document.querySelector('[data-img=plain]').removeAttribute('alt')")
        page.evaluate("document.querySelector('h1').style.width = '700px'")
        page.evaluate("fetch('https://elsewhere.invalid/').catch(() => {})")
        page.wait_for_timeout(200)
        told = " ".join([*wrong, *overflow(page), *barriers_of(page)])
        assert "axe: image-alt" in told
        assert "wider than the screen" in told
        assert "Content Security Policy" in told  # it did not even leave the browser


def test_ctrl_c_ends_it_without_a_trace(site):
    """The last test: afterwards it is gone."""
    site.process.send_signal(signal.SIGINT)
    assert site.process.wait(timeout=60) == 0
    assert site.process.stdout.read() == ""
    said = site.process.stderr.read()
    assert said.splitlines() == [
        "The playground is open at this address, for this machine alone. Ctrl-C ends it.",
        "The playground has ended, and its keys and pictures are gone.",
    ]
