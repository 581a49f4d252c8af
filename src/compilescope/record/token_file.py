"""A secret of the user's, in a file that nobody else can read.

The dashboard's token outlives its server, so that a restart signs nobody out and links keep
working: there is one for each folder of runs. `provenance` has a secret of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
from pathlib import Path

from compilescope.base.errors import ToolError

_TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,200}")
_NEW = "Delete it, or start the server with --new-token."


def token_path(folder: Path, home: Path) -> Path:
    """Where the token for that home is kept, below a folder of the user's own."""
    key = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    return folder / "dashboard" / f"{key}.token"


def keep_token(path: Path, *, new: bool = False) -> str:
    """The token of the last server; a new one where there was none, or where that is asked for.

    ToolError where the file is not safe, OSError where nothing can be written there."""
    _make_folder(path.parent)
    if not new:
        with contextlib.suppress(FileNotFoundError):
            return read_token(path)
    token = secrets.token_urlsafe(32)
    made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    _write(made, token)
    try:
        if new:
            made.replace(path)
            return token
        return _offer(made, path, token)
    finally:
        made.unlink(missing_ok=True)


def _offer(made: Path, path: Path, token: str) -> str:
    """Of two servers that start at once, both get the token of the first."""
    try:
        os.link(made, path)
    except FileExistsError:
        return read_token(path)
    except OSError:
        made.replace(path)  # A disk without hard links.
    return token


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform == "win32":
        return  # The profile of a user is theirs alone.
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ToolError(
            f"Other users can write to {folder}, where the token is kept.",
            hint=f"Make it yours alone: chmod 700 {folder}",
        )


def _write(path: Path, token: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w") as file:
        file.write(token + "\n")


def read_token(path: Path) -> str:
    """FileNotFoundError where there is none; ToolError where the file is not safe."""
    try:
        # A link or a pipe in its place would be somebody's trick.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        opened = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ToolError(f"Cannot read the token in {path}: {error.strerror}.", _NEW) from None
    with os.fdopen(opened, "rb") as file:
        _check_owner(os.fstat(file.fileno()), path)
        found = file.read(1000).strip()
    if not _TOKEN.fullmatch(found):
        raise ToolError(f"There is no valid token in {path}.", _NEW)
    return found.decode("ascii")


def _check_owner(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{path} is not a file.", _NEW)
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ToolError(f"Other users can read the token in {path}.", _NEW)
