"""A socket under which Python's HTTP client keeps to a time for a whole attempt.

The timeout of a socket is for each piece that it waits for. A server that sends a byte now and then, in its
headers or in its answer, would hold whoever asks for ever.
"""

import io
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Self

AT_ONCE = 1 << 14  # bytes to send: a record of TLS, each of which would have a timeout of its own


class TimedSocket:
    """In place of a connection's socket: as much of one as `http.client` uses."""

    def __init__(self, connected: socket.socket, end: float) -> None:
        self._socket, self._end = connected, end

    @classmethod
    def to(cls, host: str, port: int, tls: ssl.SSLContext | None, end: float) -> Self:
        """One that is connected to a server, by then.

        Raises:
            OSError: if it cannot be; an `ssl.SSLError` if the server is not to be trusted.
        """
        connected = _connected(host, port, end)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Python's client does
        if tls is not None:
            try:
                connected.settimeout(left_until(end))  # of the handshake as a whole
                connected = tls.wrap_socket(connected, server_hostname=host)
            except BaseException:
                connected.close()
                raise
        return cls(connected, end)

    def begin(self, end: float) -> None:
        """Set the time, by `time.monotonic`, by which all that follows has to be done."""
        self._end = end

    def sendall(self, content: bytes) -> None:
        """Send all of it.

        Raises:
            TimeoutError: if the time is over before.
        """
        view = memoryview(content)
        for start in range(0, len(view), AT_ONCE):
            self._wait_no_longer()
            self._socket.sendall(view[start : start + AT_ONCE])

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What is received, as a file to read bytes from."""
        return io.BufferedReader(_Received(self._socket.makefile("rb", buffering=0), self._wait_no_longer))

    def close(self) -> None:
        """Let go of it; what is read of it as a file stays until that is closed, too."""
        self._socket.close()

    def _wait_no_longer(self) -> None:
        self._socket.settimeout(left_until(self._end))


class _Received(io.RawIOBase):
    """The bytes of a socket, which before each wait is told how long it may be."""

    def __init__(self, raw: socket.SocketIO, wait_no_longer: Callable[[], None]) -> None:
        self._raw, self._wait_no_longer = raw, wait_no_longer

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._wait_no_longer()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _connected(host: str, port: int, end: float) -> socket.socket:
    """Connected to the first of a host's addresses that answers; all together get the time left."""
    failure: OSError = OSError(f"{host} has no address")
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return socket.create_connection((str(address[0]), port), left_until(end))
        except OSError as error:
            failure = error
    raise failure


def left_until(end: float) -> float:
    """Seconds until then.

    Raises:
        TimeoutError: if it is over.
    """
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left
