"""Bodies of a search for fixes: every attempt on a finding, and what they came to together.

`fix` makes them, a run keeps them, and every view draws these very records.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from compilescope.record.body import EventBody, FindingKind, Verdict

FixVerdict = Literal["verified", "rejected", "unverified"]


class FixCheck(msgspec.Struct, frozen=True):
    """One question that was asked of a version of the program."""

    name: str
    """`breaks`, `recompiles`, `eager`, `failures`, `operators`, `output`, `exit`, `values`, ..."""
    verdict: Verdict
    words: str


class Losses(msgspec.Struct, frozen=True):
    """What a run lost, in numbers."""

    breaks: int = 0
    recompiles: int = 0
    graphs: int = 0
    operators: int = 0
    """Captured by Dynamo, each compiled function counted once however often it was compiled."""
    eager: int = 0
    """Functions, or rests of functions, that run eagerly."""
    failures: int = 0
    needed: int | msgspec.UnsetType = msgspec.UNSET
    """Of the recompiles, those that the program needs: nothing is lost by them. Not set in the
    records of earlier versions."""

    @property
    def avoidable(self) -> int:
        """Recompiles that the program does not need."""
        return self.recompiles - (0 if self.needed is msgspec.UNSET else self.needed)

    @property
    def every_call(self) -> tuple[int, int, int]:
        """What is paid again in each call, the worst first: it orders runs by what they lose."""
        return self.failures, self.eager, self.breaks

    @property
    def anything(self) -> bool:
        return any(self.every_call) or self.avoidable > 0


class UncoveredBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break that only the fixed program shows."""

    file: str
    line: int
    function: str = ""
    source: str = ""
    rule: str = ""
    """As in `FixAttempt`."""
    cause: str = ""
    """The finding's title."""
    why: str = ""
    """What hid it before; empty where nothing tells."""


class Spread(msgspec.Struct, frozen=True):
    """Some measurements of one thing, in seconds."""

    median: float
    low: float
    high: float
    rounds: int


class Timed(msgspec.Struct, frozen=True):
    """How long one version took; None where it could not be timed."""

    steady: Spread | None = None
    """A warm call of each compiled region, summed over the regions: the mean of a process' calls,
    and of these the median."""
    first: Spread | None = None
    """The first calls of all regions, compilation included."""
    whole: Spread | None = None
    """The whole process; from a warm one, without what `Times.imports` says."""


class Times(msgspec.Struct, frozen=True):
    """Two versions, run by turns."""

    before: Timed = Timed()
    after: Timed = Timed()
    reason: str = ""
    """Why something could not be timed."""
    imports: bool = True
    """Is starting Python and importing torch part of `whole`?"""

    @property
    def slower(self) -> bool | None:
        """Is the second one slower in steady state, beyond the spread of both? None: unknown."""
        old, new = self.before.steady, self.after.steady
        if old is None or new is None:
            return None
        return new.low > old.high

    @property
    def warm_call(self) -> tuple[float, float] | None:
        """Seconds before and after; None where it was not timed."""
        old, new = self.before.steady, self.after.steady
        return (old.median, new.median) if old is not None and new is not None else None


class FixAttempt(EventBody, frozen=True):
    """One fix that was tried on one finding, and what came of it.

    Version 0.1 stored it without what follows `diff`.
    """

    fix: str
    """Its id; empty where none fitted."""
    title: str
    verdict: FixVerdict
    because: str = ""
    """Id of an event of the finding; empty where only an earlier fix uncovered it."""
    cause: str = ""
    """The finding's title."""
    reason: str = ""
    """Why it is not verified; why it was left out, where it was."""
    states: str = ""
    """What a user could see change with it."""
    kept: bool = False
    """It is part of what was handed out."""
    unneeded: bool = False
    """It was verified, and left out: the fixes that were handed out do without it."""
    diff: str = ""
    """Of this fix alone."""
    finding: FindingKind | Literal[""] = ""
    """The finding's kind."""
    fingerprint: str = ""
    """The finding's."""
    rule: str = ""
    """What was lost: `print-call`, `recompile/size-change`; else the graph-break id."""
    file: str = ""
    line: int = 0
    """In the version that was tried: an earlier round may have moved it."""
    function: str = ""
    source: str = ""
    own: bool = False
    """In the user's own files."""
    safe: bool = False
    breaks_before: int = 0
    breaks_after: int | None = None
    """None where it never ran to its end."""
    recompiles_before: int = 0
    recompiles_after: int | None = None
    checks: tuple[FixCheck, ...] = ()
    times: Times | None = None
    """Of this fix alone, held against the version it was tried on; None where not timed."""
    refused: tuple[tuple[str, str], ...] = ()
    """Other fixes for the finding that did not fit, and why."""
    round: int = 1
    inputs: tuple[str, ...] = ()
    """The sets of inputs that the verdict rests on, in words; none where nothing was replayed."""
    notes: tuple[str, ...] = ()
    """What was not compared, and why."""
    uncovered: tuple[UncoveredBreak, ...] = ()
    """Graph breaks that are seen only with it."""
    by: str = ""
    """The language model that wrote it; empty of our own fixes."""
    compared: tuple[str, ...] = ()
    """Of a model's patch: what the verdict rests on, in sentences."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """What is compiled in one version of the program, and what that comes to."""

    name: str
    """The id of the fix or of the candidate; empty for the program as it is."""
    title: str
    verdict: Literal["verified", "rejected", "unverified", "apart", "refused", "original"]
    reason: str = ""
    losses: Losses | None = None
    """None where it was not run under capture to its end."""
    share: float | None = None
    """Of the operators that run, those in compiled graphs."""
    warm_s: float | None = None
    """A warm step: in `fix` a warm call of what the original compiles."""
    compile_s: float | None = None
    memory_bytes: int | None = None
    """The most that the process, or torch on its GPU, had."""
    chosen: bool = False
    diff: str = ""


class FixLeft(msgspec.Struct, frozen=True):
    """Something that is lost with all that was kept, too."""

    place: str
    why: str


class FixOutcome(EventBody, frozen=True):
    """What a search for fixes came to: all that was kept, verified together."""

    verdict: FixVerdict
    reason: str = ""
    """Why it is not verified."""
    changes: str = ""
    """Artifact: the files before and after, as a JSON list of FixedFile; empty: none changes."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that the program must be started with."""
    before: Losses = Losses()
    """Of the program as it was."""
    after: Losses = Losses()
    """Of the program with all that was kept."""
    warm_call: tuple[float, float] | None = None
    """Seconds of a warm call before and after; None where it was not timed."""
    notes: tuple[str, ...] = ()
    left: tuple[FixLeft, ...] = ()
    uncovered: tuple[UncoveredBreak, ...] = ()
    """Graph breaks that the program had not shown: part of `after`."""
    placements: tuple[Placement, ...] = ()
    """Ways to say what is compiled, side by side; none where there was no choice."""


class FixedFile(msgspec.Struct, frozen=True):
    """A file that a fix changes. Whole texts: a diff could be read otherwise than it was meant."""

    path: str
    """Absolute."""
    original: str
    """As it was read, without a byte order mark."""
    fixed: str


ChangeVerdict = Literal["verified", "changed", "worse", "unknown"]
"""`worse`: the same results, and more is lost. `unknown`: it could not be told, whatever else is
known."""


class CountedTwice(msgspec.Struct, frozen=True):
    """Something counted in two versions: the least and the most of all runs of each."""

    name: str
    """A field of `Losses`."""
    before: tuple[int, int]
    after: tuple[int, int]


class ChangedCause(msgspec.Struct, frozen=True, kw_only=True):
    """What is lost in one of two versions alone."""

    kind: FindingKind
    rule: str = ""
    title: str = ""
    file: str = ""
    line: int = 0
    """In the version that has it."""
    function: str = ""
    source: str = ""
    fingerprint: str = ""
    why: str = ""
    """What hid it before; empty where nothing did."""


class ChangeOutcome(EventBody, frozen=True, kw_only=True):
    """Two versions of a program, compared: the run is of the second one."""

    verdict: ChangeVerdict
    reason: str = ""
    """In one sentence; of a verified change empty."""
    name: str = ""
    """What the change is: a file, a patch, commits."""
    before_name: str = "before"
    after_name: str = "after"
    original: str = ""
    """The id of the first one's run, where it was kept."""
    checks: tuple[FixCheck, ...] = ()
    compared: tuple[str, ...] = ()
    """What was compared, in sentences."""
    not_compared: tuple[str, ...] = ()
    """What was not, in sentences."""
    inputs: tuple[str, ...] = ()
    """The kinds of inputs that compiled regions were compared on, in words."""
    counts: tuple[CountedTwice, ...] = ()
    share: tuple[float | None, float | None] = (None, None)
    """Of the operators of a call, those that run eagerly; None where they were not counted."""
    times: Times | None = None
    new: tuple[ChangedCause, ...] = ()
    """Causes that only the second version has, and that were not hidden in the first."""
    uncovered: tuple[ChangedCause, ...] = ()
    """Those that were hidden."""
    gone: tuple[ChangedCause, ...] = ()
    """Causes that only the first version has."""
    slower: bool = False
    """Is a warm call slower, the intervals apart?"""
    behavior: bool = True
    """Was compared what the program does? Else only what it loses, as `check --git` asks."""
    diff: str = ""


COUNTS = {
    "breaks": "graph breaks",
    "recompiles": "recompiles",
    "eager": "eager fallbacks",
    "failures": "failed compilations",
    "graphs": "graphs",
    "operators": "operators captured",
}


def count_label(name: str) -> str:
    """What a count is called; a record of another version may have others."""
    return COUNTS.get(name, name)


def in_counts(before: Losses, after: Losses, uncovered: Sequence[UncoveredBreak] = ()) -> str:
    """What is lost, before and after, where there is any: `graph breaks 2 -> 0`."""
    names = ("breaks", "recompiles", "failures")
    found = ((name, getattr(before, name), getattr(after, name)) for name in names)
    new = f" ({len(uncovered)} newly visible)" if uncovered else ""
    return ", ".join(
        f"{COUNTS[name]} {old} -> {now}{new if name == 'breaks' else ''}"
        for name, old, now in found
        if old or now
    )
