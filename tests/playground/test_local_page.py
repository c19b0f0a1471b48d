"""The playground is for this machine and this page alone, as soon as it says so and until Ctrl-C."""

import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from command import call
from playground_site import playground


def test_it_listens_on_this_machine_alone(site):
    port = int(site.host.split(":")[1])
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    if not tables[0].exists():
        pytest.skip("needs /proc/net/tcp")
    lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    listening = {line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}  # 127.0.0.1


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


def test_ctrl_c_ends_it_without_a_trace(tmp_path):
    with playground(tmp_path) as site:
        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(timeout=60) == 0
        assert site.process.stdout.read() == ""
        said = site.process.stderr.read()
    assert said.splitlines() == [
        "The playground is open at this address, for this machine alone. Ctrl-C ends it.",
        "The playground has ended, and its keys and pictures are gone.",
    ]
