"""A server that tests tell what to answer, and what it says of its network."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mole.exchange.inference_messages import LENGTH_HEADER, Message, Tensor, pack, unpack
from mole.exchange.served_model import Images, ServedFacts
from mole.provider.keys import MorphKey


@contextmanager
def played(
    answers: list, facts: ServedFacts | None, *, others: dict | None = None, otherwise=None
) -> Iterator[tuple[str, list]]:
    """A server that does as it is told: an answer is a status, 'hang up', or a function of the request.

    Once it has given all its answers, it gives those of `otherwise`, or right ones.
    """
    seen: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            metadata = {"name": "model", "inputs": [], "outputs": []} | (others or {})
            if facts is not None:
                metadata["properties"] = {"mole-model": facts.to_json()}
            self._send(200, json.dumps(metadata).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = unpack(body, "inputs", self.headers[LENGTH_HEADER])
            seen.append((request.id, request.tensors[0].content))
            answer = answers.pop(0) if answers else otherwise or right
            if answer == "hang up":
                self.connection.close()
                self.close_connection = True
            elif isinstance(answer, int):
                self._send(answer, b'{"error": "not now"}')
            else:
                packed, length = pack(answer(request), "outputs", binary=True)
                self._send(200, packed, length)

        def _send(self, status: int, body: bytes, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if length is not None:
                self.send_header(LENGTH_HEADER, str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def right(request: Message) -> Message:
    rows = request.tensors[0].floats()
    return Message((Tensor.of("probabilities", np.full((len(rows), 4), 0.25, np.float32)),), request.id)


def facts_for(key: MorphKey, **changes) -> ServedFacts:
    return ServedFacts("net", key.input_shape, 4, None, key.fingerprint, Images(**changes))
