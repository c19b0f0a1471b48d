"""Ways to an inference server: what each of them offers, which one a URL means, and when to try again.

http://127.0.0.1:8080    https://models.example.org    grpc://127.0.0.1:8081    grpcs://...
"""

import secrets
import ssl
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from mole.errors import FileError, MoleWarning, ParameterError, ServerError, TryAgainError
from mole.exchange.inference_messages import Message, is_loopback
from mole.scheme.shapes import Shape
from mole.storage.atomic import reason_of

T = TypeVar("T")
PORTS = {"http": 80, "https": 443, "grpc": 8081, "grpcs": 8081}
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds before a second attempt, and at most before any
QUIET_FOR = 2.0  # seconds of attempts before somebody is told


@dataclass(frozen=True)
class ModelMetadata:
    """What a server says of a network; all of it is the other side's word.

    Attributes:
        inputs, outputs: names, datatypes, and shapes with -1 for the batch.
        properties: further texts by name.
    """

    inputs: tuple[tuple[str, str, Shape], ...]
    outputs: tuple[tuple[str, str, Shape], ...]
    properties: dict[str, bytes]


class Channel(Protocol):
    """A way to a server, for several threads at once; each call is one attempt."""

    def metadata(self, model: str) -> ModelMetadata:
        """What it says of a network."""

    def infer(self, model: str, message: Message) -> Message:
        """Its answer to a request."""

    def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True)
class Address:
    """Where a server is, and how it is spoken to.

    Attributes:
        scheme: 'http', 'https', 'grpc' or 'grpcs'.
        host, port: of the server.
        path: before the protocol's own, where a proxy has one.
        token: what it asks for; never shown.
        certificate: PEM file of who may vouch for the server; None for those that the system knows.
        timeout: seconds for one attempt.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    token: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    timeout: float = 30.0

    @classmethod
    def of(cls, url: str, token: str | None, certificate: Path | None, timeout: float) -> "Address":
        """That of a URL.

        Raises:
            ParameterError: if it is none, or would carry morphed data in clear to another machine.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            raise ParameterError(f"'{url}' is not a URL: write it as http://127.0.0.1:8080") from None
        if parts.scheme not in PORTS or not parts.hostname:
            raise ParameterError(
                f"'{url}' is not the URL of a server: write it as http://127.0.0.1:8080, or with https, "
                "grpc or grpcs"
            )
        if parts.username or parts.password or parts.query:
            raise ParameterError("a server's URL has no password and no question mark: give token instead")
        if not parts.scheme.endswith("s") and not is_loopback(parts.hostname):
            raise ParameterError(
                f"{parts.scheme} sends data in clear, and {parts.hostname} is another machine: use "
                f"{parts.scheme}s"
            )
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), token, certificate, timeout)

    @property
    def is_secure(self) -> bool:
        """Whether what is sent is encrypted on its way."""
        return self.scheme.endswith("s")

    @property
    def place(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def certificates(self) -> bytes | None:
        """Who may vouch for the server; None for those that the system knows."""
        if self.certificate is None:
            return None
        try:
            return self.certificate.read_bytes()
        except OSError as error:
            raise FileError(f"{self.certificate} cannot be read: {reason_of(error)}") from None

    def tls(self) -> ssl.SSLContext:
        """For HTTPS."""
        known = self.certificates()
        try:
            return ssl.create_default_context(cadata=None if known is None else known.decode())
        except (ssl.SSLError, UnicodeDecodeError):
            raise FileError(f"{self.certificate} is not a certificate in PEM: ask the developer") from None


def other_protocol(address: Address, spoken: str, scheme: str) -> ServerError:
    """What to say where a server is, but does not understand."""
    fitting = scheme + "s" * address.is_secure
    return ServerError(
        f"{address.place} does not speak {spoken}: if it speaks {scheme}, write {fitting}://{address.place}"
    )


def persistently(work: Callable[[], T], patience: float, stop: threading.Event | None = None) -> T:
    """Do something again and again, with longer and longer waits, until it works or patience ends.

    Whoever sets `stop` ends it after the attempt that is under way.

    Warns:
        MoleWarning: once, if it takes more than a moment.

    Raises:
        ServerError: what went wrong last.
    """
    stop = threading.Event() if stop is None else stop
    start, wait, is_told = time.monotonic(), FIRST_WAIT, False
    end = start + patience
    while True:
        try:
            return work()
        except TryAgainError as error:
            pause = wait * (0.5 + secrets.randbelow(1000) / 1000)  # so that clients do not come in step
            if time.monotonic() + pause > end:
                raise ServerError(
                    f"{error}; tried for {patience:.0f} s, so see whether the server runs"
                ) from None
            if not is_told and time.monotonic() - start > QUIET_FOR:
                is_told = True
                warnings.warn(
                    f"{error}; trying again for up to {patience:.0f} s in all", MoleWarning, stacklevel=2
                )
            if stop.wait(pause):
                raise ServerError(f"{error}; not tried again, because another request failed") from None
            wait = min(2 * wait, LONGEST_WAIT)
