"""Takes a run archive or a log from a browser and has the tool read it, as a job."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.jobs.job import UPLOAD
from compilescope.apps.dashboard.jobs.service import TooManyJobs
from compilescope.apps.dashboard.server.page import Address, DashboardPage
from compilescope.apps.dashboard.server.safety import limited
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.errors import ToolError

_CHUNK = 1 << 20
"""Bytes that are taken at a time. Chosen: little memory, whatever the size of the file."""
_ZIP = b"PK\x03\x04"
_KINDS = ("auto", "run", "log")
_AROUND = 64 << 10
"""What a multipart body may have beside the file. Chosen: names and boundaries take far less."""
_UNBOUNDED = 1 << 50
"""The frame's own limit is one for all: ours is that of the options."""


async def _upload(request: Request) -> Response:
    dashboard = dashboard_of(request)
    most = dashboard.options.limits.upload_bytes
    too_much = HTTPException(413, f"A file may have at most {most:,} bytes.")
    multipart = request.headers.get("content-type", "").startswith("multipart/form-data")
    allowed = most + _AROUND if multipart else most
    body = Request(request.scope, limited(request.receive, allowed, too_much))
    folder = await asyncio.to_thread(dashboard.jobs.reserve)
    try:
        (folder / UPLOAD).mkdir()
        kind, path = await (_of_form if multipart else _of_body)(body, folder / UPLOAD)
        if not path.stat().st_size:
            raise ToolError("The file is empty.", hint="Choose a run archive or a log.")
        if path.stat().st_size > most:
            raise too_much
        if kind == "auto":
            kind = "run" if _is_zip(path) else "log"
        command = "import" if kind == "run" else "logs"
        job = await asyncio.to_thread(
            dashboard.jobs.start,
            [command, "--dir", str(dashboard.options.home), str(path)],
            folder,
            title=f"{command} {path.name}",
            folder=folder,
        )
    except BaseException as error:
        await asyncio.to_thread(dashboard.jobs.give_up, folder)
        if isinstance(error, TooManyJobs):
            raise HTTPException(429, f"{error.message} {error.hint}") from None
        if isinstance(error, OSError):
            raise ToolError(f"The file can't be stored: {error.strerror}.") from None
        raise
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def _of_body(request: Request, folder: Path) -> tuple[str, Path]:
    """A body that is the file, with its name and kind in the address."""
    kind = _kind(request.query_params.get("kind", "auto"))
    path = folder / safe_name(request.query_params.get("name", "upload"))
    await _write(path, request.stream())
    return kind, path


async def _of_form(request: Request, folder: Path) -> tuple[str, Path]:
    """A form with one file, which Starlette keeps on disk while it comes."""
    async with request.form(max_files=1, max_fields=4) as sent:
        file = sent.get("file")
        if not isinstance(file, UploadFile):
            raise ToolError("Choose a file to upload.")
        kind = _kind(sent.get("kind", "auto"))
        path = folder / safe_name(file.filename or "upload")

        async def chunks() -> AsyncIterator[bytes]:
            while chunk := await file.read(_CHUNK):
                yield chunk

        await _write(path, chunks())
    return kind, path


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> None:
    with path.open("xb") as file:
        async for chunk in chunks:
            await asyncio.to_thread(file.write, chunk)


def _kind(given: object) -> str:
    if given not in _KINDS:
        raise ToolError(f"The kind of a file is one of: {', '.join(_KINDS)}.")
    return str(given)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def safe_name(given: str) -> str:
    """The last part of a name, of characters that mean nothing anywhere."""
    last = re.split(r"[/\\]", given)[-1]
    plain = re.sub(r"[^\w.-]+", "_", last, flags=re.ASCII).lstrip(".-_")[-100:]
    return plain or "upload"


PAGE = DashboardPage(
    "upload", 21, (Address("/upload", _upload, "POST", types=(), most_bytes=_UNBOUNDED),)
)
