"""One network with everything a server says and counts about it; HTTP and gRPC are two doors to it."""

import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from mole._version import __version__
from mole.exchange.inference_messages import Message, Tensor
from mole.exchange.served_model import DATATYPE, FORMAT, INPUT, OUTPUT, ServedFile
from mole.protection.onnx_session import OnnxSession
from mole.serving.checked_requests import MODEL_VERSION, Expected, RefusedError, check_answers
from mole.serving.runner import Runner
from mole.storage.typed_json import FormatError

SERVER_NAME = "morphed-learning"
EXTENSIONS = ["binary_tensor_data"]
PLATFORM = "onnx_onnxruntime"


class Metrics:
    """What Prometheus may ask for; no request leaves anything but a number here."""

    def __init__(self, runner: Runner) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "mole_requests",
            "Requests by protocol and outcome",
            ["protocol", "outcome"],
            registry=self.registry,
        )
        self.rows = Counter("mole_rows", "Rows that were answered", registry=self.registry)
        self.seconds = Histogram(
            "mole_request_seconds", "Time from a request to its answer", ["protocol"],
            registry=self.registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        )  # fmt: skip
        working = Gauge("mole_requests_working", "Requests that are being answered", registry=self.registry)
        working.set_function(lambda: runner.working)
        batches = Gauge("mole_batches", "How often the network ran", registry=self.registry)
        batches.set_function(lambda: runner.batches)


class Inference:
    """A served network.

    Attributes:
        expected: what it takes.
        is_ready: false before it can answer, and as soon as it is told to stop.
    """

    def __init__(
        self, served: ServedFile, *, name: str, threads: int, batch_rows: int = 0, token: str | None = None
    ) -> None:
        """Open the network.

        Args:
            served: its file, checked.
            name: what requests call it.
            threads: how many requests are computed at a time.
            batch_rows: put requests that wait together, up to so many rows; 0 for each on its own.
            token: what requests have to bring; None for nothing.
        """
        self.expected = Expected(name, served.facts)
        self.is_ready = False
        self._token = None if token is None else token.encode()
        session = OnnxSession.open(Path(served.path), extra="serve")
        self._runner = Runner(session, threads=threads, batch_rows=batch_rows)
        self._metrics = Metrics(self._runner)

    def check_token(self, authorization: str | None) -> None:
        """Refuse a request without the token.

        Raises:
            RefusedError: if it has none, or another.
        """
        said = (authorization or "").encode("utf-8", "replace")
        if self._token is not None and not hmac.compare_digest(said, b"Bearer " + self._token):
            raise RefusedError("token", "the token is missing or wrong: send 'authorization: Bearer TOKEN'")

    async def infer(self, protocol: str, read: Callable[[], Message]) -> Message:
        """Answer a request.

        Args:
            protocol: 'http' or 'grpc', to be counted.
            read: gives the request.

        Raises:
            RefusedError: if it cannot be answered as it is.
        """
        began, outcome = time.monotonic(), "failed"
        try:
            self._runner.enter()
            try:
                message = await self._answered(read)
            finally:
                self._runner.leave()
            outcome = "answered"
            return message
        except RefusedError as error:
            outcome = error.kind
            raise
        finally:
            self.count(protocol, outcome)
            self._metrics.seconds.labels(protocol).observe(time.monotonic() - began)

    def count(self, protocol: str, outcome: str) -> None:
        """Count a request."""
        self._metrics.requests.labels(protocol, outcome).inc()

    async def _answered(self, read: Callable[[], Message]) -> Message:
        try:
            request = await self._runner.read(read)
            rows = await self._runner.read(lambda: self.expected.rows(request))
        except FormatError as error:
            raise RefusedError("invalid", f"the request does not follow the protocol: {error}") from None
        answers = await self._runner(rows)
        check_answers(answers, len(rows), self.expected.facts)
        self._metrics.rows.inc(len(rows))
        return Message(
            (Tensor.of(OUTPUT, answers),), request.id, is_binary=request.is_binary,
            model_name=self.expected.name,
        )  # fmt: skip

    def server_metadata(self) -> dict[str, Any]:
        """What the server is."""
        return {"name": SERVER_NAME, "version": __version__, "extensions": EXTENSIONS}

    def model_metadata(self) -> dict[str, Any]:
        """What the network takes and gives; its key and classes are among the properties."""
        facts = self.expected.facts
        return {
            "name": self.expected.name,
            "versions": [MODEL_VERSION],
            "platform": PLATFORM,
            "inputs": [{"name": INPUT, "datatype": DATATYPE, "shape": [-1, *facts.input_shape]}],
            "outputs": [{"name": OUTPUT, "datatype": DATATYPE, "shape": [-1, facts.classes]}],
            "properties": {FORMAT: facts.to_json()},
        }

    def metrics(self) -> bytes:
        """Everything that is counted, as Prometheus reads it."""
        return generate_latest(self._metrics.registry)

    def close(self) -> None:
        """End its threads."""
        self.is_ready = False
        with suppress(RuntimeError):
            self._runner.close()
