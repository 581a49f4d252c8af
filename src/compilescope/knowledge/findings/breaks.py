"""Break sites: one entry for each (root cause, place), however often and from wherever it hit."""

from __future__ import annotations

from typing import Any

from compilescope.knowledge.findings.finding import Finding, Toll
from compilescope.record.bodies import CompileTime, FrameSkipped, GraphBreak
from compilescope.record.body import FindingKind, Level
from compilescope.record.event import Event
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of, users_call

_BACKWARD = "Tensor.backward()"
"""In PyTorch's name of a break: a whole training step is compiled, not the model."""


class BreakFinding(Finding, frozen=True, kw_only=True):
    """A place in the user's code at which Dynamo had to stop.

    `count` is how often it was reported: recompiles, resume functions and other callers repeat it.
    `seconds` is the compile time of the tracing that it threw away.
    """

    gb_id: str | None
    gb_type: str
    explanation: str
    hints: tuple[str, ...]
    context: str
    """PyTorch's own debug context."""
    wrappers: tuple[str, ...]
    """What was reported around the root cause."""
    frames: int
    """In how many code objects."""
    tests: tuple[str, ...]
    outcome: str
    """The worst that followed: `frame-eager`, `rest-eager` or `resumed`."""
    gave_up: tuple[CodeRef, ...]
    """The functions that run eagerly because of it."""
    in_torch: bool
    """The function that was being compiled is torch's own."""
    beneath: Frame | None = None
    """The line at which tracing ended, where the user's line is only what led there."""
    returned: bool = False
    """In eager mode the line did not raise: the rest of its function was reached."""
    consequence_of: str | None = None
    """Fingerprint of the earlier break that this one is an echo of."""

    @property
    def kind(self) -> FindingKind:
        return "break"

    @property
    def rule_id(self) -> str:
        # A break that no hook of Dynamo's reports is named as its rule is: `xla/host-read`.
        told_by_log = self.rule is not None and "/" in self.rule
        return self.gb_id or (self.rule if told_by_log else None) or "unregistered-break"

    @property
    def title(self) -> str:
        return self.gb_type

    @property
    def message(self) -> str:
        return self.why or self.explanation

    @property
    def toll(self) -> Toll:
        if _BACKWARD in self.gb_type:
            return Toll.PROGRAM
        return Toll.EAGER if self.gave_up else Toll.EVERY_CALL

    @property
    def level(self) -> Level:
        return "note" if self.consequence_of else "warning"

    @property
    def events(self) -> int:
        """As JSON and Python users know `count`."""
        return self.count

    @property
    def retrace_seconds(self) -> float | None:
        """As JSON and Python users know `seconds`."""
        return self.seconds


_WORST_FIRST = ("frame-eager", "rest-eager", "resumed", "unknown")
_GAVE_UP = ("frame-eager", "rest-eager")


def break_sites(run: Run) -> list[BreakFinding]:
    """In order of appearance."""
    groups: dict[tuple[object, ...], list[tuple[Event, GraphBreak]]] = {}
    for event, body in run.of(GraphBreak):
        groups.setdefault(site_key(event, body), []).append((event, body))
    if not groups:
        return []
    resumed = _resumed(run)
    return [_site(members, run.header.root, resumed) for members in groups.values()]


_Resumed = set[tuple[int, str, str, int | None]]


def _resumed(run: Run) -> _Resumed:
    """A process, and a function of it that went on after a line."""
    timed = ((event, body.frame) for event, body in run.of(CompileTime))
    skipped = ((event, body.frame) for event, body in run.of(FrameSkipped))
    return {
        (event.pid, code.file, code.function, code.resumed_at)
        for event, code in (*timed, *skipped)
        if code is not None and code.resumed
    }


def _beneath(event: Event) -> Frame | None:
    """Dynamo's own stand-ins for builtins say nothing that the user's line does not."""
    last = event.stack[-1] if event.stack else None
    if last is None or last == event.site or "/torch/_dynamo/" in last.file.replace("\\", "/"):
        return None
    return last


def site_key(event: Event, body: GraphBreak) -> tuple[object, ...]:
    """Breaks of one site share it."""
    frame = event.site
    place = (frame.file, frame.line, frame.column) if frame else (body.frame,)
    return (body.gb_type, *place)


def _site(members: list[tuple[Event, GraphBreak]], root: str, resumed: _Resumed) -> BreakFinding:
    event, body = members[0]
    frame = event.site
    code = body.frame
    return BreakFinding(
        gb_id=body.gb_id,
        gb_type=body.gb_type,
        file=frame.file if frame else (code.file if code else ""),
        line=frame.line if frame else (code.line if code else 0),
        column=frame.column if frame else None,
        end_column=frame.end_column if frame else None,
        function=frame.function if frame else (code.function if code else ""),
        source=frame.source if frame else "",
        explanation=body.explanation,
        hints=body.hints,
        context=body.context,
        wrappers=body.wrappers,
        beneath=_beneath(event),
        called_at=users_call(event.stack, frame.file) if frame is not None else None,
        returned=frame is not None
        and (event.pid, frame.file, frame.function, frame.line) in resumed,
        in_torch=code is not None and origin_of(code.file) == "torch",
        fingerprint=fingerprint(body.gb_type, frame, root),
        # Nearly all sites have one member, and some runs have 100,000 sites.
        **(_of_one(event, body) if len(members) == 1 else _of_all(members)),
    )


def _of_one(event: Event, body: GraphBreak) -> dict[str, Any]:
    """As `_of_all`, of a single member."""
    gave_up = body.frame is not None and body.outcome in _GAVE_UP
    return {
        "count": 1,
        "frames": 1,
        "ranks": (event.rank,),
        "tests": (event.test,) if event.test else (),
        "outcome": body.outcome,
        "gave_up": (body.frame,) if gave_up else (),
        "because": (event.id,),
    }


def _of_all(members: list[tuple[Event, GraphBreak]]) -> dict[str, Any]:
    """What a site has of all its events."""
    gave_up = [body.frame for _, body in members if body.frame and body.outcome in _GAVE_UP]
    outcomes = {body.outcome for _, body in members}
    return {
        "count": len(members),
        "frames": len({body.frame for _, body in members}),
        "ranks": tuple(sorted({event.rank for event, _ in members})),
        "tests": tuple(sorted({event.test for event, _ in members if event.test})),
        "outcome": min(outcomes, key=_WORST_FIRST.index),
        "gave_up": tuple(dict.fromkeys(gave_up)),
        "because": tuple([event.id for event, _ in members]),
    }
