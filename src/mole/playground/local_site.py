"""The page and what it asks for, as an application: bounded, typed, never a traceback.

Every answer is worked out by a thread of its own, with one thread of linear algebra: attackers do not wait
for each other, and a busy machine does not slow them down more than it must.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from importlib.resources import files

# Loaded now and not by attacks, in threads: a library that is loaded in one thread while threadpoolctl
# counts libraries in another can stop both for ever.
import scipy.stats  # noqa: F401
import skimage.data  # noqa: F401
import sklearn.utils.extmath  # noqa: F401
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from mole.errors import MoleError
from mole.limits import MAX_ASKED_BYTES, MAX_UPLOAD_BYTES
from mole.playground import answers
from mole.playground.answers import Answer
from mole.playground.choices import MorphingChoice, parse_bits
from mole.playground.gate import Address, Gate
from mole.playground.morphing_trial import TRIED, MorphingTrial
from mole.playground.noise_trial import NoiseTrial, front_of
from mole.playground.stock import LOOKS, Stock
from mole.quantities import size_text
from mole.storage.typed_json import Fields, FormatError, parse_json

PAGES = (
    ("/", "playground.html", "text/html"),
    ("/playground.css", "playground.css", "text/css"),
    ("/playground.js", "playground.js", "text/javascript"),
)
FIRST_BITS = 1.0  # as the page begins
Work = Callable[[Stock, bytes], Answer]
Answering = Callable[[Request], Awaitable[Response]]


class TooLargeError(MoleError):
    """More was sent than is read."""


def look(stock: Stock, asked: bytes) -> Answer:
    """Morph a picture."""
    return answers.timed(lambda: answers.look(_trial(stock, parse_json(asked))))


def attack(stock: Stock, asked: bytes) -> Answer:
    """Let one attacker try."""
    fields = parse_json(asked)
    attacker = fields.text("attacker")
    if attacker not in TRIED:
        raise FormatError("it names no attacker")
    return answers.attacked(_trial(stock, fields), attacker)


def protect(stock: Stock, asked: bytes) -> Answer:
    """Make a protected row of a picture, and let everybody try."""
    fields = parse_json(asked)
    picture, bits = stock.get(fields.text("picture")), parse_bits(fields)
    return answers.timed(lambda: answers.protected(picture.name, NoiseTrial.of(picture, bits)))


def bring(stock: Stock, content: bytes) -> Answer:
    """Take a picture that the visitor brings."""
    name = stock.add(content)
    return answers.thumbnail(name, stock.get(name))


def welcome(stock: Stock, _: bytes) -> Answer:
    """Say what there is to choose."""
    return answers.welcome(stock)


ASKED: dict[str, tuple[Work, int]] = {
    "/welcome": (welcome, 0),
    "/look": (look, MAX_ASKED_BYTES),
    "/attack": (attack, MAX_ASKED_BYTES),
    "/protect": (protect, MAX_ASKED_BYTES),
    "/picture": (bring, MAX_UPLOAD_BYTES),
}


def _trial(stock: Stock, fields: Fields) -> MorphingTrial:
    picture = stock.get(fields.text("picture"))
    shape, _ = LOOKS[picture.kind]
    return MorphingTrial.of(picture, MorphingChoice.parse(fields, picture.kind, shape))


def get_ready(stock: Stock) -> None:
    """Make what is made once, so that the first answers take no longer than others."""
    for kind in LOOKS:
        front_of(kind)
    NoiseTrial.of(next(iter(stock.samples.values())), FIRST_BITS)


def site(address: Address, stock: Stock, pool: Executor, opened: Callable[[], None]) -> ASGIApp:
    """The application: a page, its parts, and what it asks for.

    Args:
        address: where it is.
        stock: the pictures.
        pool: threads that work.
        opened: called once it can be asked.
    """

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await asyncio.get_running_loop().run_in_executor(pool, get_ready, stock)
        opened()
        yield
        pool.shutdown(wait=False, cancel_futures=True)

    def shown(name: str, kind: str) -> Answering:
        content = files("mole.playground").joinpath(name).read_bytes()

        async def show(_: Request) -> Response:
            return Response(content, media_type=kind)

        return show

    def answered(work: Work, most: int) -> Answering:
        async def answer(request: Request) -> Response:
            try:
                content = await _read(request, most)
                running = asyncio.get_running_loop().run_in_executor(pool, work, stock, content)
                return JSONResponse(await running)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody is there to read it
            except TooLargeError as error:
                return JSONResponse({"error": error.sentence}, 413)
            except FormatError as error:
                return JSONResponse({"error": f"This cannot be understood: {error}."}, 400)
            except MoleError as error:
                return JSONResponse({"error": error.sentence}, 422)
            except Exception as error:  # a mistake of ours must not end the page
                return JSONResponse({"error": f"That did not work: {type(error).__name__}."}, 500)

        return answer

    pages = [Route(path, shown(name, kind), methods=["GET"]) for path, name, kind in PAGES]
    works = [Route(path, answered(*how), methods=["POST"]) for path, how in ASKED.items()]
    return Gate(Starlette(routes=[*pages, *works], lifespan=life), address)


async def _read(request: Request, most: int) -> bytes:
    """What was sent with a request, and no more than is allowed.

    Raises:
        TooLargeError: as soon as it is more.
    """
    content = bytearray()
    said = request.headers.get("content-length", "0")
    if not said.isdecimal() or int(said) > most:
        raise TooLargeError(_too_large(most))
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise TooLargeError(_too_large(most))
    return bytes(content)


def _too_large(most: int) -> str:
    return f"this is more than {size_text(most)}: choose a smaller file"
