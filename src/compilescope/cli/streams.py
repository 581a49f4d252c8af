"""The last gate before the terminal: what a command prints can be read, and steers nothing.

A command prints names, paths and messages that others wrote, in hundreds of places and in the
errors of libraries. So the streams themselves make all of it visible. What is drawn (colours,
links, a bar that redraws itself) had its texts cleaned before, and goes around: `exact`.

GitHub Actions obeys commands in any line that it reads, wherever a line was wrapped: there, only
`check`'s annotations get out as such.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any

from compilescope.settings import in_github_actions
from compilescope.texts import ascii_json, plain_json, visible, without_commands


class _Gate:
    """A stream whose writers cannot steer the terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self.exact = stream

    def write(self, text: str) -> int:
        self.exact.write(_obeyed_by_none(visible(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.exact, name)


def guard_streams() -> None:
    """From here on, for this process: a traceback at its end is printed through it too."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def exact(stream: IO[str]) -> IO[str]:
    """The same stream for what we have drawn: nothing in it may come from elsewhere uncleaned."""
    return stream.exact if isinstance(stream, _Gate) else stream


def put(text: str, *, error: bool = False, commands: bool = False) -> None:
    """Something drawn, on stdout or stderr; `commands`: it holds some of ours for GitHub."""
    stream = exact(sys.stderr if error else sys.stdout)
    stream.write(text if commands else _obeyed_by_none(text))
    stream.flush()


def put_json(value: Any, *, indent: int = 0) -> None:
    """A value on stdout, valid whatever the terminal can show."""
    text = any_encoding(plain_json(value, indent=indent))
    # No line of JSON begins with a command, and inside a string it has a form that is none.
    put(text.replace("##[", "#\\u0023[") if in_github_actions() else text)
    put("\n")


def any_encoding(json: str) -> str:
    """The same JSON; escaped where stdout cannot hold every character, so that none is lost."""
    try:
        json.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return ascii_json(json)
    return json


def _obeyed_by_none(text: str) -> str:
    return without_commands(text) if in_github_actions() else text


def _guarded(stream: Any) -> Any:
    if stream is None or isinstance(stream, _Gate):
        return stream
    with suppress(AttributeError, ValueError, OSError):
        # A terminal that can't show a character gets its name instead of an error.
        stream.reconfigure(errors="backslashreplace")
    return _Gate(stream)
