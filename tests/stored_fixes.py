"""Searches for fixes as their runs keep them, made without a search and without torch."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from compilescope.change.fixes.diffs import file_diff
from compilescope.change.repair.search.outcome import SearchResult, keep_run
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run
from repair.delivery.outcomes import attempt, outcome, totals

OLD = """import torch


def step(x):
    y = x.sin()
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 1
    return y + 1


compiled = torch.compile(step, backend="eager")
print(compiled(torch.ones(8)).sum())
"""
NEW = OLD.replace(
    """    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 1
""",
    "    y = torch.where(y.sum() > 0, y * 2, y - 1)\n",
)
DIFF = file_diff(OLD, NEW, "train.py")


def fixed_outcome(program: Path, **fields: Any) -> SearchResult:
    """One verified fix of a program, which must be there as it was."""
    made = attempt(
        file=str(program),
        line=6,
        rule="tensor-if",
        cause="Data-dependent branching",
        fix="where-for-if",
        title="use torch.where instead of the if",
        diff=DIFF,
    )
    lost = attempt(
        fix="", title="", verdict="unverified", kept=False, reason="no fix is known for it"
    )
    known: dict[str, Any] = {
        "files": {str(program): NEW},
        "originals": {str(program): OLD},
        "before": totals(1, graphs=2),
        "after": totals(0, graphs=1),
    }
    return outcome(made, lost, **{**known, **fields})


def store_search(home: Path, program: Path, run: str = "f00d01-train", **fields: Any) -> str:
    """A search whose result is kept in `home`; the id of its run."""
    header = RunHeader(
        run=run,
        tool="0",
        command=(program.name,),
        cwd=str(program.parent),
        root=str(program.parent),
        started_ns=time.time_ns(),
        ended_ns=time.time_ns(),
        exit_status=0,
    )
    # As a search does it: recorded elsewhere, and kept when it is whole.
    with tempfile.TemporaryDirectory() as bench:
        recorded = create_run(Path(bench), header)
        assert keep_run(recorded, home, fixed_outcome(program, **fields)) is not None
    return run
