"""The pages, all from this process, and what they offer to choose from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from dragoman.errors import DragomanError
from dragoman.models import Feature, Model
from dragoman.policies import make_policy
from dragoman.serve.service import Service
from dragoman.setup import Setup
from dragoman.text.languages import find_language

PAGE = Path(__file__).parent / "page"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Permissions-Policy": "microphone=(self), display-capture=(self), screen-wake-lock=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # asked for again, and answered with 304
}


def page_routes(service: Service) -> list[BaseRoute]:
    """The speaker's page, the listener's, hall and overlay, and their files."""

    async def languages(request: Request) -> Response:
        model, setup = service.system.model, service.system.setup
        return JSONResponse(
            {
                "hears": [_named(code) for code in model.hears],
                "speaks": [_named(code) for code in model.speaks or (setup.target,)],
                "from": setup.source,
                "to": setup.target,
                "latencies_ms": _latencies(setup, model),
                "transcript": Feature.TRANSCRIPT in model.features,
                "token": service.settings.token is not None,
            }
        )

    return [
        Route("/", _page("speaker.html")),
        Route("/room/{room}", _page("listener.html")),
        Route("/hall/{room}", _page("hall.html")),
        Route("/overlay/{room}", _page("overlay.html")),
        # Of a link that lost the name of its room the page itself says so, as of one that is wrong;
        # black words on dark video would tell nobody.
        Route("/room/", _page("listener.html")),
        Route("/hall/", _page("hall.html")),
        Route("/overlay/", _page("overlay.html")),
        *(Route(f"/{name}", _below) for name in ("room", "hall", "overlay")),
        *(Route(f"/{name}/{{room}}/", _above) for name in ("room", "hall", "overlay")),
        Mount("/page", _WithHeaders(StaticFiles(directory=PAGE))),
        Route("/v1/languages", languages),
    ]


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return FileResponse(PAGE / name, headers=HEADERS)

    return page


async def _below(request: Request) -> Response:
    """To the same address with a slash, from which a page finds its files. Of all the address only
    its end is named: a proxy may have put the pages below a path of its own."""
    return RedirectResponse(f"{request.url.path.rpartition('/')[2]}/{_query(request)}")


async def _above(request: Request) -> Response:
    """To the address of a room without the slash that somebody has put at its end: the files are
    beside the folder that a page is in. It is named as in `_below`."""
    return RedirectResponse(f"../{quote(request.path_params['room'])}{_query(request)}")


def _query(request: Request) -> str:
    return f"?{request.url.query}" if request.url.query else ""


class _WithHeaders:
    """Another application, its answers with the headers of the pages."""

    def __init__(self, app: StaticFiles) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self._app(scope, receive, send_more)


def _latencies(setup: Setup, model: Model) -> list[float]:
    """The lags that something is tuned for which this model can do."""
    rows = setup.tuned_rows
    return [lag for lag, policy, _ in rows if make_policy(policy).needs <= model.features]


def _named(code: str) -> dict[str, str]:
    try:
        name = find_language(code).name
    except DragomanError:  # a translator may know more languages than we have names for
        name = code
    return {"code": code, "name": name}
