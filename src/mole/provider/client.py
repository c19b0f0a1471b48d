"""The provider's client: it morphs images, sends them to the developer's server, and gives the answers.

    with mole.Client("http://127.0.0.1:8080", key, layer) as client:
        found = client.predict(images)
        found.classes, found.probabilities

What is done to images follows from the provider's own files: the first layer says how they are normalised,
the key how they are morphed. What the server says is compared with them, and never followed.
"""

import json
import secrets
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mole.errors import MoleWarning, ParameterError
from mole.exchange.inference_messages import KEY_PARAMETER, Message, Tensor
from mole.exchange.layer_files import load
from mole.exchange.served_model import INPUT
from mole.progress import Progress, no_progress
from mole.protection.front_file import Front
from mole.provider.channels import Address, Channel, persistently
from mole.provider.gathering import Arrived, Batch, gather
from mole.provider.grpc_channel import GrpcChannel
from mole.provider.http_channel import HttpChannel
from mole.provider.keys import MorphKey
from mole.provider.keys.key import morph
from mole.provider.ledger import Ledger
from mole.provider.protect import Protect
from mole.provider.protected_requests import ProtectedRequests, as_stored
from mole.provider.request_log import LoggedRequest, RequestLog, now
from mole.provider.served_answers import Answers, Served, probabilities_in
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation, plain_data
from mole.scheme.shapes import Array, Shape, element_count

BYTES_AT_ONCE = 1 << 23  # of a request


class Client:
    """Asks a developer's server about images, morphed.

    Attributes:
        url: the server's: http, https, grpc or grpcs.
        model: what the server calls the network.
        key: what morphs.
        layer: the first layer that the key was used for; None for plain data as it is.
        at_once: how many images are under way at a time.
    """

    def __init__(
        self,
        url: str,
        key: MorphKey,
        layer: FirstLayer | str | PathLike[str] | None = None,
        *,
        model: str = "model",
        protect: Protect | None = None,
        token: str | None = None,
        certificate: str | PathLike[str] | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
        batch_rows: int = 64,
        connections: int = 2,
        binary: bool = True,
    ) -> None:
        """Make a client; nothing is sent before the first question.

        Args:
            url: such as grpc://127.0.0.1:8081 or https://models.example.org; clear ones only to here.
            key: the provider's.
            layer: the developer's first layer, or its file: it says how images are normalised. Without it
                images have to be plain data already.
            model: what the server calls the network.
            protect: front, clip and noise for a network on protected features, and a budget.
            token: what the server asks for.
            certificate: PEM file of who vouches for the server, if the system does not know it.
            timeout: seconds for one attempt.
            patience: seconds for all attempts at one request.
            batch_rows: images in a request at most.
            connections: how many requests are under way at a time.
            binary: send numbers as bytes; False for HTTP servers that take only JSON.

        Raises:
            ParameterError: if key, layer, front and URL do not go together.
        """
        if not isinstance(key, MorphKey):
            raise ParameterError(f"a {type(key).__name__} is not a key: call Client(url, key, layer)")
        if min(batch_rows, connections) < 1 or min(timeout, patience) <= 0:
            raise ParameterError("batch_rows, connections, timeout and patience have to be positive")
        self.url, self.key, self.model = url, key, model
        found = load(Path(layer)) if isinstance(layer, str | PathLike) else layer
        if found is not None and not isinstance(found, FirstLayer):
            raise ParameterError("an augmented layer is the developer's: give the first layer")
        self.layer = found
        ledger = Ledger(key.fingerprint, key.path)
        self._check_layer(ledger)
        self._protected = (
            None if protect is None else ProtectedRequests.of(protect, key, self.layer, ledger)
        )
        known = None if certificate is None else Path(certificate)
        address = Address.of(url, token, known, timeout)
        self._channel: Channel = (
            GrpcChannel(address)
            if address.scheme.startswith("grpc")
            else HttpChannel(address, binary=binary)
        )
        self._log, self._place, self._patience = RequestLog.beside(ledger), address.place, patience
        sample = 4 * element_count(key.input_shape)
        self._batch_rows = max(1, min(batch_rows, BYTES_AT_ONCE // sample))
        self.at_once = self._batch_rows * connections
        self._senders = ThreadPoolExecutor(connections, thread_name_prefix="request")
        self._served: Served | None = None
        self._asking = threading.Lock()

    @property
    def is_protected(self) -> bool:
        """Whether features with noise are sent, and no images."""
        return self._protected is not None

    @property
    def takes(self) -> tuple[Shape, Normalisation | None]:
        """Shape and normalisation of the images that it makes requests of."""
        takes: FirstLayer | Front | None = self.layer if self._protected is None else self._protected.front
        if takes is None:
            return self.key.input_shape, None
        return takes.input_shape, takes.normalisation

    def call(self) -> str:
        """What answers depend on besides images: a digest that only the holder of the key can compute."""
        parts: list[Any] = [self.url, self.model, repr(self.served())]
        parts.append(None if self.layer is None else self.layer.fingerprint)
        if self._protected is not None:
            parts += [self._protected.front.digest, self._protected.clip, self._protected.bits]
        return self.key.mac("call-of-server", json.dumps(parts))

    def served(self) -> Served:
        """What the server says of its network, checked against the provider's own files; asked once.

        Raises:
            ServerError: if it cannot be reached, or its network is for another key, layer, front or clip.
        """
        with self._asking:
            if self._served is None:
                said = persistently(lambda: self._channel.metadata(self.model), self._patience)
                front, clip = (
                    (None, None)
                    if self._protected is None
                    else (self._protected.front, self._protected.clip)
                )
                self._served = Served.of(said, self.key, self.layer, front, clip)
            return self._served

    def predict(self, images: npt.NDArray[Any], *, progress: Progress = no_progress) -> Answers:
        """Classes and probabilities of images, (n, *shape).

        Args:
            images: pixels, as unsigned integers or floats from 0 to 1; without a layer, plain data.
            progress: told how many were answered.

        Raises:
            ServerError: if the server cannot be reached in time, or refuses.
            ShapeError: if they are not images that the layer takes.
            DeliveryError: if an image would exceed the budget of protected requests.
        """
        if self._protected is not None:
            plain = plain_data(images, self._protected.front.normalisation)
            return self.predict_plain(
                plain, originals=[as_stored(one) for one in images], progress=progress
            )
        plain = plain_data(images, None) if self.layer is None else self.layer.plain(images)
        return self.predict_plain(plain, progress=progress)

    def predict_plain(
        self,
        plain: Array,
        *,
        originals: Sequence[npt.NDArray[Any] | str] | None = None,
        arrived: Arrived | None = None,
        progress: Progress = no_progress,
    ) -> Answers:
        """The same for plain data, normalised already.

        Args:
            plain: (n, *input_shape) of the first layer, or of the front.
            originals: what each was made from, as it is stored, or the digest of that: protected requests
                are counted by them, and need them.
            arrived: told of the answers to each request as they come, also where others fail.
            progress: told how many were answered.

        Raises:
            ParameterError: if protected requests are given without originals.
        """
        if self._protected is not None and originals is None:
            raise ParameterError(
                "protected requests count an image by what it was made from, to know it from deliveries",
                advice={"originals": None},
            )
        served = self.served()  # before anything is spent
        if self._protected is not None and originals is not None:
            plain = self._protected.rows(plain, originals)
        morphed = np.asarray(morph(plain, self.key), np.float32)
        batches = [
            Batch(start, morphed[start : start + self._batch_rows], secrets.token_hex(16))
            for start in range(0, len(morphed), self._batch_rows)
        ]
        bits = None if self._protected is None else self._protected.bits
        self._log.begin(
            [LoggedRequest(one.id, now(), self._place, self.model, len(one.rows), bits) for one in batches]
        )
        found, answered = [], list[str]()

        def take(batch: Batch, rows: npt.NDArray[np.float32]) -> None:
            found.append(rows)
            answered.append(batch.id)
            if arrived is not None:
                arrived(batch.start, rows)
            progress(sum(map(len, found)), len(morphed))

        stop = threading.Event()
        try:
            waiting = [self._senders.submit(self._ask, batch, served, stop) for batch in batches]
            gather(batches, waiting, take, stop)
        finally:
            self._log.answered(answered)
        return served.answers(found)

    def _ask(self, batch: Batch, served: Served, stop: threading.Event) -> npt.NDArray[np.float32]:
        """Send one request until it is answered, or others give up."""
        parameters = {KEY_PARAMETER: self.key.fingerprint} if served.checks_key else {}
        request = Message((Tensor.of(INPUT, batch.rows),), batch.id, parameters, (), True)

        def attempt() -> npt.NDArray[np.float32]:
            answer = self._channel.infer(self.model, replace(request))
            return probabilities_in(answer, batch.id, len(batch.rows), served)

        return persistently(attempt, self._patience, stop)

    def _check_layer(self, ledger: Ledger) -> None:
        """Refuse a first layer that the key was not used for, by the provider's own ledger."""
        if self.layer is None:
            return
        others = ledger.other_layers(self.layer.fingerprint)
        if others:
            raise ParameterError(
                f"{self.key.path or 'the key'} was used for first layer {others[-1].layer_fingerprint}, "
                f"and this is {self.layer.fingerprint}: give the layer of that delivery, or the key for it"
            )

    def warn_of_resize(self, resize: str | None) -> None:
        """Warn where images were brought to size in another way before, by the provider's own ledger."""
        if self.layer is None:
            return
        before = Ledger(self.key.fingerprint, self.key.path).other_resize(self.layer.fingerprint, resize)
        if before is not None:
            warnings.warn(
                f"images were brought to size by '{before}' in what was delivered, and by '{resize}' now: "
                "the network may not know them",
                MoleWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        """Let go of connections, and of the front's process."""
        self._senders.shutdown(cancel_futures=True)
        self._channel.close()
        if self._protected is not None:
            self._protected.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r}, model={self.model!r}, key={self.key.fingerprint!r})"
