"""The Open Inference Protocol over gRPC, where it is installed: one connection for all requests."""

from typing import Any

from mole.errors import MissingExtraError, ServerError, TryAgainError
from mole.exchange.inference_messages import Message
from mole.foreign_text import shown
from mole.limits import MAX_REQUEST_BYTES
from mole.provider.channels import Address, ModelMetadata, other_protocol
from mole.storage.typed_json import FormatError

try:
    import grpc

    from mole.exchange.inference_protobuf import MESSAGES, SERVICE, from_response, to_request
except ImportError:
    grpc = None

NO_GRPC = ("parsing HTTP/2", "http1.x")  # in what gRPC says of a server of HTTP/1.1
LATER = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "CANCELLED"}


class GrpcChannel:
    """A way to a server over gRPC."""

    def __init__(self, address: Address) -> None:
        if grpc is None:
            raise MissingExtraError("gRPC is not installed (http:// needs nothing)", "client")
        self._address = address
        options = [
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            ("grpc.max_send_message_length", -1),  # the server says what is too long
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.enable_http_proxy", 0),
            ("grpc.enable_retries", 0),  # who calls decides that
        ]
        if address.is_secure:
            credentials = grpc.ssl_channel_credentials(address.certificates())
            self._channel: Any = grpc.secure_channel(address.place, credentials, options)
        else:
            self._channel = grpc.insecure_channel(address.place, options)

    def metadata(self, model: str) -> ModelMetadata:
        """What the server says of a network."""
        found = self._called("ModelMetadata", MESSAGES["ModelMetadataRequest"](name=model))
        ends = [
            tuple((one.name, one.datatype, tuple(one.shape)) for one in part)
            for part in (found.inputs, found.outputs)
        ]
        return ModelMetadata(ends[0], ends[1], dict(found.properties))

    def infer(self, model: str, message: Message) -> Message:
        """The server's answer to a request."""
        try:
            return from_response(self._called("ModelInfer", to_request(message, model)))
        except FormatError as error:
            raise ServerError(f"the answer of {self._address.place} is not one: {error}") from None

    def close(self) -> None:
        """Let go of the connection."""
        self._channel.close()

    def _called(self, method: str, request: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=MESSAGES[f"{method}Response"].FromString,
        )
        token = self._address.token
        metadata = None if token is None else (("authorization", f"Bearer {token}"),)
        try:
            return call(request, timeout=self._address.timeout, metadata=metadata)
        except grpc.RpcError as error:
            status, words = error.code().name, shown(error.details() or "it does not say why", 400)
            if any(mark in words for mark in NO_GRPC):
                raise other_protocol(self._address, "gRPC", "http") from None
            kind = TryAgainError if status in LATER else ServerError
            advice = {"model": None} if status == grpc.StatusCode.NOT_FOUND.name else None
            raise kind(f"{self._address.place} refuses ({status}): {words}", advice=advice) from None
