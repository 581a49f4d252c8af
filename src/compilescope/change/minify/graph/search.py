"""Finds the graph of a user's program that shows the problem, as a record on disk.

The program runs once, in a process of its own. Its graphs are then tried one by one.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import run_within
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.base.settings import fresh_environment, mock_variables
from compilescope.change.minify.engine import NotInteresting
from compilescope.change.minify.graph.minifier import (
    Minified,
    ShownViolation,
    minify_graph,
    warm_for,
)
from compilescope.change.minify.graph.program_runner import CatchOptions
from compilescope.change.minify.graph.record import (
    FAILED,
    RECORD,
    SKIPPED,
    STARTED,
    UNCHECKED,
    FailingGraph,
    Shown,
    read_record,
)
from compilescope.change.minify.graph.tasks import EAGER_RAN, IDENTIFY
from compilescope.change.minify.sandbox import Sandbox
from compilescope.record.written_graph import WrittenGraph

_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


@dataclass(frozen=True)
class Search:
    """What to look for, and where."""

    predicate: str
    """crash, diff or violation."""
    device: str = ""
    test_backend: str = ""
    file: str = ""
    line: int | None = None
    timeout_s: float = 600.0
    """For the program."""
    number: int = 1
    """Which of its violations."""
    known: bool = False
    """How the program ends is known: only the graph at which it does so is looked for, and what
    the program says then is not shown again."""
    deadline: Deadline = field(default_factory=Deadline)
    """For all of it."""


def catch_graphs(script: Path, args: Sequence[str], search: Search, folder: Path) -> int:
    """Run the program, with its output on stderr; records go to `folder`. Returns its status."""
    if not script.is_file():
        raise ToolError(f"There is no file {script}.")
    options = CatchOptions(
        str(folder.absolute()),
        search.predicate,
        search.device,
        search.test_backend,
        search.file,
        search.line,
    )
    runner = [sys.executable, "-m", "compilescope.change.minify.graph.program_runner"]
    command = [*runner, msgspec.json.encode(options).decode(), str(script), *args]
    try:
        done = run_within(
            command,
            search.deadline.limit(search.timeout_s),
            env={**fresh_environment(), **_own_rules(search)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if search.known else _own_stderr(),
            stderr=subprocess.DEVNULL if search.known else None,
        )
    except subprocess.TimeoutExpired:
        if search.deadline.is_over:
            raise OutOfTime from None
        raise ToolError(
            f"{script} did not finish within {search.timeout_s:g} s.", hint="Give it more time."
        ) from None
    return done.returncode


def _own_rules(search: Search) -> dict[str, str]:
    """A mock backend that is told nothing asks the environment what to check."""
    return mock_variables() if search.predicate == "violation" else {}


def _own_stderr() -> int:
    """Where the program's output goes: stdout is for the answer."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL


def find_record(folder: Path, search: Search, status: int, sandbox: Sandbox) -> Path:
    """The first graph that shows it. Its record then says what is shown."""
    homes = sorted(path.parent for path in folder.glob(f"*/{RECORD}"))
    if search.predicate != "violation":
        homes = [home for home in homes if _is_at(read_record(home), search)]
    failed = _marked(folder, FAILED, homes)
    if search.predicate == "violation" and homes:
        return _numbered(homes, search.number)
    if search.predicate == "crash" and failed is not None:
        return failed
    if search.predicate == "crash" and status < 0:
        home = _marked(folder, STARTED, homes)
        if home is not None:
            _rewrite(home, _died(-status, read_record(home)))
            return home
    for home in homes if search.predicate != "violation" and not search.known else ():
        found = _identified(home, search, sandbox)
        if found is not None:
            _rewrite(home, found)
            return home
    raise ToolError(_nothing(folder, homes, search), hint=_hint(search))


def _numbered(homes: list[Path], number: int) -> Path:
    if number > len(homes):
        many = f"{len(homes)} different violations" if len(homes) > 1 else "only one violation"
        raise ToolError(f"There is no violation {number}: the program shows {many}.")
    return homes[number - 1]


def _identified(home: Path, search: Search, sandbox: Sandbox) -> Shown | None:
    payload = {"folder": str(home.absolute()), "predicate": search.predicate}
    answer = sandbox.run(IDENTIFY, payload)
    if answer.is_done:
        return None if answer.value is None else msgspec.convert(answer.value, Shown)
    crashes = [getattr(signal, name) for name in _CRASHES if hasattr(signal, name)]
    if search.predicate == "crash" and answer.signal in crashes and EAGER_RAN in answer.output:
        assert answer.signal is not None
        return _died(answer.signal, read_record(home))
    return None


def _died(number: int, record: FailingGraph) -> Shown:
    name = record.setting.backend.name
    return Shown(
        "signal", number, f"With {name}, the process is killed by signal {number} on this graph."
    )


def _rewrite(home: Path, shown: Shown) -> None:
    record = msgspec.structs.replace(read_record(home), shown=shown)
    (home / RECORD).write_bytes(msgspec.json.encode(record))


def _marked(folder: Path, mark: str, homes: list[Path]) -> Path | None:
    try:
        name = (folder / mark).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return next((home for home in homes if home.name == name), None)


def _is_at(record: FailingGraph, search: Search) -> bool:
    """A graph belongs to a place if one of its operations, or its call, is there."""
    if search.line is None:
        return True
    name = Path(search.file).name
    start = f"{name}:{search.line}:"
    called = Path(record.file).name == name and record.line == search.line
    return called or _mentions(record.graph, start)


def _mentions(graph: WrittenGraph, start: str) -> bool:
    return any(op.note.startswith(start) for op in graph.ops) or any(
        _mentions(inner, start) for inner in graph.graphs.values()
    )


def _nothing(folder: Path, homes: list[Path], search: Search) -> str:
    skipped = _read_names(folder / SKIPPED)
    what = {
        "crash": "fails",
        "diff": "gives different results",
        "violation": "violates a constraint",
    }
    words = f"None of the {len(homes)} captured graphs {what[search.predicate]}"
    if search.predicate == "violation":
        words = "None of the captured graphs violates a constraint"
        if unchecked := _read_names(folder / UNCHECKED):
            words += f"; graphs compiled with {', '.join(unchecked)} were not checked"
    if skipped:
        reasons = "; ".join(dict.fromkeys(skipped))
        words += f"; {len(skipped)} could not be saved ({reasons})"
    return words + "."


def _read_names(file: Path) -> list[str]:
    return msgspec.json.decode(file.read_bytes(), type=list[str]) if file.exists() else []


def _hint(search: Search) -> str:
    if search.predicate == "violation" and not search.device:
        return "Without --device, graphs of mock_backend and aot_mock_backend are checked."
    if search.predicate == "violation":
        return "`compilescope preflight` shows what a device supports."
    return "Does the program call torch.compile? --test-backend names another backend to test."


def minify_program(
    script: Path,
    args: Sequence[str],
    search: Search,
    path: Path,
    *,
    folder: Path,
    limit_s: float = 120.0,
    memory_bytes: int | None = None,
    **options: Any,
) -> Minified:
    """From a program to the smallest repro. `folder` is for what lies between; `options` are
    those of `minify_graph`."""
    status = catch_graphs(script, args, search, folder)
    with Sandbox(limit_s, memory_bytes, warm=warm_for(folder), deadline=search.deadline) as sandbox:
        home = find_record(folder, search, status, sandbox)
        try:
            done = minify_graph(home, path, sandbox, **options)
        except NotInteresting as error:
            raise ToolError(
                "The graph fails in the program, but not on its own in a fresh process (the "
                f"result there was {error.outcome}).",
                hint="Does the program modify torch, or register operators, before it compiles?",
            ) from None
    if search.predicate != "violation":
        return done
    return replace(done, shown=tuple(_violations(folder)), number=search.number)


def _violations(folder: Path) -> Iterator[ShownViolation]:
    """What the program shows, in the order of its numbers."""
    for path in sorted(folder.glob(f"*/{RECORD}")):
        record = read_record(path.parent)
        rule, stage, op, found = record.shown.expected[0]
        words = record.shown.lines[0].removeprefix("- ")
        yield ShownViolation(rule, stage, op, found, record.file, record.line, words)
