"""What came of a search: every attempt with its verdict, and the version that is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from compilescope.repair.trials.verification import Check, Times

Verdict = Literal["verified", "rejected", "unverified"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One fix, tried on one cause."""

    rule: str
    """What was lost: `print-call`, `recompile/size-change`; else the graph-break id."""
    kind: Literal["break", "recompile", "failure"]
    cause: str
    """In a few words."""
    fingerprint: str
    file: str
    line: int
    """In the version that was tried: an earlier round may have moved it."""
    function: str
    source: str
    fix: str
    """The id of the fix; empty where none fits."""
    title: str
    verdict: Verdict
    reason: str
    """Why it is not verified; what was left out, where it is."""
    safe: bool
    states: str
    """What a user could see change; empty where nothing does."""
    kept: bool
    """It is part of what is handed out."""
    own: bool
    """In the user's own files."""
    breaks_before: int
    breaks_after: int | None
    """None where it never ran to its end."""
    recompiles_before: int
    recompiles_after: int | None
    checks: tuple[Check, ...] = ()
    times: Times | None = None
    """Of this fix alone, held against the version it was tried on; None where not timed."""
    diff: str = ""
    """Of this patch alone."""
    because: str = ""
    """Id of an event of the cause in the original's run; empty in later rounds."""
    refused: tuple[tuple[str, str], ...] = ()
    """Other fixes for the cause that did not fit, and why."""
    round: int = 1


class Totals(msgspec.Struct, frozen=True):
    """What one version loses."""

    breaks: int
    """Distinct sites."""
    recompiles: int
    graphs: int
    operators: int
    eager: int
    failures: int


@dataclass(frozen=True)
class Outcome:
    """What the user is told and handed."""

    before: Totals
    after: Totals
    attempts: tuple[Attempt, ...]
    files: dict[str, str] = field(default_factory=dict)
    """New texts by absolute path: all that was kept."""
    originals: dict[str, str] = field(default_factory=dict)
    """The same files as they were read."""
    environment: dict[str, str] = field(default_factory=dict)
    main: str = ""
    """The script's path; empty for `-c`."""
    verdict: Verdict = "unverified"
    """Of all that was kept, together, against the original."""
    reason: str = ""
    times: Times | None = None
    notes: tuple[str, ...] = ()
    """What the user should know of the program itself: it is nondeterministic, it failed, ..."""
    run: str = ""
    """The id of the original's run, where it was kept."""
    left: tuple[tuple[str, str], ...] = ()
    """(place, what PyTorch or a rule says) of what is still lost after all that was kept."""
