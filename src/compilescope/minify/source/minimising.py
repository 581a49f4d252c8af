"""From a program that shows a cause to the smallest script that shows it, proven anew."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import compilescope.minify.source_passes as source_passes
from compilescope.errors import ToolError
from compilescope.minify.engine import Limits, Pass, Progress, Reduction, reduce
from compilescope.minify.source.backends import is_eager, with_eager_backend
from compilescope.minify.source.candidate import SourceCandidate, parse, unbound_names
from compilescope.minify.source.causes import Cause
from compilescope.minify.source.crashes import is_of_compiler
from compilescope.minify.source.flatten import Flattened
from compilescope.minify.source.messages import Seen
from compilescope.minify.source.program import SourceProgram
from compilescope.minify.source.script import Story, finished_script, tidy
from compilescope.minify.source.stage import (
    CauseJudge,
    Stage,
    Surroundings,
    find_cause,
)
from compilescope.minify.source.verifying import why_not
from compilescope.plugins import discover


@dataclass(frozen=True)
class Wishes:
    """How it is to be done."""

    jobs: int = 1
    state: Path | None = None
    limits: Limits = field(default_factory=Limits)
    limit_s: float = 60.0
    """For one candidate."""
    memory_bytes: int | None = None
    progress: Callable[[Progress], None] | None = None


@dataclass(frozen=True)
class SourceRepro:
    """What came of it."""

    script: str
    """Empty where there is none; then `reason` says why."""
    reason: str
    program: str
    """The small program alone."""
    cause: Cause
    reduction: Reduction[SourceCandidate]
    start_lines: int
    needs: dict[str, str]
    """Own modules that it still imports, and why."""

    @property
    def lines(self) -> int:
        return line_count(self.program)


def line_count(text: str) -> int:
    """Lines with something on them."""
    return sum(1 for line in text.splitlines() if line.strip())


@functools.cache
def all_passes() -> list[Pass[SourceCandidate]]:
    return discover(source_passes, "PASS", Pass)


def minimise(program: SourceProgram, cause: Cause, stage: Stage, wishes: Wishes) -> SourceRepro:
    """`cause` as the whole program showed it."""
    start, seen, needs = _start(program, cause, stage)
    wanted = find_cause(seen, cause)
    assert wanted is not None
    allowed = frozenset(filter(None, (seen.error, wanted.error)))
    judge = CauseJudge(stage, wanted, allowed)
    judge.unbound = unbound_names(start)
    judge.recompiles = frozenset(each.key for each in seen.causes if each.kind == "recompile")
    judge.compiled_only = wanted.kind == "crash" and not is_of_compiler(wanted)
    eager = with_eager_backend(start)
    if eager == start or judge.judge(eager) == "kept":
        start, judge.eager_only = eager, is_eager(eager)
    done = reduce(
        parse(start),
        all_passes(),
        judge,
        jobs=wishes.jobs,
        state=wishes.state,
        purpose=json.dumps([*wanted.key, *sorted(allowed), seen.torch]),
        limits=wishes.limits,
        progress=wishes.progress,
    )
    text = done.best.text()
    needs = {name: why for name, why in needs.items() if name.split(".")[0] in text}
    lines = line_count(start)
    script, reason, now = _finish(text, program, cause, stage, needs, lines)
    return SourceRepro(script, reason, tidy(text), now, done, lines, needs)


def _start(program: SourceProgram, cause: Cause, stage: Stage) -> tuple[str, Seen, dict[str, str]]:
    """The program in one file if that shows the cause too; else as it is."""
    tried: list[str] = []
    for form in (program.in_one_file(), program.as_it_is()):
        seen = stage.look(form.text)
        if isinstance(seen, Seen) and find_cause(seen, cause) is not None:
            return form.text, seen, form.left
        tried.append(_told(form, seen))
    raise ToolError(
        f"{program.name} does not show the same cause when run in a scratch folder: {tried[-1]}.",
        hint="Does it depend on files, on its folder or on randomness?",
    )


def _told(form: Flattened, seen: Seen | str) -> str:
    if isinstance(seen, str):
        return f"the result was {seen}"
    return f"it ended with {seen.error}: {seen.message}" if seen.error else "another run differs"


def _finish(
    text: str,
    program: SourceProgram,
    cause: Cause,
    stage: Stage,
    needs: dict[str, str],
    lines: int,
) -> tuple[str, str, Cause]:
    """The script, or why there is none; and the cause as the small program shows it."""
    seen = stage.look(text)
    now = find_cause(seen, cause) if isinstance(seen, Seen) else None
    if now is None or not isinstance(seen, Seen):
        return "", "the minified program did not show it a second time", cause
    found_in = f"{Path(cause.file).name}:{cause.line}, in {cause.function}"
    if not cause.line:
        found_in = program.name
    story = Story(found_in, seen.torch, lines, tuple(needs))
    # Away from the user's folders, unless it needs them.
    files = stage.surroundings.files
    reason = ""
    for around in (Surroundings((), ()), Surroundings((program.original.root,), files)):
        for guarded in (False, True):
            script = finished_script(text, now, story, guarded=guarded)
            reason = why_not(script, text, cause, around, stage.limit_s)
            if not reason:
                return script, "", now
        if not needs and not files:
            break
    return "", reason, now
