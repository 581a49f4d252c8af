"""How a process of the user's program ends: the exception that nobody caught.

Python keeps it in `sys` before it prints the traceback, so it can be read when the process ends and
nothing of the program needs to be changed: not its excepthook, not its traceback, not its status.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from types import TracebackType

import msgspec

from compilescope.base.package import PACKAGE
from compilescope.base.processes.interruptions import let_through
from compilescope.base.settings import env_rank, read_settings
from compilescope.instrument.recorder.stdin_source import know_stdin
from compilescope.record.bodies import ProcessEnded
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventFile
from compilescope.record.stack import Frame, origin_of

_OURS = PACKAGE + os.sep
_MOST_WORDS = 4000
"""Letters of the exception's text. Chosen, as in `torchapi.hooks.compile_times`."""
_MOST_FRAMES = 64
"""The innermost ones. Chosen, as in `torchapi.stacks`."""
_told: set[int] = set()
"""Processes whose end was written: a fork inherits the note of its parent."""


class UncaughtException(msgspec.Struct, frozen=True):
    """An exception that ended a process."""

    error: str
    message: str
    stack: tuple[Frame, ...]


def uncaught() -> UncaughtException | None:
    """The exception that ends this process; None where there is none.

    pytest and consoles leave exceptions there that they have caught: those come from within a
    call that was still running, and the outermost frame of their traceback has a caller.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return None
    trace = error.__traceback__
    if trace is None and not isinstance(error, SyntaxError):
        return None
    if trace is not None and trace.tb_frame.f_back is not None:
        return None
    know_stdin()
    return UncaughtException(type(error).__name__, _words(error), tuple(_stack(error)))


def told() -> None:
    """The record has the end of this process."""
    _told.add(os.getpid())


def note_uncaught() -> None:
    """Write the exception that ends a process of which nothing else is recorded.

    Such as one that failed before it imported torch, or torchrun's own.
    """
    folder = read_settings().run_dir
    raised = uncaught()
    if folder is None or raised is None or os.getpid() in _told or _is_worker():
        return
    file, name = EventFile.beside(folder, env_rank())
    body = ProcessEnded(error=raised.error, message=raised.message)
    event = Event(
        id=f"{name}.0",
        time_ns=time.time_ns(),
        pid=os.getpid(),
        rank=env_rank(),
        thread=threading.get_ident(),
        stack=raised.stack,
        body=body,
    )
    file.write(encode(event))
    file.close()


def _is_worker() -> bool:
    """Inductor's compile workers run nothing of the user's."""
    words = getattr(sys, "orig_argv", sys.argv)
    return any("_inductor/compile_worker" in word.replace(os.sep, "/") for word in words)


def _words(error: BaseException) -> str:
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception as fault:  # The border: it is the user's code that says what it is called.
        let_through(fault)
        return ""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MOST_WORDS else text[:_MOST_WORDS] + "…"


def _stack(error: BaseException) -> list[Frame]:
    """Outermost first, without our own frames."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(_frame(trace))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        source = (error.text or "").rstrip("\r\n")
        origin = origin_of(error.filename)
        frames.append(Frame(error.filename, error.lineno, "<module>", source=source, origin=origin))
    return frames[-_MOST_FRAMES:]


def _frame(trace: TracebackType) -> Frame:
    code = trace.tb_frame.f_code
    file, line = code.co_filename, trace.tb_lineno
    source = linecache.getline(file, line).rstrip("\r\n")
    return Frame(file, line, code.co_name, source=source, origin=origin_of(file))
