"""The fields of a form that a browser sent: those that are known, each once, as text."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl

from starlette.requests import Request

from compilescope.errors import ToolError

_TYPE = "application/x-www-form-urlencoded"


async def read_fields(request: Request, names: Collection[str]) -> dict[str, str]:
    """Every name has a value, empty where it was not sent. Nothing is guessed or replaced: what is
    not UTF-8 is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise ToolError("This form is not sent in the way that this page sends it.")
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=len(names) + 8,
        )
    except UnicodeError:
        raise ToolError("What was sent is not UTF-8 text.") from None
    except ValueError:
        raise ToolError("What was sent has too many fields.") from None
    found = dict.fromkeys(names, "")
    seen = set()
    for name, value in pairs:
        if name not in found:
            raise ToolError(f"There is no field {name[:60]!r} here.")
        if name in seen:
            raise ToolError(f"The field {name!r} was sent twice.")
        seen.add(name)
        found[name] = value
    return found
