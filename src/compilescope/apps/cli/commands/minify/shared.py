"""What all kinds of `minify` share: where they write, the progress bar, the closing lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_repro

if TYPE_CHECKING:
    from compilescope.base.processes.deadline import Deadline
    from compilescope.change.minify.engine import Reduction, ReductionProgress
    from compilescope.change.minify.script.issue import IssueResult
    from compilescope.record.bodies import MinifyOutcome
    from compilescope.record.stack import Frame

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended."""
LONGEST_PROGRAM_S = 3600.0
"""For one run of the whole program. Chosen: --budget is the user's limit, this one ends what
hangs."""


@dataclass(frozen=True)
class Output:
    """Where the result goes, and what is kept until it is whole."""

    path: Path
    repro: bool
    """It is to be a repro script, which can be told from other files."""
    force: bool = False
    rename_in: Callable[[Path], None] | None = None
    """Makes a run that was recorded in a copy of the working folder name the real one."""

    @property
    def state(self) -> Path:
        return self.path.with_name(f".{self.path.name}.minify.json")

    @property
    def records(self) -> Path:
        return self.path.with_name(f".{self.path.name}.minify")

    def check(self, *, resume: bool) -> None:
        """Say what cannot be done before hours of work, not after."""
        check_output(
            self.path,
            force=self.force or resume,
            ours=is_repro if self.repro else None,
            hint="Name another file with -o, or overwrite it with --force.",
        )
        if not resume:
            self.state.unlink(missing_ok=True)
        elif not self.state.exists():
            raise ToolError(
                f"There is nothing to resume: {self.state} does not exist.",
                hint="--resume continues a stopped minify of the same program with the same -o.",
            )


@contextmanager
def within_time(deadline: Deadline, name: str) -> Iterator[None]:
    """Where the time is over before there is anything to hand out."""
    from compilescope.base.processes.deadline import OutOfTime

    try:
        yield
    except OutOfTime:
        raise ToolError(
            f"The time limit of {deadline.seconds or 0:g} s is too short: it ended before {name} "
            "had shown the same cause on its own.",
            hint="Raise --budget, or use a shorter run of the program.",
        ) from None


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[ReductionProgress], None]]:
    """Call it with a Progress: the bar fills as the program shrinks."""
    with working("minify", "running the whole program") as work:

        def show(progress: ReductionProgress) -> None:
            start, size = max(progress.start_size[0], 1), progress.size[0]
            words = f"{start} -> {size} {unit}, {progress.calls} runs"
            work.shrink(words, 1 - size / start)

        yield show


def how_it_went(reduction: Reduction[Any], unit: str, seconds: float) -> str:
    before, size = reduction.start_size[0], reduction.best.size()[0]
    reused = f" and {reduction.reused} cached results" if reduction.reused else ""
    return f"{before} -> {size} {unit} in {reduction.calls} runs{reused}, {seconds:.0f} s."


def why_early(reduction: Reduction[Any]) -> str:
    words = {
        "interrupt": "Stopped by Ctrl-C; this is the best so far.",
        "time": "Stopped at the time limit; this is the best so far.",
        "calls": "Stopped at the run limit; this is the best so far.",
    }
    return words.get(reduction.stopped, "")


def measured(reduction: Reduction[Any], seconds: float) -> dict[str, Any]:
    """For JSON."""
    return {
        "size_before": reduction.start_size[0],
        "size": reduction.best.size()[0],
        "calls": reduction.calls,
        "reused": reduction.reused,
        "rounds": reduction.rounds,
        "stopped": reduction.stopped,
        "seconds": round(seconds, 1),
    }


def issue_facts(issue: IssueResult | None) -> dict[str, Any]:
    """For JSON."""
    if issue is None:
        return {"issue": None, "issue_reason": ""}
    path = str(issue.path) if issue.path is not None else None
    return {"issue": path, "issue_reason": issue.reason}


def say_how(reduction: Any, seconds: float, output: Output, unit: str = "tokens") -> None:
    print(how_it_went(reduction, unit, seconds))
    if early := why_early(reduction):
        print(f"{early} --resume continues from {output.state}.")


def keep_run(
    output: Output, outcome: MinifyOutcome, place: Frame | None, given: dict[str, Any], torch: str
) -> str | None:
    """The name of the run that keeps it; None, and why, where none can be written: the repro is
    there all the same."""
    import msgspec

    from compilescope.record.artifacts import ARTIFACTS, DiskArtifacts
    from compilescope.record.command_run import CommandRun

    command = ("compilescope", *sys.argv[1:])
    try:
        run = CommandRun(given["home"], f"minify-{given['program']}", command, torch=torch)
    except ToolError as error:
        print(f"compilescope: no run was kept: {error.message}", file=sys.stderr)
        return None
    script = ""
    if outcome.path:
        text = output.path.read_text(encoding="utf-8", errors="replace")
        script = DiskArtifacts(run.folder / ARTIFACTS).put(text, "py")
    outcome = msgspec.structs.replace(outcome, script=script)
    run.write(outcome, (place,) if place is not None else ())
    run.end(0 if outcome.path else 2)
    if output.rename_in is not None:
        output.rename_in(run.folder)
    return run.folder.name


def say_run(run: str | None) -> None:
    if run is not None:
        print(f"\ncompilescope: see the report with `compilescope report {run}`", file=sys.stderr)


def size_facts(reduction: Reduction[Any], seconds: float) -> dict[str, Any]:
    """For the record."""
    return {
        "size_before": reduction.start_size[0],
        "size": reduction.best.size()[0],
        "runs": reduction.calls,
        "reused": reduction.reused,
        "stopped": reduction.stopped,
        "seconds": round(seconds, 1),
    }


def memory_for_candidates() -> int:
    """Half of what the machine has: the other half is for everyone else."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
