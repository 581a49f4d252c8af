"""The web application: all pages, behind what guards them."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from compilescope.dashboard import pages
from compilescope.dashboard.addresses import MissingPage
from compilescope.dashboard.drawing_workers import StillDrawing
from compilescope.dashboard.pages.sign_in import ask_for_token
from compilescope.dashboard.server.options import Options
from compilescope.dashboard.server.page import Address, DashboardPage, Handler
from compilescope.dashboard.server.page_frame import answer_asset, show
from compilescope.dashboard.server.safety import Safety, gave_wrong_token, has_token, limited
from compilescope.dashboard.server.state import Dashboard
from compilescope.errors import ToolError
from compilescope.local_requests import SAFE_METHODS
from compilescope.plugins import discover

_WORDS = {404: "There is no such page.", 405: "This address does not answer to that method."}


def all_pages() -> list[DashboardPage]:
    return sorted(discover(pages, "PAGE", DashboardPage), key=lambda page: page.order)


def make_app(options: Options) -> Starlette:
    dashboard = Dashboard(options)
    found = all_pages()
    routes = [
        Route(address.pattern, _guarded(page, address, options), methods=[address.method])
        for page in found
        for address in page.addresses
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with dashboard.running():
            yield

    app = Starlette(
        routes=[*routes, Route("/assets/{name}", answer_asset)],
        middleware=[Middleware(Safety, options=options)],
        exception_handlers={
            ToolError: _told,
            StillDrawing: _still_drawing,
            HTTPException: _refused,
            Exception: _failed,
        },
        lifespan=lifespan,
    )
    app.state.dashboard = dashboard
    app.state.pages = [page for page in found if page.title]
    return app


def _guarded(page: DashboardPage, address: Address, options: Options) -> Handler:
    most = options.limits.form_bytes if address.most_bytes is None else address.most_bytes
    is_open = address.anyone or (
        address.open and address.method == "GET" and not options.everything_needs_token
    )

    async def answer(request: Request) -> Response:
        request.scope.update(page=page.id, order=page.order)
        if gave_wrong_token(request) or not (is_open or has_token(request)):
            return ask_for_token(request)
        too_much = HTTPException(413, f"A request may have at most {most:,} bytes here.")
        _check_body(request, address, most, too_much)
        limits = limited(request.receive, most, too_much)
        try:
            return await address.handler(Request(request.scope, limits))
        except (HTTPException, ToolError):
            raise
        except ClientDisconnect:
            return Response(status_code=400)  # Nobody hears it.
        except Exception as error:
            # Here and not further out, where the answer would go without its headers.
            traceback.print_exception(error)
            return await _failed(request, error)

    return answer


def _check_body(request: Request, address: Address, most: int, too_much: HTTPException) -> None:
    """What can be said before any of it is read."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_much
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method not in SAFE_METHODS and kind and kind not in (address.types or (kind,)):
        raise HTTPException(415, f"This needs {' or '.join(address.types)}.")


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, ToolError)
    status = 404 if isinstance(error, MissingPage) else 400
    return _problem(request, status, error.message, error.hint)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = _WORDS.get(error.status_code, error.detail)
    answer = _problem(request, error.status_code, words)
    answer.headers.update(error.headers or {})
    return answer


async def _still_drawing(request: Request, error: Exception) -> Response:
    """The worker goes on; the page asks again by itself, without any script."""
    words = "Preparing this page…"
    hint = "compilescope is reading what was recorded; a large run takes up to a minute."
    answer = _problem(request, 202, words, hint, template="pending")
    answer.headers["refresh"] = "1"
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    hint = "The terminal or log of `compilescope serve` shows what. Please report it."
    return _problem(request, 500, "Something went wrong in compilescope.", hint)


def _problem(
    request: Request, status: int, message: str, hint: str = "", *, template: str = "problem"
) -> Response:
    """For a person a page, for a script the same as data."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": message, "hint": hint}, status)
    return show(request, template, message, status=status, message=message, hint=hint, code=status)
