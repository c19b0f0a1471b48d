"""A server that sends a byte now and then holds nobody beyond the time of an attempt."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from mole.errors import TryAgainError
from mole.provider.channels import Address
from mole.provider.http_channel import HttpChannel
from mole.provider.timed_socket import TimedSocket

PAUSE, BYTES = 0.1, 300  # a patient client would listen for half a minute
BODY = json.dumps({"inputs": [], "outputs": []}).encode()
START = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n"

# what comes at once, and what the dripping goes on with
DRIPS = {
    "the status": (b"", b"1"),
    "the headers": (START % 4 + b"X-Long: ", b"x"),
    "no end of headers": (START % 4, b"A: b\r\n"),
    "the body": (START % 100_000 + b"\r\n", b" "),
    "a body in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a body without an end": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b" "),
    "not yet": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@contextmanager
def dripping(first: bytes, drip: bytes, pause: float) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server for one client, and what it has dripped."""
    dripped: list[bytes] = []

    def serve() -> None:
        with suppress(OSError), listening.accept()[0] as client:  # until the client hangs up
            client.recv(1 << 16)
            client.sendall(first)
            while len(dripped) < BYTES:
                time.sleep(pause)
                client.sendall(drip)
                dripped.append(drip)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], dripped
        finally:
            thread.join()


@pytest.mark.parametrize("what", DRIPS)
def test_an_attempt_ends_in_time(what):
    first, drip = DRIPS[what]
    with dripping(first, drip, PAUSE) as (port, dripped):
        url = f"http://127.0.0.1:{port}"
        with (
            closing(HttpChannel(Address.of(url, None, None, timeout=1))) as channel,
            pytest.raises(TryAgainError, match=r"127\.0\.0\.1:\d+ did not answer within 1 s"),
        ):
            channel.metadata("model")
    assert len(dripped) < BYTES  # it was hung up on


def test_a_handshake_ends_in_time():
    hello = b"\x16\x03\x03\x40\x00"  # how a record of 16 KiB starts
    with dripping(hello, b"\x02", PAUSE) as (port, dripped):
        url = f"https://127.0.0.1:{port}"
        with (
            closing(HttpChannel(Address.of(url, None, None, timeout=1))) as channel,
            pytest.raises(TryAgainError, match="did not answer within 1 s"),
        ):
            channel.metadata("model")
    assert len(dripped) < BYTES


def test_who_answers_in_time_may_drip():
    answer = START % (len(BODY) + BYTES) + b"\r\n" + BODY
    with dripping(answer, b" ", 0) as (port, dripped):
        url = f"http://127.0.0.1:{port}"
        with closing(HttpChannel(Address.of(url, None, None, timeout=60))) as channel:
            assert channel.metadata("model").outputs == ()
    assert len(dripped) == BYTES


def test_a_body_that_is_cut_short_is_asked_for_again():
    with dripping(START % 100 + b"\r\n" + BODY, b"", 0.0) as (port, _):
        channel = HttpChannel(Address.of(f"http://127.0.0.1:{port}", None, None, 5.0), binary=True)
        with closing(channel), pytest.raises(TryAgainError, match="cannot be reached"):
            channel.metadata("model")


def test_all_addresses_of_a_host_are_tried(monkeypatch):
    real = socket.getaddrinfo

    def two(host, port, *arguments, **options):
        if host != "two.example":
            return real(host, port, *arguments, **options)
        kinds = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kinds, (one, port)) for one in ("127.0.0.9", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        TimedSocket.to("two.example", port, None, time.monotonic() + 5).close()
        with pytest.raises(TimeoutError):
            TimedSocket.to("two.example", port, None, time.monotonic() - 1)
    with pytest.raises(ConnectionRefusedError):
        TimedSocket.to("two.example", port, None, time.monotonic() + 5)
