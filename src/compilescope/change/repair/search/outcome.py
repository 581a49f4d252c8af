"""What came of a search: every attempt with its verdict, and the version that is handed out;
and what a run keeps of all that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.base.processes.cleaner import transient
from compilescope.change.fixes.patch import Allowance
from compilescope.change.fixes.stored import store_files
from compilescope.record.artifacts import ARTIFACTS, Artifacts, DiskArtifacts
from compilescope.record.bodies import Body, FixOutcome
from compilescope.record.command_run import append_bodies
from compilescope.record.fix_search import (
    FixAttempt,
    FixLeft,
    FixVerdict,
    Losses,
    Placement,
    Times,
    UncoveredBreak,
)
from compilescope.record.header import read_header
from compilescope.record.home import make_home, note_made
from compilescope.record.provenance import seal_fix


@dataclass(frozen=True)
class SearchResult:
    """What the user is told and handed."""

    before: Losses
    after: Losses
    attempts: tuple[FixAttempt, ...]
    files: dict[str, str] = field(default_factory=dict)
    """New texts by absolute path: all that was kept."""
    originals: dict[str, str] = field(default_factory=dict)
    """The same files as they were read."""
    environment: dict[str, str] = field(default_factory=dict)
    verdict: FixVerdict = "unverified"
    """Of all that was kept, together, against the original."""
    reason: str = ""
    times: Times | None = None
    notes: tuple[str, ...] = ()
    """What the user should know of the program itself: it is nondeterministic, it failed, ..."""
    run: str = ""
    """The id of the original's run, where it was kept."""
    left: tuple[FixLeft, ...] = ()
    """What is still lost after all that was kept, and what PyTorch or a rule says of it."""
    uncovered: tuple[UncoveredBreak, ...] = ()
    """Graph breaks that the program had not shown: part of `after`."""
    placements: tuple[Placement, ...] = ()
    """Ways to say what is compiled, side by side; none where there was no choice."""
    allows: frozenset[Allowance] = frozenset()
    """What may differ with all that was kept."""


# Keeps the original's run with the attempts to fix it, so that a report can show both.
#
# The fix that was verified is part of it, and can be applied later.


def keep_run(folder: Path, home: Path, outcome: SearchResult) -> Path | None:
    """Copy the run to the user's own; None where that cannot be written."""
    return copy_run(folder, home, lambda part: _tell_outcome(part, outcome))


def copy_run(folder: Path, home: Path, tell: Callable[[Path], None]) -> Path | None:
    """Likewise; `tell` adds to the copy what was found out."""
    target = home.absolute() / folder.name
    try:
        make_home(target.parent)
        # Under its own name only when it is whole.
        with transient(target.with_name(f".{folder.name}.part")) as part:
            shutil.copytree(folder, part)
            tell(part)
            part.rename(target)
    except OSError:
        return None
    note_made(target)
    return target


def _tell_outcome(run: Path, outcome: SearchResult) -> None:
    """Append what became of each attempt, and of all together."""
    kept = _outcome(outcome, DiskArtifacts(run / ARTIFACTS))
    bodies: list[Body] = [*outcome.attempts, kept]
    append_bodies(run, bodies)
    changes = DiskArtifacts(run / ARTIFACTS).get(kept.changes) or ""
    # By the name in its header: the folder has another one until it is whole.
    seal_fix(run, read_header(run).run, kept.verdict, changes)


def _outcome(outcome: SearchResult, artifacts: Artifacts) -> FixOutcome:
    return FixOutcome(
        verdict=outcome.verdict,
        reason=outcome.reason,
        changes=store_files(outcome.files, outcome.originals, artifacts),
        environment=outcome.environment,
        before=outcome.before,
        after=outcome.after,
        warm_call=outcome.times.warm_call if outcome.times is not None else None,
        notes=outcome.notes,
        left=outcome.left,
        uncovered=outcome.uncovered,
        placements=outcome.placements,
    )
