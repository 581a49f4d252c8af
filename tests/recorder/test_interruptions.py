"""What the program's own handlers raise while a hook runs reaches the program; our faults don't."""

from __future__ import annotations

import ast
import ctypes
import functools
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import compilescope
from compilescope.base.processes.interruptions import programs_own
from waiting import until

PACKAGE = Path(compilescope.__file__).parent
INSTRUMENT = PACKAGE / "instrument"


class Late(Exception):
    """An exception of the program's own."""


def _deep() -> None:
    raise RuntimeError("below the handler")


class _Handlers:
    def __call__(self, number: int, frame: Any) -> None:
        del frame, number
        raise Late

    def method(self, number: int, frame: Any) -> None:
        raise KeyError(number)


def _timeout(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise TimeoutError("late")


def _any(*given: Any) -> None:
    raise ValueError(given[0])


HANDLERS: list[Callable[..., None]] = [
    _timeout,
    _any,
    _Handlers(),
    _Handlers().method,
    lambda number, frame: _deep(),
    functools.partial(lambda word, number, frame: {}[word], "absent"),
]


@pytest.fixture
def alarm() -> Iterator[Callable[[Callable[..., None]], None]]:
    """Raise the signal here and now, with this handler."""
    before = signal.getsignal(signal.SIGALRM)

    def ring(handler: Callable[..., None]) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.raise_signal(signal.SIGALRM)

    yield ring
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("handler", HANDLERS, ids=range(len(HANDLERS)))
def test_of_a_signals_handler(handler, alarm) -> None:
    with pytest.raises(Exception) as caught:
        alarm(handler)
    assert programs_own(caught.value) is caught.value


def test_of_a_signals_handler_wrapped_by_whoever_we_called(alarm) -> None:
    def wrap() -> None:
        try:
            alarm(_any)
        except ValueError as error:
            raise RuntimeError("wrapped") from error

    with pytest.raises(RuntimeError) as caught:
        wrap()
    assert programs_own(caught.value, None) is caught.value.__cause__


def test_what_was_handled_before_is_past(alarm) -> None:
    with pytest.raises(ValueError) as before:
        alarm(_any)
    fault = ZeroDivisionError("ours")
    fault.__context__ = before.value
    assert programs_own(fault, before.value) is None
    assert programs_own(fault) is None


def test_of_a_trace_function() -> None:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_code is traced.__code__:
            raise Late
        return trace

    def traced() -> int:
        return 1

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(Late) as caught:
            traced()
    finally:
        sys.settrace(before)
    assert programs_own(caught.value) is caught.value


@pytest.mark.parametrize("kind", [Late, TimeoutError, ValueError, SystemExit])
def test_sent_by_another_thread(kind: type[BaseException]) -> None:
    found: list[Any] = []
    turns = [0]

    def work() -> None:
        try:
            while True:
                turns[0] += 1
        except BaseException as error:
            found.append(programs_own(error) is error)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: turns[0])
    sent = ctypes.pythonapi.PyThreadState_SetAsyncExc
    sent(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(kind))
    thread.join()
    assert found == [True]


def _raise_late() -> None:
    raise Late


FAULTS: list[Callable[[], object]] = [
    lambda: 1 // 0,
    lambda: {}["absent"],
    lambda: next(iter([])),
    lambda: json.loads("{"),
    lambda: [].pop(),
    lambda: Path("/no/such/file").read_bytes(),
    lambda: int("x"),
    _raise_late,  # As a method of the user's that we call may.
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_ours(fault: Callable[[], object]) -> None:
    with pytest.raises(Exception) as caught:
        fault()
    assert programs_own(caught.value, None) is None


BROAD = {
    "BaseException",
    "Exception",
    "OSError",
    "RuntimeError",
    "ValueError",
    "TypeError",
    "AttributeError",
    "LookupError",
}
INSIDE = ("recorder", "torchapi/hooks", "torchapi/guards", "torchapi/graphs", "torchapi/times")
MORE_INSIDE = ("torchapi/hook.py", "torchapi/inductor/graph_compiles.py", "automatic.py")
NOT_INSIDE = {
    "launcher.py",  # The launcher's own process.
    "signals.py",
    "target.py",
    "names.py",
    "decorating_runner.py",  # Hands all exceptions on.
    "compilescope_boot.py",  # Runs before anything of ours can be imported.
    "cost.py",  # A measurement that the user asks for.
}


def test_every_broad_except_inside_the_program_asks_first() -> None:
    """A handler that catches what any program may raise lets it through, or raises again."""
    files = [
        path
        for folder in INSIDE
        for path in (INSTRUMENT / folder).rglob("*.py")
        if path.name not in NOT_INSIDE
    ]
    assert len(files) > 35
    silent = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in [*files, *(INSTRUMENT / each for each in MORE_INSIDE)]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _asks(node)
    ]
    assert not silent, silent


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in kinds)


def _asks(handler: ast.ExceptHandler) -> bool:
    """Its first statement lets through, or it ends with a raise."""
    first, last = ast.unparse(handler.body[0]), handler.body[-1]
    return first.startswith("let_through(") or isinstance(last, ast.Raise)


@pytest.mark.torch
@pytest.mark.parametrize("points", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_signal_at_any_line_of_ours_reaches_the_program(points: int) -> None:
    """Its handler raises while a hook runs: the program gets it, or torch's error made of it."""
    pytest.importorskip("torch")
    with compilescope.capture() as run:
        _signalled_at(0)  # The first time more is imported, and put on.
        lines, _ = _signalled_at(0)
        assert lines > 500
        for at in range(1, lines * 3 // 4, lines // points):  # Not all pass as many.
            _, error = _signalled_at(at)
            assert any(isinstance(each, Late) for each in _causes(error)), at
        graphs = len(run.graphs)
        assert _signalled_at(0)[1] is None
    # Nothing of ours is held or half done: the last compilation is recorded as the first was.
    assert len(run.graphs) - graphs == 4
    assert run.digest.tool_faults == 0


def _signalled_at(at: int) -> tuple[int, Exception | None]:
    """Compile, with a signal at that line of ours; the lines that were passed, what was raised."""
    import torch

    passed = 0

    def handler(number: int, frame: Any) -> None:
        raise Late

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        if event == "line":
            passed += 1
            if passed == at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGUSR1)
        return trace

    def breaking(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y.sin()

    torch._dynamo.reset()
    compiled = torch.compile(breaking, backend="eager", dynamic=False)
    before, traced = signal.signal(signal.SIGUSR1, handler), sys.gettrace()
    sys.settrace(trace)
    try:
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    except Exception as error:
        return passed, error
    finally:
        sys.settrace(traced)
        signal.signal(signal.SIGUSR1, before)
    return passed, None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
