"""What came of a search: every attempt with its verdict, and the version that is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.fixes.patch import Allowance
from compilescope.model.fix_search import (
    FixAttempt,
    FixLeft,
    FixVerdict,
    Losses,
    Times,
    UncoveredBreak,
)


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
    main: str = ""
    """The script's path; empty for `-c`."""
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
    allows: frozenset[Allowance] = frozenset()
    """What may differ with all that was kept."""
