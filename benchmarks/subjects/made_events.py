"""Events that no example of ours records in such numbers, for big_runs.py."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.record.bodies import (
    Body,
    BreakOutcome,
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    ProcessStarted,
    Recompile,
    SkipCause,
    SourceSeen,
    Violation,
)
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef, Frame

SOURCE = "import torch\n\n" + "\n".join(
    f"def f{k}(x, n={k}):\n    for _ in range(3):\n        y = x.item()\n    return x + y + n\n"
    for k in range(40)
)
_FUNCTION = SOURCE.count("\n") // 40
"""Lines from one function to the next."""
_LINE = "        y = x.item()"
_PROCESSES = 2000
_DEEP = 100


def _file(number: int, files: int) -> str:
    return f"/project/part_{number % files}/mod.py"


def _code(number: int, files: int) -> CodeRef:
    return CodeRef(_file(number, files), 3 + _FUNCTION * (number % 40), f"f{number % 40}")


def _place(number: int, files: int) -> Frame:
    line = 5 + _FUNCTION * (number % 40)
    return Frame(_file(number, files), line, f"f{number % 40}", 12, 20, _LINE)


def _event(number: int, body: Body, *stack: Frame, process: int = 0) -> Event:
    return Event(
        id=f"{process}.{number}",
        time_ns=1_700_000_000_000_000_000 + 1000 * number,
        pid=1000 + process,
        rank=process,
        compile_id=f"{number}/0",
        stack=stack,
        body=body,
    )


def _break(number: int, files: int, gb_type: str = "Tensor.item") -> GraphBreak:
    outcome: BreakOutcome = "frame-eager" if number % 2 else "resumed"
    code = _code(number, files)
    return GraphBreak(gb_type, "GB0170", "It needs a value.", outcome=outcome, frame=code)


def _files(number: int, events: int, kept: str) -> Event:
    """A fifth as many files as events, all with their sources."""
    files = events // 5
    if number < files:
        return _event(number, SourceSeen(_file(number, files), kept))
    return _event(number, _break(number, files), _place(number, files))


def _skips(number: int, events: int, kept: str) -> Event:
    cause: SkipCause = "disabled" if number % 2 else "unexplained"
    body = FrameSkipped(_code(number, events // 2), cause, f"reason {number % 100}")
    return _event(number, body, _place(number, events // 2))


def _failures(number: int, events: int, kept: str) -> Event:
    message = f"backend='x' raised:\nRuntimeError: no op {number % 100}\n" + "at x\n" * 100
    code = _code(number, events // 5)
    body = CompileFailed("BackendCompilerFailed", message, backend="x", frame=code)
    return _event(number, body, _place(number, events // 5))


def _violations(number: int, events: int, kept: str) -> Event:
    body = Violation("dtype", "npu", f"aten.mm.{number % 50}", "int64", "float16", model="m")
    return _event(number, body, _place(number, events // 5))


def _one_cause(number: int, events: int, kept: str) -> Event:
    """The same line of one function at thousands of places, or of as many lambdas."""
    line = number % (events // 3) + 1
    place = Frame("/project/made.py", line, "<lambda>", 12, 20, _LINE)
    code = CodeRef("/project/made.py", line, "<lambda>")
    if number % 2:
        body: Body = GraphBreak("Tensor.item", "GB0170", outcome="frame-eager", frame=code)
    else:
        failed = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", str(number), "TENSOR_MATCH")
        body = Recompile(code, (CacheEntryMiss(f"{number}/0", (failed,)),))
    return _event(number, body, place)


def _echoes(number: int, events: int, kept: str) -> Event:
    gb_type = "Reconstruction failure" if number % 2 else f"Type {number % 50}"
    return _event(number, _break(number, events // 5, gb_type), _place(number, events // 5))


def _deep(number: int, events: int, kept: str) -> Event:
    """As deep as calls go in a large model."""
    calls = (_place(number + depth, 300) for depth in range(_DEEP))
    return _event(number, _break(number, 300), *calls)


def _processes(number: int, events: int, kept: str) -> Event:
    if number < _PROCESSES:
        body: Body = ProcessStarted(("train.py",), "3.11.7", "2.13.0", 1)
    else:
        body = _break(number, 300)
    return _event(number, body, _place(number, 300), process=number % _PROCESSES)


MADE: dict[str, Callable[[int, int, str], Event]] = {
    "many-files": _files,
    "skips": _skips,
    "failures": _failures,
    "violations": _violations,
    "one-cause": _one_cause,
    "echoes": _echoes,
    "deep": _deep,
    "processes": _processes,
}
"""By the mixture's name: event `number` of so many, with the artifact that holds SOURCE."""
