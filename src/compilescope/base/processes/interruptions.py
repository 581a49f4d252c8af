"""Exceptions of the user's program that arrive while code of ours runs inside it.

A signal's handler, a trace function or another thread (`PyThreadState_SetAsyncExc`, as timeout
libraries use it) can raise at any instruction, and so within a hook. Such an exception is the
program's own and must reach it; whatever else a hook raises is our fault and must not. Who catches
exceptions inside the user's program asks here first.
"""

from __future__ import annotations

import functools
import opcode
import signal
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

_RAISING = {opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}
_TRACED = ("call", "line", "return", "exception", "opcode", "c_call", "c_return", "c_exception")
_WORDLESS = (StopIteration, StopAsyncIteration, MemoryError)
"""Builtins that C code raises without arguments."""
_VARARGS = 0x04
"""`inspect.CO_VARARGS`; to import that module would cost every command."""
_UNKNOWN = object()
_OURS = __name__.partition(".")[0]


def let_through(error: BaseException, handled: object = _UNKNOWN) -> None:
    """Raise it if it is the program's own, or was made of one. `handled`: the exception that was
    being handled when we were called, or None."""
    own = programs_own(error, handled)
    if own is not None:
        raise own


def programs_own(error: BaseException, handled: object = _UNKNOWN) -> BaseException | None:
    """The program's exception that this is or came from; None: it is a fault of ours."""
    for each in _chained(error, handled):
        if not isinstance(each, Exception) or _came_from_outside(each):
            return each
    return None


def _chained(error: BaseException, handled: object) -> Iterator[BaseException]:
    """torch may have wrapped it. What was being handled before we were called is past."""
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and now is not handled and id(now) not in seen:
        seen.add(id(now))
        yield now
        context = None if handled is _UNKNOWN else now.__context__
        now = now.__cause__ or context


def _came_from_outside(error: BaseException) -> bool:
    last: TracebackType | None = None
    trace = error.__traceback__
    handlers = _handler_codes() if trace is not None else set()
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code in handlers or _called_by_python_itself(frame):
            return True
        last, trace = trace, trace.tb_next
    return last is not None and _was_injected(error, last)


def _called_by_python_itself(frame: FrameType) -> bool:
    """A signal's handler is given its number and the frame that was interrupted, which is the
    caller; a trace function the frame and what happens there."""
    caller = frame.f_back
    if caller is None:
        return False
    given = _arguments(frame)
    for at, value in enumerate(given):
        if value is caller:
            before = given[at - 1] if at else None
            after = given[at + 1] if at + 1 < len(given) else None
            is_signal = isinstance(before, int) and not isinstance(before, bool)
            if (is_signal and before in signal.valid_signals()) or (
                isinstance(after, str) and after in _TRACED
            ):
                return True
    return False


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    bound = frame.f_locals
    given = [bound.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & _VARARGS:
        rest = bound.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        given += rest if isinstance(rest, tuple) else ()
    return given


def _handler_codes() -> set[CodeType]:
    """Of the handlers that are set now: one may have let go of the frame it was given."""
    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        handler = getattr(handler, "__func__", handler)
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            codes.add(code)
    return codes


def _was_injected(error: BaseException, last: TracebackType) -> bool:
    """By another thread: it appears at an instruction that raises nothing by itself, as an instance
    without arguments or of a class that neither Python, torch nor we define."""
    code = last.tb_frame.f_code.co_code
    if 0 <= last.tb_lasti < len(code) and code[last.tb_lasti] in _RAISING:
        return False
    if isinstance(error, _WORDLESS):
        return False
    return not error.args if _is_known(type(error)) else True


def _is_known(kind: type) -> bool:
    top = str(getattr(kind, "__module__", "")).partition(".")[0]
    return top in (*sys.builtin_module_names, "torch", "msgspec", _OURS) or (
        top in sys.stdlib_module_names
    )
