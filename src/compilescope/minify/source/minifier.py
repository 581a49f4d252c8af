"""From a program with a problem to the smallest script with the same one, verified anew."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import compilescope.minify.source_passes as source_passes
from compilescope.errors import ToolError
from compilescope.minify.engine import Pass, Reduction, ReductionLimits, ReductionProgress, reduce
from compilescope.minify.source.candidate import SourceCandidate, parse, unbound_names
from compilescope.minify.source.crashes import is_of_compiler
from compilescope.minify.source.eager_backend import is_eager, with_eager_backend
from compilescope.minify.source.findings import SourceFinding
from compilescope.minify.source.messages import TrialResult
from compilescope.minify.source.program import SourceProgram
from compilescope.minify.source.program_sandbox import (
    FindingJudge,
    ProgramFiles,
    ProgramSandbox,
    find_again,
)
from compilescope.minify.source.script import Story, finished_script, tidy, why_not
from compilescope.plugins import discover
from compilescope.processes.deadline import OutOfTime

LATE = "the time limit ended the check"
_ROOM = 1.25
"""A check may take longer than what it is estimated by: the machine may be busier then. Chosen: a
quarter more."""


@dataclass(frozen=True)
class MinifyOptions:
    """How it is to be done."""

    jobs: int = 1
    state: Path | None = None
    limits: ReductionLimits = field(default_factory=ReductionLimits)
    limit_s: float = 60.0
    """For one candidate."""
    memory_bytes: int | None = None
    progress: Callable[[ReductionProgress], None] | None = None


@dataclass(frozen=True)
class SourceRepro:
    """What came of it."""

    script: str
    """Empty where there is none; then `reason` says why."""
    reason: str
    """With a script: why no fresh process has verified it."""
    program: str
    """The small program alone."""
    cause: SourceFinding
    reduction: Reduction[SourceCandidate]
    start_lines: int
    needs: dict[str, str]
    """Own modules that it still imports, and why."""
    torch: str = ""
    """The version it was seen on."""

    @property
    def lines(self) -> int:
        return line_count(self.program)


def line_count(text: str) -> int:
    """Lines with something on them."""
    return sum(1 for line in text.splitlines() if line.strip())


@functools.cache
def all_passes() -> list[Pass[SourceCandidate]]:
    return discover(source_passes, "PASS", Pass)


def minimise(
    program: SourceProgram, cause: SourceFinding, stage: ProgramSandbox, options: MinifyOptions
) -> SourceRepro:
    """`cause` as the whole program showed it."""
    start, seen, needs = _start(program, cause, stage)
    wanted = find_again(seen, cause)
    assert wanted is not None
    allowed = frozenset(filter(None, (seen.error, wanted.error)))
    judge = FindingJudge(stage, wanted, allowed)
    judge.unbound = unbound_names(start)
    judge.recompiles = frozenset(
        each.fingerprint for each in seen.findings if each.predicate == "recompile"
    )
    judge.compiled_only = wanted.predicate == "crash" and not is_of_compiler(wanted)
    eager = with_eager_backend(start)
    if eager == start or judge.judge(eager) == "kept":
        start, judge.eager_only = eager, is_eager(eager)
    with stage.deadline.leaving(lambda: checking_s(stage.start_s, judge.seconds)):
        done = reduce(
            parse(start),
            all_passes(),
            judge,
            jobs=options.jobs,
            state=options.state,
            purpose=json.dumps([wanted.fingerprint, *sorted(allowed), seen.torch]),
            limits=options.limits,
            progress=options.progress,
        )
    text = done.best.text()
    needs = {name: why for name, why in needs.items() if name.split(".")[0] in text}
    lines = line_count(start)
    finish = _Finish(program, cause, stage, needs, lines, seen.torch)
    script, reason, now = finish.run(text, wanted)
    return SourceRepro(script, reason, tidy(text), now, done, lines, needs, seen.torch)


def checking_s(start_s: float, run_s: float) -> float:
    """What a script's check takes: once more where it was tried, and two fresh processes."""
    return _ROOM * (2 * start_s + 3 * run_s)


def _start(
    program: SourceProgram, cause: SourceFinding, stage: ProgramSandbox
) -> tuple[str, TrialResult, dict[str, str]]:
    """The program in one file if that shows the cause too; else as it is."""
    tried: list[str] = []
    for form in (program.in_one_file(), program.as_it_is()):
        seen = stage.look(form.text)
        if isinstance(seen, TrialResult) and find_again(seen, cause) is not None:
            return form.text, seen, form.left
        tried.append(_told(seen))
    raise ToolError(
        f"{program.name} does not show the same cause when run in a scratch folder: {tried[-1]}.",
        hint="Does it depend on files, on its folder or on randomness?",
    )


def _told(seen: TrialResult | str) -> str:
    if isinstance(seen, str):
        return f"the result was {seen}"
    return f"it ended with {seen.error}: {seen.message}" if seen.error else "another run differs"


@dataclass(frozen=True)
class _Finish:
    """From the small program to the script that is handed out."""

    program: SourceProgram
    cause: SourceFinding
    stage: ProgramSandbox
    needs: dict[str, str]
    lines: int
    torch: str

    def run(self, text: str, known: SourceFinding) -> tuple[str, str, SourceFinding]:
        """The script, or why there is none; and the cause as the small program shows it. Where
        time runs out, the script is what was tried already, and the reason says so."""
        now = known
        try:
            seen = self.stage.look(text)
            found = find_again(seen, self.cause) if isinstance(seen, TrialResult) else None
            if found is None:
                return "", "the minified program did not show it a second time", self.cause
            now = found
            return *self._verified(text, now), now
        except OutOfTime:
            return self._script(text, now, guarded=False), LATE, now

    def _verified(self, text: str, now: SourceFinding) -> tuple[str, str]:
        # Away from the user's folders, unless it needs them.
        files = self.stage.surroundings.files
        reason = ""
        for around in (ProgramFiles((), ()), ProgramFiles((self.program.original.root,), files)):
            for guarded in (False, True):
                script = self._script(text, now, guarded=guarded)
                stage = self.stage
                reason = why_not(script, text, self.cause, around, stage.limit_s, stage.deadline)
                if not reason:
                    return script, ""
            if not self.needs and not files:
                break
        return "", reason

    def _script(self, text: str, now: SourceFinding, *, guarded: bool) -> str:
        cause = self.cause
        found_in = f"{Path(cause.file).name}:{cause.line}, in {cause.function}"
        if not cause.line:
            found_in = self.program.name
        story = Story(found_in, self.torch, self.lines, tuple(self.needs))
        return finished_script(text, now, story, guarded=guarded)
