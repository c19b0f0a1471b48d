"""Malformed requests for an inference server on this machine: whatever it gets, it refuses and goes on.

    python tools/fuzz_server.py model.onnx --cases 10000 --seed 1

Each case takes a good request and breaks it, over HTTP (JSON, binary tensors, paths, headers, bytes that
are no HTTP at all) or gRPC. Every answer has to be an error of the protocol, or a good answer where the
damage did no harm; after all of them the server has to answer a good request as before.
"""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from mole.exchange.inference_messages import LENGTH_HEADER, Message, Tensor, pack
from mole.exchange.inference_protobuf import METHODS, SERVICE, to_request
from mole.exchange.served_model import read_served

FINE = {200, 400, 401, 404, 405, 408, 411, 413, 414, 415, 417, 431, 503}
FINE_CODES = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**70, 1.5, 1e39, float("nan"), float("inf"), "", "x", "\u202e", [],
    {}, [[]], {"a": [None]}, "A" * 5000, [1] * 100, ["1"], [[1], [1, 2]], [-1, 1, 12, 12], [2**62, 2**62],
]  # fmt: skip


class Fuzzer:
    """Breaks requests to one server.

    Attributes:
        outcomes: how often each kind of answer came.
    """

    def __init__(self, http_url: str, grpc_url: str, model: str, shape: tuple[int, ...], seed: int) -> None:
        self._place, self._model = http_url.removeprefix("http://"), model
        self._random, self.outcomes = random.Random(seed), Counter[str]()  # noqa: S311  (nothing secret)
        self._rows = np.random.default_rng(seed).normal(size=(2, *shape)).astype(np.float32)
        self._message = Message((Tensor.of("morphed", self._rows),), "id", is_binary=True)
        self._channel = grpc.insecure_channel(grpc_url.removeprefix("grpc://"))
        self._connection = http.client.HTTPConnection(self._place, timeout=30)

    def good(self) -> np.ndarray[Any, Any]:
        """The answer to a request that is not broken."""
        body, length = pack(self._message, "inputs", binary=True)
        status, headers, content = self._asked(
            "POST", f"/v2/models/{self._model}/infer", body, {LENGTH_HEADER: str(length)}
        )
        if status != 200:
            raise SystemExit(f"a good request is refused: {status} {content[:200]!r}")
        return np.frombuffer(content[int(headers[LENGTH_HEADER]) :], "<f4")

    def close(self) -> None:
        """Let go of connections."""
        self._connection.close()
        self._channel.close()

    def one(self) -> None:
        """One broken request.

        Raises:
            SystemExit: if the answer is no error of the protocol.
        """
        ways: list[Callable[[], str]] = [self._json, self._binary, self._place_of, self._bytes, self._rpc]
        self.outcomes[self._random.choices(ways, [4, 4, 1, 1, 4])[0]()] += 1

    def _json(self) -> str:
        """A field of the JSON is another, missing, or there twice."""
        content = json.loads(pack(self._message, "inputs", binary=False)[0])
        for _ in range(self._random.randint(1, 3)):
            holder: Any = content if self._random.random() < 0.3 else content["inputs"][0]
            if not isinstance(holder, dict) or not holder:
                break
            name = self._random.choice([*holder, "parameters", "outputs"])
            if self._random.random() < 0.2:
                holder.pop(name, None)
            else:
                holder[name] = self._random.choice(ODD)
            if not isinstance(content.get("inputs"), list) or not content["inputs"]:
                break
        body = json.dumps(content).encode()
        if self._random.random() < 0.2:
            body = self._damaged(body)
        return self._sent("POST", f"/v2/models/{self._model}/infer", body, {})

    def _binary(self) -> str:
        """Bytes are cut, added or changed, or the header says another length."""
        body, length = pack(self._message, "inputs", binary=True)
        said = str(self._random.choice([length, 0, -1, len(body), 10**9, "x", (length or 0) - 1, ""]))
        if self._random.random() < 0.7:
            body = self._damaged(body)
        return self._sent("POST", f"/v2/models/{self._model}/infer", body, {LENGTH_HEADER: said})

    def _place_of(self) -> str:
        """Another path, method or header."""
        paths = [
            "/v2/models/%00/infer",
            "/v2/models//infer",
            "/v2/../etc",
            "/v2/models/a%2fb",
            "/v2/health",
            "/",
        ]
        method = self._random.choice(["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "POST"])
        headers = {"Content-Type": self._random.choice(["", "text/html", "multipart/form-data; boundary="])}
        return self._sent(method, self._random.choice(paths), b"x", headers)

    def _bytes(self) -> str:
        """Something that is no HTTP."""
        host, port = self._place.split(":")
        start = b"POST /v2/models/x/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            broken = self._random.randbytes(64) if self._random.random() < 0.5 else self._damaged(start)
            connection.sendall(broken)
            connection.shutdown(socket.SHUT_WR)
            found = connection.recv(1 << 16)
        if found and not found.startswith(b"HTTP/1.1 "):
            raise SystemExit(f"no HTTP came back: {found[:100]!r}")
        return self._judged(int(found[9:12]), found) if found else "closed"

    def _rpc(self) -> str:
        """A gRPC message that is damaged, or to no method."""
        content = self._damaged(to_request(self._message, self._model).SerializeToString())
        method = self._random.choice([*METHODS, "ModelInfer", "ModelInfer", "RepositoryModelUnload", "x"])
        try:
            self._channel.unary_unary(f"/{SERVICE}/{method}")(content, timeout=30)
            return "grpc OK"
        except grpc.RpcError as error:
            name = str(error.code().name)
            if name not in FINE_CODES:
                raise SystemExit(f"gRPC answers {name}: {error.details()}") from None
            return f"grpc {name}"

    def _damaged(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for _ in range(self._random.randint(1, 4)):
            way, place = self._random.randint(0, 3), self._random.randrange(max(1, len(changed)))
            if way == 0:
                changed[place : place + 1] = self._random.randbytes(1)
            elif way == 1:
                del changed[place:]
            elif way == 2:
                changed[place:place] = self._random.randbytes(self._random.randint(1, 40))
            else:
                del changed[place : place + self._random.randint(1, 40)]
        return bytes(changed)

    def _sent(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> str:
        status, _, content = self._asked(method, path, body, headers)
        return self._judged(status, content)

    def _judged(self, status: int, content: bytes) -> str:
        if status not in FINE:
            raise SystemExit(f"HTTP answers {status}: {content[:300]!r}")
        return f"http {status}"

    def _asked(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, Any, bytes]:
        for attempt in range(2):
            try:
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
                return response.status, response.headers, response.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()  # an earlier refusal may have closed it
                if attempt:
                    raise
        raise AssertionError


def started(model: Path) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A server of our own, on ports of this machine that are free."""
    command = [str(Path(sys.executable).with_name("mole")), "serve", str(model)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--grpc-port", "0", "--json", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    return process, json.loads(process.stdout.readline())


def main() -> None:
    """Break requests to a server that is started for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    process, where = started(options.model)
    try:
        shape = read_served(options.model).facts.input_shape
        fuzzer = Fuzzer(where["http"], where["grpc"], where["model"], shape, options.seed)
        before = fuzzer.good()
        for _ in range(options.cases):
            fuzzer.one()
        if process.poll() is not None or not np.array_equal(fuzzer.good(), before):
            raise SystemExit("the server did not stay as it was")
        print(json.dumps({"cases": options.cases, "outcomes": dict(sorted(fuzzer.outcomes.items()))}))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


if __name__ == "__main__":
    main()
