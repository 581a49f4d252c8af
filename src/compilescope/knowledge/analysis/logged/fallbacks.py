"""Operators without a lowering, as a log names them: how often, and the line that calls each.

The line is the program's, as far as the log and the kept sources tell; the place in the log that
names the operator is kept beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.logged.callers import asked_by
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import GraphCaptured
from compilescope.record.logged import FallbackOps
from compilescope.record.python_text import parse_python
from compilescope.record.run import Run
from compilescope.record.stack import Frame

HOST_READ = "_local_scalar_dense"
"""No missing lowering: how a value comes to the host."""
_NAMESPACE = late(r"^(?:aten|torch\.ops\.aten|prims)(?:::|\.)")
_FROM_LINE = late(
    r"# File: (?P<file>.{1,500}?):(?P<line>\d{1,9}) in (?P<name>\S{1,300}), code: (?P<code>.*)"
)
_WORD = late(r"[A-Za-z0-9]+")
_MOST_LETTERS = 20_000_000
"""Letters of graphs that are searched for the lines of operators. Chosen: about a second's work; a
log of 10 MB has less. Of what lies beyond, it is said that nobody looked."""
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
    calling_lines: int = 0
    """Lines found that call this very operator; of several, none is known to be the one."""
    sought: bool = True
    """Was the line that calls it looked for? Beyond `MOST_SOUGHT` operators it is not."""
    graphs_left: int = 0
    """Graphs in which it was not looked for, for the log has too many: another line may call it."""


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
    called = _OperatorCalls(run, sources, callers.values(), [*named][:MOST_SOUGHT])
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


class _OperatorCalls:
    """Where the program calls the operators that are sought."""

    def __init__(
        self, run: Run, sources: Sources, callers: Iterable[Frame], sought: Sequence[str]
    ) -> None:
        self.callers = list(callers)
        self._sought = {name: _last_word(name) for name in sought}
        lines, self.graphs_left = _captured_lines(run)
        self._lines = self._by_word((frame.source, frame) for frame in lines)
        files = dict.fromkeys(frame.file for frame in (*self.callers, *lines))
        kept = ((file, sources.lines(file)) for file in files)
        self._files = [(file, lines) for file, lines in kept if lines]
        self._of_files: dict[str, dict[str, list[tuple[str, Frame]]]] = {}

    def _by_word(self, found: Iterable[tuple[str, Frame]]) -> dict[str, list[tuple[str, Frame]]]:
        """By the last words of the operators: each line is looked at once, not for each of them."""
        sought = {*self._sought.values()}
        by_word: dict[str, list[tuple[str, Frame]]] = {}
        for text, frame in found:
            for word in sought & {*_WORD.findall(text), ""}:
                by_word.setdefault(word, []).append((text, frame))
        return by_word

    def of(self, name: str) -> list[Frame]:
        """The lines that call the operator by its name."""
        word = self._sought.get(name)
        if word is None:
            return []
        found = [frame for text, frame in self._lines.get(word, ()) if calls(text, name)]
        if found:
            return found
        in_files = (self._in_file(file, lines, word) for file, lines in self._files)
        named = (frame for found in in_files for text, frame in found if calls(text, name))
        return list(dict.fromkeys(named))

    def _in_file(self, file: str, lines: Sequence[str], word: str) -> list[tuple[str, Frame]]:
        """What is called there, and the line that calls it."""
        if file not in self._of_files:
            text = "\n".join(lines)
            if not any(sought in text for sought in self._sought.values()):
                self._of_files[file] = {}
            else:
                functions = functions_by_line(text)
                self._of_files[file] = self._by_word(
                    (called, Frame(file, at, functions.get(at, ""), source=lines[at - 1]))
                    for at, called in sorted(_called_by_line(text))
                )
        return self._of_files[file].get(word, [])


def _placed(op: FallbackOp, called: _OperatorCalls) -> FallbackOp:
    exact = called.of(base_name(op.op))
    op = msgspec.structs.replace(op, calling_lines=len(exact), graphs_left=called.graphs_left)
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


def _captured_lines(run: Run) -> tuple[dict[Frame, None], int]:
    """Lines of the program that Dynamo's graphs say they came from, each once; and how many graphs
    were too many to look at."""
    found: dict[Frame, None] = {}
    named = dict.fromkeys(body.text for _, body in run.of(GraphCaptured) if body.text)
    left = _MOST_LETTERS
    for number, name in enumerate(named):
        if left <= 0:
            return found, len(named) - number
        text = run.artifacts.get(name) or ""
        found.update(dict.fromkeys(_lines_of_graph(text)))
        left -= len(text)
    return found, 0


def _lines_of_graph(text: str) -> Iterable[Frame]:
    for line in text.splitlines():
        found = _FROM_LINE.search(line) if "# File: " in line else None
        if found is not None:
            at = int(found["line"])
            yield Frame(found["file"], at, found["name"], source=found["code"].strip())


def calls(source: str, name: str) -> bool:
    """Does this line call the operator? It may be any part of a statement."""
    spelled = re.escape(name).replace("_", "[._]").removesuffix("[._]")
    return re.search(rf"(?<![A-Za-z0-9]){spelled}_?\s*\(", source) is not None


def _last_word(name: str) -> str:
    """Wherever the operator is called, this is a word of the line: `dense`, of
    `_local_scalar_dense`."""
    words: list[str] = _WORD.findall(name)
    return words[-1] if words else ""


def _called_by_line(text: str) -> list[tuple[int, str]]:
    """Each call's line, and what it calls: `torch.nn.functional.relu(`."""
    try:
        tree = parse_python(text)
    except SyntaxError:
        return []
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [(node.lineno, f"{ast.unparse(node.func)}(") for node in found]


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
