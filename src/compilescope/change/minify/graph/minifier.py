"""From a record on disk to the smallest graph with the same failure, and its verified script."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover
from compilescope.base.settings import compiler_variables
from compilescope.change.minify import passes
from compilescope.change.minify.engine import (
    Outcome,
    Pass,
    Reduction,
    ReductionLimits,
    ReductionProgress,
    reduce,
)
from compilescope.change.minify.graph.candidate import (
    GraphCandidate,
    outputs_of,
    readable,
    with_outputs,
)
from compilescope.change.minify.graph.record import RECORD, FailingGraph, read_record
from compilescope.change.minify.graph.tasks import EAGER_RAN, EXPORT, TRY
from compilescope.change.minify.sandbox import Sandbox
from compilescope.change.minify.script.graph_script import script_text
from compilescope.change.minify.script.issue import IssueForm, IssueResult, graph_issue, write_issue
from compilescope.change.minify.script.verification import ReproResult, write_verified
from compilescope.record.written_graph import WrittenGraph

WARM = ("compilescope.change.minify.graph.preload",)
_INDUCTOR = ("torch._inductor.compile_fx", "torch._inductor.codegen.cpp", "torch._inductor.graph")
_MOST_INLINE = 64
"""Numbers of one tensor in the script itself. Chosen: a few lines of it."""
_ROOM = 1.25
"""The check of the script may take longer than it is estimated by: a machine may be busy. Chosen: a
quarter more."""


def all_passes() -> list[Pass[GraphCandidate]]:
    return discover(passes, "PASS", Pass, several="PASSES")


class GraphJudge:
    """Tries candidates in a sandbox."""

    def __init__(self, folder: Path, record: FailingGraph, sandbox: Sandbox) -> None:
        self._folder = folder
        self._record = record
        self._sandbox = sandbox
        self.seconds = 0.0
        """What the last one that was kept took."""

    def __call__(self, candidate: GraphCandidate) -> Outcome:
        graph = candidate.graph
        record = self._record
        text = script_text(graph, record.setting, record.shown, torch_version=record.torch)
        saved = [each.saved for each in graph.inputs if each.fill == "saved"]
        payload = {"folder": str(self._folder.absolute()), "text": text, "saved": saved}
        answer = self._sandbox.run(TRY, payload)
        if answer.is_done:
            outcome: Outcome = answer.value
            self.seconds = answer.seconds if outcome == "kept" else self.seconds
            return outcome
        if record.shown.kind == "signal" and answer.signal == record.shown.expected:
            return "kept" if EAGER_RAN in answer.output else "invalid"
        if answer.status == "timeout":
            return "timeout"
        return "crashed" if answer.status in ("crashed", "memory") else "invalid"


@dataclass(frozen=True)
class ShownViolation:
    """One of a program's violations."""

    rule: str
    stage: str
    op: str
    found: str
    file: str
    line: int | None
    words: str
    """All of it in one line."""


@dataclass(frozen=True)
class Minified:
    """What came of it."""

    repro: ReproResult
    reduction: Reduction[GraphCandidate]
    shown: tuple[ShownViolation, ...] = ()
    """Where a violation was looked for: all that the program has."""
    number: int = 1
    """Which of them this is."""
    title: str = ""
    """What it shows, in one sentence."""
    file: str = ""
    line: int | None = None
    """The user's line, where one is known."""
    torch: str = ""
    """The version it was seen on."""
    issue: IssueResult | None = None
    """The form for a bug report, where one was asked for."""


def warm_for(folder: Path) -> tuple[str, ...]:
    """What the warm process imports for the records in a folder."""
    for path in sorted(folder.rglob(RECORD)):
        if "inductor" in read_record(path.parent).setting.backend.expression:
            return (*WARM, *_INDUCTOR)
    return WARM


def start_of(record: FailingGraph) -> GraphCandidate:
    return GraphCandidate(with_outputs(record.graph, outputs_of(record.graph)))


def minify_graph(
    folder: Path,
    path: Path,
    sandbox: Sandbox,
    *,
    jobs: int = 1,
    state: Path | None = None,
    limits: ReductionLimits | None = None,
    progress: Callable[[ReductionProgress], None] | None = None,
    issue: bool = False,
) -> Minified:
    """Reduce the graph of a record, and write the script that shows what is left. `issue`: and
    beside it the few lines for a bug report."""
    record = read_record(folder)
    start = start_of(record)
    judge = GraphJudge(folder, record, sandbox)
    deadline = sandbox.deadline
    with deadline.leaving(lambda: _ROOM * (sandbox.start_s + 2 * judge.seconds)):
        reduction: Reduction[GraphCandidate] = reduce(
            start,
            all_passes(),
            judge,
            jobs=jobs,
            state=state,
            purpose=repr((record.shown.kind, record.shown.expected)),
            limits=limits or ReductionLimits(deadline=deadline),
            progress=progress,
        )
    best = readable(reduction.best.graph)
    timeout_s = max(0.0, min(sandbox.limit_s + 60, deadline.left_s))
    repro = write_repro(best, record, folder, path, sandbox, timeout_s=timeout_s)
    told = issue and repro.path is not None and not repro.reason
    return Minified(
        repro,
        reduction,
        issue=_issue(best, record, folder, path, sandbox) if told else None,
        title=record.shown.title,
        file=record.file,
        line=record.line,
        torch=record.torch,
    )


def write_repro(
    graph: WrittenGraph,
    record: FailingGraph,
    folder: Path,
    path: Path,
    sandbox: Sandbox,
    *,
    timeout_s: float,
) -> ReproResult:
    """The script, once it has shown the same in a fresh process."""
    made = folder / "exported.safetensors"
    inline, is_filed = _exported(graph, folder, made, sandbox)
    file = _file_beside(path) if is_filed else ""
    text = script_text(
        graph,
        record.setting,
        record.shown,
        torch_version=record.torch,
        saved=inline,
        saved_file=file,
        variables=compiler_variables(),
    )

    def write_beside(place: Path) -> None:
        if file:
            shutil.copyfile(made, place / file)

    repro = write_verified(
        path, text, timeout_s=timeout_s, beside=write_beside, late=lambda: sandbox.deadline.is_over
    )
    if repro.path is None and file:
        (path.parent / file).unlink(missing_ok=True)
    return repro


def _issue(
    graph: WrittenGraph, record: FailingGraph, folder: Path, path: Path, sandbox: Sandbox
) -> IssueResult:
    """The same for a bug report, where the repro is known to show it."""

    def make() -> IssueForm:
        inline, _ = _exported(graph, folder, folder / "for-issue.safetensors", sandbox)
        return graph_issue(
            graph, record.setting, record.shown, torch_version=record.torch, saved=inline
        )

    timeout_s = max(0.0, min(sandbox.limit_s + 60, sandbox.deadline.left_s))
    return write_issue(path, make, timeout_s)


def _file_beside(path: Path) -> str:
    """The name of the file with its numbers: never that of a file of the user's."""
    try:
        known = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        known = ""
    names = [f"{path.stem}{more}.safetensors" for more in ("", *(f"-{n}" for n in range(2, 100)))]
    free = (name for name in names if name in known or not os.path.lexists(path.with_name(name)))
    return next(free, names[0])


def _exported(
    graph: WrittenGraph, folder: Path, file: Path, sandbox: Sandbox
) -> tuple[dict[str, str], bool]:
    """Numbers that matter: as source where they are few; and whether others went to `file`."""
    shapes = {
        each.saved: each.tensor.shape
        for each in graph.inputs
        if each.fill == "saved" and each.tensor is not None
    }
    if not shapes:
        return {}, False
    payload: dict[str, Any] = {
        "folder": str(folder.absolute()),
        "shapes": shapes,
        "file": str(file.absolute()),
        "most_inline": _MOST_INLINE,
    }
    answer = sandbox.run(EXPORT, payload)
    if not answer.is_done:
        raise ToolError(f"The input values could not be written: {answer.error}.")
    return answer.value["inline"], bool(answer.value["filed"])
