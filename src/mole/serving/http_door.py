"""The Open Inference Protocol over HTTP: JSON, and binary tensors behind it. Every error is JSON, too."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mole.exchange.inference_messages import LENGTH_HEADER, Message, pack, unpack
from mole.quantities import size_text
from mole.serving.checked_requests import Kind, RefusedError
from mole.serving.inference import Inference

STATUS: dict[Kind, int] = {
    "invalid": 400, "token": 401, "unknown": 404, "slow": 408, "large": 413, "busy": 503,
}  # fmt: skip
SECONDS_FOR_A_BODY = 30.0
Endpoint = Callable[[Request], Awaitable[Response]]


def http_door(inference: Inference) -> Starlette:
    """The application that answers HTTP for a network."""
    expected = inference.expected

    def guarded(answer: Endpoint, *, is_open: bool = False) -> Endpoint:
        """An endpoint that asks for the token first, unless it is open, and whose refusals are answers."""

        async def endpoint(request: Request) -> Response:
            try:
                if not is_open:
                    inference.check_token(request.headers.get("authorization"))
                if "name" in request.path_params:
                    expected.check_name(request.path_params["name"], request.path_params.get("version", ""))
                return await answer(request)
            except RefusedError as error:
                return _refusal(STATUS[error.kind], str(error))
            except ClientDisconnect:
                return Response(status_code=400)  # nobody is there to read it

        return endpoint

    async def live(_: Request) -> Response:
        return _json({"live": True})

    async def ready(_: Request) -> Response:
        return _json({"ready": inference.is_ready}, 200 if inference.is_ready else 503)

    async def model_ready(_: Request) -> Response:
        facts = {"name": expected.name, "ready": inference.is_ready}
        return _json(facts, 200 if inference.is_ready else 503)

    async def server_metadata(_: Request) -> Response:
        return _json(inference.server_metadata())

    async def model_metadata(_: Request) -> Response:
        return _json(inference.model_metadata())

    async def metrics(_: Request) -> Response:
        return Response(inference.metrics(), media_type="text/plain; version=0.0.4")

    async def infer(request: Request) -> Response:
        try:
            body = await asyncio.wait_for(_body(request, expected.most_bytes), SECONDS_FOR_A_BODY)
        except TimeoutError:
            raise RefusedError("slow", "the request did not come in time: send it again") from None
        length = request.headers.get(LENGTH_HEADER)
        return _answer(await inference.infer("http", lambda: unpack(body, "inputs", length)))

    model, version = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"
    routes = [
        Route("/v2/health/live", guarded(live, is_open=True)),
        Route("/v2/health/ready", guarded(ready, is_open=True)),
        Route("/v2", guarded(server_metadata)),
        Route("/metrics", guarded(metrics)),
        *(Route(place, guarded(model_metadata)) for place in (model, version)),
        *(Route(f"{place}/ready", guarded(model_ready)) for place in (model, version)),
        *(Route(f"{place}/infer", guarded(infer), methods=["POST"]) for place in (model, version)),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _no_such_place, Exception: _failed})


async def _body(request: Request, most: int) -> bytes:
    """All of a request, of which no more is read than may be."""
    said = request.headers.get("content-length", "0")
    if said.isdigit() and int(said) > most:
        raise _too_large(most)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


def _too_large(most: int) -> RefusedError:
    return RefusedError("large", f"a request has at most {size_text(most)}: send fewer rows at a time")


def _answer(message: Message) -> Response:
    body, length = pack(message, "outputs", binary=message.is_binary)
    if length is None:
        return Response(body, media_type="application/json")
    headers = {LENGTH_HEADER: str(length)}
    return Response(body, media_type="application/octet-stream", headers=headers)


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")


def _refusal(status: int, words: str) -> Response:
    response = _json({"error": words}, status)
    if status == STATUS["busy"]:
        response.headers["Retry-After"] = "1"
    if status == STATUS["token"]:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def _no_such_place(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _refusal(status, "there is nothing of that name here: the paths of the protocol begin with /v2")


async def _failed(_: Request, __: Exception) -> Response:
    return _refusal(500, "the server could not answer: ask the developer, whose log has the reason")
