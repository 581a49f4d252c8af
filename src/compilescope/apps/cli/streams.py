"""stdout and stderr of a command: what goes out can be read and steers nothing.

A command prints names, paths and messages that others wrote, in hundreds of places and in the
errors of libraries. So the streams themselves make all of it visible. What is drawn (colours,
links, a bar that redraws itself) had its texts cleaned before, and goes around: `exact`.

GitHub Actions obeys commands in any line that it reads, wherever a line was wrapped: there, only
`check`'s annotations get out as such.

A command may find its streams closed, full, or with a reader that has left. What cannot be said is
no reason to end with another status.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, NoReturn

from compilescope.base.settings import in_github_actions
from compilescope.base.texts import ascii_json, json_parts, plain_json, visible, without_commands

_MOST_WAITING = 1 << 16
"""Letters of JSON that are put out at a time. Chosen: hundreds of entries, and little memory."""


class _ClosedStream(io.TextIOBase):
    """In place of a stream that is closed: `print` to None would go to the other one."""

    def write(self, text: str) -> int:
        return len(text)


def open_streams() -> None:
    if sys.stdout is None:
        sys.stdout = _ClosedStream()
    if sys.stderr is None:
        sys.stderr = _ClosedStream()


def say(*lines: str) -> None:
    """On stderr, if anybody listens."""
    with suppress(OSError, ValueError):
        for line in lines:
            print(line, file=sys.stderr)
        sys.stderr.flush()


@contextmanager
def told_if_possible() -> Iterator[None]:
    """For what follows a program's end: nothing that happens here may cost it its status."""
    try:
        yield
    except (OSError, ValueError) as error:
        # A stream that fails has nobody to be told to; of the rest the words are enough.
        if isinstance(error, OSError) and error.filename is None:
            return
        _say_traceback()
    except Exception:
        _say_traceback()


def _say_traceback() -> None:
    import traceback

    say(traceback.format_exc().rstrip())


def settle_streams() -> None:
    """Write what is still to be written. Python would end with status 120 for a stream that
    cannot be: such a one is let go."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            setattr(sys, name, None)


def leave(status: int) -> NoReturn:
    """End with this status, also where PYTHONINSPECT is set for the program's sake."""
    if sys.flags.inspect or sys.flags.interactive:
        _end_now(status)
    sys.exit(status)


class _SafeStream:
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
    return stream.exact if isinstance(stream, _SafeStream) else stream


def put(text: str, *, error: bool = False, commands: bool = False) -> None:
    """Something drawn, on stdout or stderr; `commands`: it holds some of ours for GitHub."""
    stream = exact(sys.stderr if error else sys.stdout)
    stream.write(text if commands else _obeyed_by_none(text))
    stream.flush()


def put_json(value: Any, *, indent: int = 0) -> None:
    """A value on stdout, valid whatever the terminal can show. The lists of an object, which may be
    iterators, go out entry by entry: those of a long run are larger than the run."""
    is_object = isinstance(value, dict)
    parts = json_parts(value, indent=indent) if is_object else [plain_json(value, indent=indent)]
    waiting: list[str] = []
    letters = 0
    for part in parts:
        waiting.append(part)
        letters += len(part)
        if letters > _MOST_WAITING:
            _put_json_text("".join(waiting))
            waiting, letters = [], 0
    _put_json_text("".join(waiting))
    put("\n")


def _put_json_text(text: str) -> None:
    text = any_encoding(text)
    # No line of JSON begins with a command, and inside a string it has a form that is none.
    put(text.replace("##[", "#\\u0023[") if in_github_actions() else text)


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
    if stream is None or isinstance(stream, _SafeStream):
        return stream
    with suppress(AttributeError, ValueError, OSError):
        # A terminal that can't show a character gets its name instead of an error.
        stream.reconfigure(errors="backslashreplace")
    return _SafeStream(stream)


def end_process(status: object) -> NoReturn:
    """As after `sys.exit(status)`, without taking apart what ends with the process anyway: with the
    modules and objects of a page, that is a sixth of a small command's time.

    Only where Python's own end has nothing left to wait for, and torch no devices to let go.
    """
    if isinstance(status, int) and threading.active_count() == 1 and "torch" not in sys.modules:
        _end_now(status)
    sys.exit(status)  # type: ignore[arg-type]


def _end_now(status: int) -> NoReturn:
    with suppress(Exception):
        atexit._run_exitfuncs()
    settle_streams()
    os._exit(status & 0xFF)
