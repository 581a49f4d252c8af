"""How a browser gets the token: by the printed address, or by pasting it here."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.safety import (
    gave_wrong_token,
    has_token,
    is_token,
    local_path,
    sign_in,
)
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.local_requests import SAFE_METHODS

_DELAY_S = 0.5
"""Before a wrong token is answered. Nobody is ever locked out: a stranger could do that to all.
Chosen: guessing gets slow, a typing error does not hurt."""
_MOST_BYTES = 16 << 10
"""Of the form. Chosen: a token and little else."""
_NEEDED = "This needs the token that `compilescope serve` printed."
_WRONG = "This is not the token of this server."


def ask_for_token(request: Request) -> Response:
    """For whoever came without it, or with another one."""
    wrong = gave_wrong_token(request)
    status, problem = (403, _WRONG) if wrong else (401, _NEEDED)
    if "text/html" not in request.headers.get("accept", ""):
        hint = "Send it in the header `Authorization: Bearer TOKEN`."
        asked = {"www-authenticate": "Bearer"}
        return JSONResponse({"error": problem, "hint": hint}, status, asked)
    came_by = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = local_path(came_by) if request.method in SAFE_METHODS and not wrong else "/"
    return _ask(request, status, back, _WRONG if wrong else "")


async def _show(request: Request) -> Response:
    return RedirectResponse("/", 303) if has_token(request) else _ask(request, 200, "/")


async def _sign_in(request: Request) -> Response:
    form = await request.form(max_files=0, max_fields=4)
    token, back = (str(form.get(name, "")) for name in ("token", "next"))
    if is_token(_pasted(token), dashboard_of(request).options):
        answer = RedirectResponse(local_path(back), 303)
        return sign_in(answer, dashboard_of(request).options)
    await asyncio.sleep(_DELAY_S)
    return _ask(request, 403, local_path(back), _WRONG)


def _pasted(text: str) -> str:
    """The token, also out of the whole address that holds it."""
    return text.strip().rpartition("token=")[2]


def _ask(request: Request, status: int, back: str, problem: str = "") -> Response:
    request.scope["page"] = "sign-in"
    # A link on another site leads here without the cookie; one on this page brings it along.
    from_elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return show(
        request,
        "sign_in",
        "Sign in",
        status=status,
        back=back,
        problem=problem,
        from_elsewhere=from_elsewhere and not problem and status == 401,
    )


PAGE = DashboardPage(
    "sign-in",
    900,
    (
        Address("/sign-in", _show, anyone=True),
        Address("/sign-in", _sign_in, method="POST", anyone=True, most_bytes=_MOST_BYTES),
    ),
)
