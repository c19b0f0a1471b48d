"""The Open Inference Protocol over gRPC."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from mole.exchange.inference_protobuf import MESSAGES, METHODS, SERVICE, from_request, parse, to_response
from mole.serving.checked_requests import Kind, RefusedError
from mole.serving.inference import Inference
from mole.storage.typed_json import FormatError

CODES: dict[Kind, grpc.StatusCode] = {
    "invalid": grpc.StatusCode.INVALID_ARGUMENT,
    "token": grpc.StatusCode.UNAUTHENTICATED,
    "unknown": grpc.StatusCode.NOT_FOUND,
    "slow": grpc.StatusCode.DEADLINE_EXCEEDED,
    "large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "busy": grpc.StatusCode.UNAVAILABLE,
}
OPEN = {"ServerLive", "ServerReady"}  # need no token
MOST_AT_ONCE = 1024
_log = logging.getLogger(__name__)


def grpc_door(inference: Inference) -> aio.Server:
    """The server that answers gRPC for a network; it listens nowhere yet."""
    most = inference.expected.most_bytes
    server = aio.server(
        options=[
            ("grpc.max_receive_message_length", most),
            ("grpc.max_send_message_length", most),
            ("grpc.so_reuseport", 0),  # a second server is told that the port is taken
        ],
        maximum_concurrent_rpcs=MOST_AT_ONCE,
    )
    server.add_generic_rpc_handlers((_Service(inference),))
    return server


class _Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the method that a call names. Bytes are parsed here, so that bad ones are a refusal."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._answers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server_metadata,
            "ModelMetadata": self._model_metadata,
            "ModelInfer": self._infer,
        }
        self._handlers = {f"/{SERVICE}/{name}": self._handler(name) for name in METHODS}

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call; None for a method that is not there."""
        return self._handlers.get(handler_call_details.method)

    def _handler(self, name: str) -> Any:
        async def handle(content: bytes, context: Any) -> bytes:
            code, words = grpc.StatusCode.INTERNAL, "the server could not answer"
            try:
                if name not in OPEN:
                    self._inference.check_token(_said(context, "authorization"))
                answer = await self._answers[name](parse(f"{name}Request", content))
                return bytes(answer.SerializeToString())
            except RefusedError as error:
                code, words = CODES[error.kind], str(error)
            except FormatError as error:
                self._inference.count("grpc", "invalid")
                code, words = CODES["invalid"], f"the request does not follow the protocol: {error}"
            except Exception:
                _log.exception("a request could not be answered")
            await context.abort(code, words)
            raise AssertionError  # abort has raised

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _live(self, _: Any) -> Any:
        return MESSAGES["ServerLiveResponse"](live=True)

    async def _ready(self, _: Any) -> Any:
        return MESSAGES["ServerReadyResponse"](ready=self._inference.is_ready)

    async def _model_ready(self, request: Any) -> Any:
        self._inference.expected.check_name(request.name, request.version)
        return MESSAGES["ModelReadyResponse"](ready=self._inference.is_ready)

    async def _server_metadata(self, _: Any) -> Any:
        return MESSAGES["ServerMetadataResponse"](**self._inference.server_metadata())

    async def _model_metadata(self, request: Any) -> Any:
        self._inference.expected.check_name(request.name, request.version)
        facts = self._inference.model_metadata()
        properties = {name: text.encode() for name, text in facts.pop("properties").items()}
        return MESSAGES["ModelMetadataResponse"](**facts, properties=properties)

    async def _infer(self, request: Any) -> Any:
        self._inference.expected.check_name(request.model_name, request.model_version)
        return to_response(await self._inference.infer("grpc", lambda: from_request(request)))


def _said(context: Any, name: str) -> str | None:
    """What a call's metadata says under a name, where it is text."""
    found = [value for key, value in context.invocation_metadata() or () if key == name]
    return found[0] if found and isinstance(found[0], str) else None
