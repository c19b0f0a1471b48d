"""Who may use the playground: the browser that has its address, on this machine, and nobody else.

Other programs of this machine, other users of it, and every page that is open in the same browser can reach
a port on loopback. So each request has to be

- for this machine by name: a foreign Host is a page that had its own name resolved to 127.0.0.1;
- from this page, if a page sent it: another Origin is another page;
- for a path that begins with a token, which is drawn at every start and stands in the address alone.

There are no cookies, so no browser lends its rights to anybody. Nothing is cached or kept, and the page may
load nothing but itself.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_NAMES = ("127.0.0.1", "localhost")
REFUSED = "The playground is for the browser that was opened with it. Use the address that it printed.\n"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Address:
    """Where a playground is: its port, and the token that only whoever started it is told.

    >>> Address(8000, token="t0ken").url
    'http://127.0.0.1:8000/t0ken/'
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{self.hosts[0]}/{self.token}/"

    @property
    def hosts(self) -> Sequence[str]:
        """What a request may call this machine; browsers leave out the port of HTTP."""
        named = [f"{name}:{self.port}" for name in LOCAL_NAMES]
        return [*LOCAL_NAMES, *named] if self.port == 80 else named

    def admits(self, headers: Headers, path: str) -> bool:
        """Whether a request is for this page, and from it."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts or len(headers.getlist("host")) != 1:
            return False
        if origin is not None and origin not in [f"http://{name}" for name in self.hosts]:
            return False
        # A browser says so itself where another page asks; following a link to this page is no such thing.
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        if site not in ("none", "same-origin") and mode != "navigate":
            return False
        token = path.removeprefix("/").split("/")[0]
        return secrets.compare_digest(token.encode(), self.token.encode())


class Gate:
    """Lets requests through to an application if they may pass, with the token taken off their path."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; of other kinds of connections there are none."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if not self._address.admits(Headers(scope=scope), scope["path"]):
            await PlainTextResponse(REFUSED, 403)(scope, receive, send_guarded)
            return
        inner = {**scope, "path": scope["path"].removeprefix(f"/{self._address.token}"), "raw_path": None}
        await self._app(inner, receive, send_guarded)
