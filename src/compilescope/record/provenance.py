"""Which runs were recorded by this user, and so may say what is executed or written.

A run is a folder that anyone may have made: unpacked from an archive, copied, checked out. Whatever
it says of itself can be forged, so what is executed (its command, the folder to run it in) and what
is written into the user's files (the fix of a search) counts only with a seal that nobody can make
without a secret of the user's. The secret never leaves the user's state folder, and a seal is no
part of an archive.

Where no secret can be kept, and in runs of versions before this one, there is no seal: such a run
cannot be told from a stranger's. It can be read as any other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.settings import state_folder
from compilescope.base.texts import encodable
from compilescope.record.header import RunHeader
from compilescope.record.plain_files import read_plain

SEALS = "seals.json"
"""In the run's folder: what is sealed -> its seal."""
_COMMAND, _FIX = "command", "fix"


def seal_run(folder: Path, header: RunHeader) -> None:
    """Of a run that this process records."""
    _seal(folder, _COMMAND, _command(header))


def is_recorded_here(folder: Path, header: RunHeader) -> bool:
    """May its command be run? Only with the header that it was recorded with."""
    return _has_seal(folder, _COMMAND, _command(header))


def seal_fix(folder: Path, run: str, verdict: str, changes: str) -> None:
    """Of a search that this process made; `changes`: the text of what it would write."""
    _seal(folder, _FIX, (run, verdict, changes))


def is_fix_found_here(folder: Path, run: str, verdict: str, changes: str) -> bool:
    """May these changes be written into the user's files?"""
    return _has_seal(folder, _FIX, (run, verdict, changes))


def _command(header: RunHeader) -> tuple[object, ...]:
    # As it is read again: a header holds no byte that is not UTF-8.
    return (header.run, tuple(map(encodable, header.command)), encodable(header.cwd))


def _seal(folder: Path, what: str, content: tuple[object, ...]) -> None:
    from compilescope.record.token_file import keep_token

    # A home that cannot be written to: the run is recorded all the same.
    with suppress(OSError, ToolError):
        made = _made(keep_token(_secret_file()), what, content)
        part = folder / f".{SEALS}.{os.getpid()}.part"
        part.write_bytes(msgspec.json.encode({**_seals(folder), what: made}) + b"\n")
        part.replace(folder / SEALS)


def _has_seal(folder: Path, what: str, content: tuple[object, ...]) -> bool:
    from hmac import compare_digest

    from compilescope.record.token_file import read_token

    try:
        made = _made(read_token(_secret_file()), what, content)
    except (OSError, ToolError):
        return False
    return compare_digest(_seals(folder).get(what, "").encode(), made.encode())


def _made(secret: str, what: str, content: tuple[object, ...]) -> str:
    # Not with the module: few commands make or check a seal, and all of them start.
    import hashlib
    import hmac

    # repr, and not JSON: it has a form for text that is not UTF-8, and no two values share one.
    return hmac.new(secret.encode(), repr((what, content)).encode(), hashlib.sha256).hexdigest()


def _seals(folder: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(read_plain(folder / SEALS), type=dict[str, str])
    except (OSError, ValueError, RecursionError):
        return {}


def _secret_file() -> Path:
    return state_folder() / "recorded" / "runs.token"
