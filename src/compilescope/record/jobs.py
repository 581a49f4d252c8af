"""Bodies of a sweep: how each of its jobs ended, and what it found."""

from typing import Literal

import msgspec

from compilescope.record.body import EventBody, FindingKind, Level

JobState = Literal["ok", "failed", "crashed", "timeout", "memory", "unbuilt", "lost", "cancelled"]
"""Exactly one for each job.

`ok`: the program ended with status 0. `failed`: with another status. `crashed`: by a signal.
`timeout`, `memory`: stopped at its limit, or by the system for want of memory. `unbuilt`: the model
could not be built, or does not run in eager mode. `lost`: its machine died, more often than it was
tried again. `cancelled`: the sweep was stopped before it ended.
"""


class JobCause(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A finding of one job, as `findings.finding.Finding` has it."""

    kind: FindingKind
    rule: str
    fingerprint: str
    title: str = ""
    message: str = ""
    level: Level = "warning"
    file: str = ""
    line: int = 0
    function: str = ""
    source: str = ""
    count: int = 1
    seconds: float | None = None
    fix: str = ""
    """The fix that the advice for it names first; empty: none."""
    fix_title: str = ""


class JobEnded(EventBody, frozen=True, kw_only=True):
    """How one job of a sweep ended. None: not known, since it did not come so far."""

    name: str
    state: JobState
    reason: str = ""
    """Why it is not `ok`, in one sentence; with `ok`, what a reader must know."""
    seconds: float = 0.0
    """From the start of its program to its end."""
    overhead_seconds: float | None = None
    """What the job took beyond that."""
    attempts: int = 1
    machine: str = ""
    """The name of the Machine that it ran on."""
    torch: str = ""
    run: str = ""
    """Its run, relative to the sweep's store; empty where none was kept."""
    graphs: int | None = None
    breaks: int | None = None
    recompiles: int | None = None
    eager: int | None = None
    failures: int | None = None
    compile_seconds: float | None = None
    causes: tuple[JobCause, ...] = ()
    kerneldiff: Literal["", "pass", "fail", "unknown"] = ""
    """With --diff."""
    fixed: Literal["", "verified", "partly", "none"] = ""
    """With --fix: did verified fixes remove all causes, some, or none?"""
    speedup: float | None = None
    """With --bench: of the sweep's backend against eager mode."""
