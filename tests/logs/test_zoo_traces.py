"""A live capture and its own TORCH_TRACE, read back, agree on every program of the zoo.

Each program runs once, with both on. Where they differ, it is by what the trace lacks, and
`LACKS` says what that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from capabilities import expected
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.logs.reader import read_logs
from compilescope.record.run import read_run
from zoo.truth import all_programs

pytestmark = pytest.mark.torch

LACKS = {
    "config_disable": "Dynamo is switched off: torch writes no trace at all.",
    "dispatch_mode": "The frame is passed over before its compilation starts: no trace at all.",
    "generator_compiled": "A generator is passed over before its compilation starts: likewise.",
}
"""Programs of which the trace tells nothing, and why."""
NOT_IN_LOGS = {
    "module_compile_sequential": "Torch tells of each frame of its own that it skips, or of none, "
    "and never which module was to be compiled, and where.",
}
"""Programs with a function that stays eager, of which only a capture can tell, and why."""
OTHER_LINES = {
    "chained_calls_after_a_break": "Dynamo's own lines are wrong there. A capture corrects them "
    "from the code that Dynamo wrote, which no log has.",
}
"""Programs whose breaks a log places at other lines than a capture, and why."""
DOZEN = (
    "break_in_for", "break_in_try", "break_in_aot_eager", "data_dependent_if", "deep_chain",
    "fullgraph_print", "guard_size_and_int", "recompile_limit", "recompile_two_flags",
    "several_on_one_line", "two_callers", "zero_one_size",
)  # fmt: skip
"""In the default set of tests: `test_text_zoo` runs them."""


def facts(seen: Digest, *, lines: bool = True) -> dict[str, Any]:
    """What the two must agree on; without `lines`, wherever in a file a break is."""
    columns = expected("tracing/stack-columns")  # Without them a trace tells the line alone.
    breaks: Counter[tuple[Any, ...]] = Counter()
    for s in seen.sites:
        at = (s.line, s.column if columns else None) if lines else ()
        place = s.file, *at, s.gb_type, s.gb_id, s.outcome, s.wrappers, s.rule
        breaks[place] += s.count
    return {
        "breaks": breaks,
        "recompiles": {
            (f.file, f.line, f.function, f.resumed_at, f.count, f.limit_hit)
            for f in seen.recompiles
        },
        "causes": {
            (f.line, c.guard, c.subject, c.expected, c.actual, c.guard_kind, c.count, c.rule)
            for f in seen.recompiles
            for c in f.causes
        },
        "eager": {(f.file, f.line, f.function, f.reason, f.rest_only) for f in seen.eager_frames},
        "failures": {
            (f.error, f.phase, f.file, f.line, f.gb_type, f.backend, f.suppressed)
            for f in seen.failures
        },
        "graphs": (seen.graphs, seen.graph_ops, seen.guards),
        "hidden": seen.hidden_breaks_possible,
        "torch": seen.torch,
    }


def run_with_both(folder: Path, programs: list[Path]) -> None:
    script = Path(__file__).parent / "traced_programs.py"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCH")}
    command = [sys.executable, str(script), str(folder), *map(str, programs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    programs = list(all_programs())
    for at in range(0, len(programs), 40):
        run_with_both(folder, programs[at : at + 40])
    return folder


def check(folder: Path, name: str, home: Path) -> None:
    (captured,) = (folder / name / "run").glob("*-capture")
    live = digest(read_run(captured))
    traces = sorted(str(path) for path in (folder / name / "trace").iterdir())
    if name in LACKS:
        assert not traces, "torch has begun to trace it: compare it too"
        return
    read = read_logs(traces, home)
    assert sum(one.unread for one in read.sources) == 0
    assert not any(one.problems for one in read.sources)
    back = digest(read_run(read.path))
    told, truth = (facts(one, lines=name not in OTHER_LINES) for one in (back, live))
    if name in NOT_IN_LOGS:
        assert told.pop("eager") != truth.pop("eager"), "torch has begun to tell: compare it too"
    assert told == truth


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.stem for p in all_programs()])
def test_trace_agrees_with_capture(everything: Path, name: str, tmp_path: Path) -> None:
    check(everything, name, tmp_path)
