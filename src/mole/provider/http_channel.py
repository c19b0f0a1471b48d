"""The Open Inference Protocol over HTTP, with Python's own client: connections are kept and used again."""

import http.client
import ssl
import time
from queue import Empty, LifoQueue
from typing import Any
from urllib.parse import quote

from mole.errors import ServerError, TryAgainError
from mole.exchange.inference_messages import LENGTH_HEADER, Message, pack, unpack
from mole.foreign_text import shown
from mole.limits import MAX_INLINE_BYTES, MAX_REQUEST_BYTES
from mole.provider.channels import Address, ModelMetadata, other_protocol
from mole.provider.timed_socket import TimedSocket
from mole.storage.typed_json import Fields, FormatError, parse_json

LATER = {408, 425, 429, 502, 503, 504}
MOST_OF_AN_ERROR = 1 << 16


class HttpChannel:
    """A way to a server over HTTP.

    With `binary=False` numbers go as JSON, for servers without the extension for binary tensors.
    """

    def __init__(self, address: Address, *, binary: bool = True) -> None:
        self._address, self._binary = address, binary
        self._idle: LifoQueue[http.client.HTTPConnection] = LifoQueue()
        self._tls = address.tls() if address.is_secure else None

    def metadata(self, model: str) -> ModelMetadata:
        """What the server says of a network."""
        body, _ = self._asked("GET", f"/v2/models/{quote(model, safe='')}", None, {}, MAX_INLINE_BYTES)
        try:
            return _metadata(parse_json(body))
        except FormatError as error:
            raise ServerError(f"{self._address.place} does not speak the protocol: {error}") from None

    def infer(self, model: str, message: Message) -> Message:
        """The server's answer to a request."""
        body, length = pack(message, "inputs", binary=self._binary)
        headers = {"Content-Type": "application/json" if length is None else "application/octet-stream"}
        if length is not None:
            headers[LENGTH_HEADER] = str(length)
        place = f"/v2/models/{quote(model, safe='')}/infer"
        found, said = self._asked("POST", place, body, headers, MAX_REQUEST_BYTES)
        try:
            return unpack(found, "outputs", said)
        except FormatError as error:
            raise ServerError(f"the answer of {self._address.place} is not one: {error}") from None

    def close(self) -> None:
        """Let go of connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def _asked(
        self, method: str, place: str, body: bytes | None, headers: dict[str, str], most: int
    ) -> tuple[bytes, str | None]:
        """The body of an answer of at most so many bytes, and how long its JSON is."""
        address = self._address
        if address.token is not None:
            headers = {**headers, "Authorization": f"Bearer {address.token}"}
        end = time.monotonic() + address.timeout
        connection = self._connection()
        try:
            self._begin(connection, end)
            connection.request(method, address.path + place, body, headers)
            response = connection.getresponse()
            at_most = (most if response.status == 200 else MOST_OF_AN_ERROR) + 1
            content = response.read(at_most)
            if response.length and len(content) < at_most:  # Python's client takes what came for all
                raise http.client.IncompleteRead(content, response.length)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _no_answer(error, address) from None
        if len(content) > most or response.will_close or not response.isclosed():
            connection.close()
        else:
            self._idle.put(connection)
        if response.status == 200 and len(content) <= most:
            return content, response.getheader(LENGTH_HEADER)
        if response.status == 200:
            raise ServerError(f"the answer of {address.place} is too long to be one")
        kind = TryAgainError if response.status in LATER else ServerError
        advice = {"model": None} if response.status == http.HTTPStatus.NOT_FOUND else None
        raise kind(f"{address.place} refuses ({response.status}): {_error_in(content)}", advice=advice)

    def _connection(self) -> http.client.HTTPConnection:
        try:
            return self._idle.get_nowait()
        except Empty:
            address = self._address
        if self._tls is None:
            return http.client.HTTPConnection(address.host, address.port)
        return http.client.HTTPSConnection(address.host, address.port, context=self._tls)

    def _begin(self, connection: http.client.HTTPConnection, end: float) -> None:
        """Connect, if need be, and let nothing on a connection take longer than until then."""
        used: Any = connection.sock
        if used is None:
            connection.sock = TimedSocket.to(self._address.host, self._address.port, self._tls, end)
        else:
            used.begin(end)


def _metadata(fields: Fields) -> ModelMetadata:
    properties: dict[str, bytes] = {}
    if "properties" in fields.names() and isinstance(fields.value("properties"), dict):
        inner = fields.object("properties")
        properties = {name: inner.text(name).encode() for name in inner.names()}
    return ModelMetadata(_ends(fields, "inputs"), _ends(fields, "outputs"), properties)


def _ends(fields: Fields, part: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    found: Any = fields.value(part)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise FormatError(f"its field '{part}' is not a list of objects")
    each = [Fields(one) for one in found]
    return tuple((one.text("name"), one.text("datatype"), one.wholes("shape")) for one in each)


def _error_in(content: bytes) -> str:
    """What a server says of a refusal, in a line."""
    try:
        return shown(parse_json(content).text("error"), 400)
    except FormatError:
        return shown(content[:200].decode("utf-8", "replace")) or "it does not say why"


def _no_answer(error: Exception, address: Address) -> ServerError:
    """Why there is none, and whether there may be one later."""
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, ConnectionError):
        return other_protocol(address, "HTTP/1.1", "grpc")
    if isinstance(error, TimeoutError) and error.errno is None:  # ours, and not the network's
        return TryAgainError(f"{address.place} did not answer within {address.timeout:g} s")
    said = shown(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    is_refused = isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)
    return (ServerError if is_refused else TryAgainError)(f"{address.place} cannot be reached: {said}")
