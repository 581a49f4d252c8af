"""PyTorch's table over https: read within limits, and checked before anybody keeps it.

Only https, also after redirects, and only from a host whose certificate holds. Proxies are those
of the environment, as urllib reads them.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.knowledge.registry.table import Registry, parse_registry

BIGGEST_DOWNLOAD = 8 * 1024 * 1024
"""Bytes. Chosen: over ten times what the table has in any torch so far."""
FEWEST_SHARE = 0.8
"""A table with fewer ids than this share of the last one was likely not meant to replace it.
Chosen: ids go one by one, a truncated table loses many."""
_SILENCE_S = 30.0
"""Chosen: it ends what hangs."""
_REPOSITORY = "https://raw.githubusercontent.com/pytorch/pytorch"
_TABLE = "torch/_dynamo/graph_break_registry.json"
_REF = re.compile(r"main|release/\d+\.\d+|v\d+\.\d+\.\d+(?:-rc\d+)?")
_BLOB = re.compile(r"/([^/]+)/([^/]+)/(?:blob|raw)/(.+)")


@dataclass(frozen=True)
class TableSource:
    """Where a table is downloaded from."""

    url: str
    ref: str = ""
    """The branch or tag of PyTorch's repository; empty for any other address."""
    shown: str = field(default="", compare=False)
    """The address without what may be a secret in it."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


def source_of(text: str) -> TableSource:
    """What `main`, `release/2.14`, `v2.14.0` or an https address names."""
    if _REF.fullmatch(text):
        url = f"{_REPOSITORY}/{text}/{_TABLE}"
        return TableSource(url, text, url)
    parts = _https_parts(text)
    if parts is None:
        if text.lower().startswith("http://"):
            raise ToolError(f"{_shown(text)!r} is not https.", "Tables are downloaded over https.")
        raise ToolError(
            f"{_shown(text)!r} is neither main nor an https address without a password.",
            "To look into a file, wheel or checkout: compilescope registry build --file SOURCE",
        )
    blob = _BLOB.fullmatch(parts.path)
    if parts.hostname == "github.com" and blob:
        # The address of the page that shows the file, as people copy it from a browser.
        path = "/".join(blob.groups())
        parts = SplitResult("https", "raw.githubusercontent.com", f"/{path}", "", "")
    return TableSource(urlunsplit(parts), "", _shown(urlunsplit(parts)))


def fetch(source: TableSource, *, ca_file: Path | None = None, limit_s: float = 120.0) -> bytes:
    """What the address answers, whole, within the limits of size and time."""
    found: list[bytes | BaseException] = []
    silence_s = min(_SILENCE_S, limit_s)
    opener = _opener(ca_file)

    def work() -> None:
        try:
            found.append(_read(opener, source, silence_s))
        except BaseException as error:
            found.append(error)

    # In a thread: a server that sends a byte now and then would hold each single read open.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not found:
        raise ToolError(f"{source.host} did not send the table within {limit_s:g} s.", _OTHER_WAY)
    answer = found[0]
    if isinstance(answer, bytes):
        return answer
    raise _told(answer, source, silence_s) from None


def checked_table(data: bytes, source: TableSource, before: int) -> Registry:
    """The table in `data`. `before`: how many ids the one has that it would replace; 0: any."""
    if data.lstrip()[:1] == b"<":
        raise ToolError(
            f"{source.shown} is a web page, not a graph-break table.",
            f"The address of the file itself ends in {_TABLE.rpartition('/')[2]}.",
        )
    version = source.ref[1:] if source.ref.startswith("v") else None
    table = parse_registry(data, source.shown, version)
    if len(table) < FEWEST_SHARE * before:
        raise ToolError(
            f"{source.shown} has only {len(table)} IDs; the table before has {before}.",
            "If that is right, pass --allow-fewer.",
        )
    return table


_OTHER_WAY = "If you have the table as a file: compilescope registry list --file FILE"


class _OnlyHttps(HTTPRedirectHandler):
    """Follows a redirect to https alone."""

    max_redirections = 5

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any) -> Any:
        target = headers.get("location") or headers.get("uri") or ""
        if target and _https_parts(urljoin(req.full_url, target)) is None:
            raise ToolError(
                f"{urlsplit(req.full_url).hostname} redirects to {_shown(target)!r}, which is not "
                "https."
            )
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _opener(ca_file: Path | None) -> OpenerDirector:
    """Without the handlers for http, ftp, file and data that urllib would add."""
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if isinstance(error, FileNotFoundError) else "not PEM certificates"
        raise ToolError(f"{ca_file} could not be used as a CA file: {why}.") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(),
        HTTPSHandler(context=context),
        HTTPDefaultErrorHandler(),
        _OnlyHttps(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _read(opener: OpenerDirector, source: TableSource, silence_s: float) -> bytes:
    headers = {"User-Agent": f"compilescope/{VERSION}", "Accept-Encoding": "identity"}
    with opener.open(Request(source.url, headers=headers), timeout=silence_s) as response:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ToolError(f"{source.host} sends the table compressed, which was not asked for.")
        chunks: list[bytes] = []
        size = 0
        while chunk := response.read1(1 << 16):
            size += len(chunk)
            if size > BIGGEST_DOWNLOAD:
                limit = BIGGEST_DOWNLOAD // 1024 // 1024
                raise ToolError(
                    f"{source.shown} is larger than {limit} MB: too large for a graph-break table."
                )
            chunks.append(chunk)
        wanted = response.headers.get("Content-Length", "")
        if wanted.isdigit() and size < int(wanted):
            raise http.client.IncompleteRead(b"", int(wanted) - size)
    return b"".join(chunks)


def _told(error: BaseException, source: TableSource, silence_s: float) -> BaseException:
    """One sentence for what can go wrong on the way; our own mistakes as they are."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, HTTPError):
        with suppress(Exception):
            error.close()
        why = f"{error.code} {http.client.responses.get(error.code, '')}".strip()
        return ToolError(f"{source.shown} answered {why}.", _OTHER_WAY)
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ToolError(
            f"The certificate of {source.host} could not be verified: {reason.verify_message}.",
            "If a certificate authority of your own signed it, pass --ca-file FILE or set "
            "SSL_CERT_FILE.",
        )
    if isinstance(reason, TimeoutError | socket.timeout):
        return ToolError(f"{source.host} did not answer within {silence_s:g} s.", _OTHER_WAY)
    if isinstance(reason, http.client.IncompleteRead):
        return ToolError(f"The download from {source.host} ended early.", "Try again.")
    if isinstance(reason, OSError | http.client.HTTPException | str | UnicodeError):
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return ToolError(f"{source.host} could not be reached: {why}.", _OTHER_WAY)
    return error


def _https_parts(text: str) -> SplitResult | None:
    """The parts of an https address that names a host, and neither a user nor a password."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    plain = text.isascii() and text.isprintable() and " " not in text
    fits = parts.scheme == "https" and parts.hostname and "@" not in parts.netloc
    return parts if plain and fits else None


def _shown(text: str) -> str:
    """An address for people and for files: its query may hold a token, its host a password."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text[:80]
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))[:200]
