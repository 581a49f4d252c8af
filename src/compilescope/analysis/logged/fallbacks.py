"""Operators without a lowering, as a log names them: how often, and the line that calls each.

The line is the program's, as far as the log and the kept sources tell; the place in the log that
names the operator is kept beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import msgspec

from compilescope.analysis.logged.callers import asked_by
from compilescope.model.bodies import GraphCaptured
from compilescope.model.logged import FallbackOps
from compilescope.model.python_text import parse_python
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.patterns import late
from compilescope.source.spots import Sources

HOST_READ = "_local_scalar_dense"
"""No missing lowering: how a value comes to the host."""
_NAMESPACE = late(r"^(?:aten|torch\.ops\.aten|prims)(?:::|\.)")
_FROM_LINE = late(
    r"# File: (?P<file>.{1,500}?):(?P<line>\d{1,9}) in (?P<name>\S{1,300}), code: (?P<code>.*)"
)
_MOST_GRAPHS = 200
"""Graphs whose text is searched for the line of an operator. Chosen: it bounds the time."""
MOST_SOUGHT = 300
"""Operators whose lines are sought. Chosen: no program seen had a tenth as many; it bounds the time
for names without end."""


class FallbackOp(msgspec.Struct, frozen=True, kw_only=True):
    """One operator that ran on the CPU."""

    op: str
    """As the log calls it, with its namespace where any line has it: `aten::nanmedian`."""
    host_read: bool
    """It only brings a value to the host."""
    count: int
    """How often the log says so."""
    told_by: tuple[str, ...]
    """`dynamo`, `profiler`, `counter`."""
    log: str
    log_line: int
    """The first line that names it; 0 where that is not known."""
    file: str = ""
    line: int = 0
    """The line of the program that calls it; 0 where that is not known."""
    function: str = ""
    source: str = ""
    exact: bool = False
    """The line calls this very operator; else it is the line that some operator was called from."""
    because: tuple[str, ...] = ()
    """Ids of the events that name it."""
    sought: bool = True
    """Was the line that calls it looked for? Beyond `MOST_SOUGHT` operators it is not."""


def base_name(op: str) -> str:
    """`nanmedian`, of `aten::nanmedian.dim_values`."""
    return _NAMESPACE.sub("", op).partition(".")[0]


def fallback_ops(run: Run, sources: Sources) -> list[FallbackOp]:
    """In the order in which the log names them."""
    named: dict[str, FallbackOp] = {}
    because: dict[str, list[str]] = {}
    callers: dict[tuple[str, int], Frame] = {}
    for event, body in run.of(FallbackOps):
        caller, _ = asked_by(event.stack, sources, through_helpers=False)
        if caller is not None:
            callers[caller.file, caller.line] = caller
        for op in body.ops:
            key = base_name(op)
            named[key] = _joined(named.get(key), op, body)
            because.setdefault(key, []).append(event.id)
    if not named:
        return []
    called = _Calls(run, sources, callers.values())
    return [
        msgspec.structs.replace(
            _placed(op, called), because=tuple(because[key]), sought=number < MOST_SOUGHT
        )
        for number, (key, op) in enumerate(named.items())
    ]


def _joined(before: FallbackOp | None, op: str, body: FallbackOps) -> FallbackOp:
    if before is None:
        return FallbackOp(
            op=op,
            host_read=base_name(op) == HOST_READ,
            count=body.count,
            told_by=(body.told_by,),
            log=body.log,
            log_line=body.log_line,
        )
    lines = [line for line in (before.log_line, body.log_line) if line]
    return msgspec.structs.replace(
        before,
        op=op if "::" in op and "::" not in before.op else before.op,
        # Who says it again and again says it of one and the same calls.
        count=max(before.count, body.count),
        told_by=tuple(dict.fromkeys((*before.told_by, body.told_by))),
        log_line=min(lines, default=0) if body.log == before.log else before.log_line,
    )


class _Calls:
    """Where the program calls operators."""

    def __init__(self, run: Run, sources: Sources, callers: Iterable[Frame]) -> None:
        self.callers = list(callers)
        self._lines = dict.fromkeys(_captured_lines(run))
        files = dict.fromkeys(frame.file for frame in (*self.callers, *self._lines))
        kept = ((file, sources.lines(file)) for file in files)
        self._files = [(file, "\n".join(lines)) for file, lines in kept if lines]
        self._left = MOST_SOUGHT
        """Operators that may still be asked for."""

    def of(self, name: str) -> list[Frame]:
        """The lines that call the operator by its name."""
        if not self._left:
            return []
        self._left -= 1
        found = [frame for frame in self._lines if calls(frame.source, name)]
        if found:
            return found
        return [frame for file, text in self._files for frame in self._in_file(file, text, name)]

    def _in_file(self, file: str, text: str, name: str) -> list[Frame]:
        if name.rpartition("_")[2] not in text:
            return []
        lines = text.split("\n")
        functions = functions_by_line(text)
        return [
            Frame(file, number, functions.get(number, ""), source=lines[number - 1])
            for number in sorted(_calling_lines(text, name))
        ]


def _placed(op: FallbackOp, called: _Calls) -> FallbackOp:
    exact = called.of(base_name(op.op))
    # Of several lines that call it, none is known to be the one.
    frame = exact[0] if len(exact) == 1 else None
    if frame is None and len(called.callers) == 1:
        frame = called.callers[0]
    if frame is None:
        return op
    return msgspec.structs.replace(
        op,
        file=frame.file,
        line=frame.line,
        function=frame.function,
        source=frame.source,
        exact=len(exact) == 1,
    )


def _captured_lines(run: Run) -> Iterable[Frame]:
    """Lines of the program that Dynamo's graphs say they came from."""
    for number, (_, body) in enumerate(run.of(GraphCaptured)):
        if number >= _MOST_GRAPHS:
            return
        text = run.artifacts.get(body.text) if body.text else None
        for line in (text or "").splitlines():
            found = _FROM_LINE.search(line)
            if found is not None:
                at = int(found["line"])
                yield Frame(found["file"], at, found["name"], source=found["code"].strip())


def calls(source: str, name: str) -> bool:
    """Does this line call the operator? It may be any part of a statement."""
    spelled = re.escape(name).replace("_", "[._]").removesuffix("[._]")
    return re.search(rf"(?<![A-Za-z0-9]){spelled}_?\s*\(", source) is not None


def _calling_lines(text: str, name: str) -> set[int]:
    try:
        tree = parse_python(text)
    except SyntaxError:
        return set()
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and calls(f"{ast.unparse(node.func)}(", name)
    }


def functions_by_line(text: str) -> dict[int, str]:
    """The innermost function around each line."""
    try:
        tree = parse_python(text)
    except SyntaxError:
        return {}
    found: dict[int, str] = {}
    for node in ast.walk(tree):  # Outer functions come first.
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = node.end_lineno or node.lineno
            found.update(dict.fromkeys(range(node.lineno, last + 1), node.name))
    return found
