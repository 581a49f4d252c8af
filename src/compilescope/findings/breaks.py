"""Break sites: one entry for each (root cause, place), however often and from wherever it hit."""

from __future__ import annotations

import msgspec

from compilescope.findings.advice import Advice
from compilescope.findings.remedy import Remedy
from compilescope.model.bodies import GraphBreak
from compilescope.model.event import Event
from compilescope.model.fingerprint import fingerprint
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, origin_of


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the user's code at which Dynamo had to stop."""

    gb_id: str | None
    gb_type: str
    file: str
    line: int
    column: int | None
    end_column: int | None
    """On `end_line`."""
    end_line: int | None = None
    """The line that the expression ends on."""
    function: str
    source: str
    explanation: str
    hints: tuple[str, ...]
    context: str
    """PyTorch's own debug context."""
    wrappers: tuple[str, ...]
    """What was reported around the root cause."""
    events: int
    """How often it was reported: recompiles, resume functions and other callers repeat it."""
    frames: int
    """In how many code objects."""
    ranks: tuple[int, ...]
    tests: tuple[str, ...]
    outcome: str
    """The worst that followed: `frame-eager`, `rest-eager` or `resumed`."""
    gave_up: tuple[CodeRef, ...]
    """The functions that run eagerly because of it."""
    in_torch: bool
    """The function that was being compiled is torch's own."""
    fingerprint: str
    because: tuple[str, ...]
    """Ids of the events behind it."""
    category: str = ""
    """Of the registry's taxonomy."""
    rule: str | None = None
    """The rule that explains it; None where only its category does."""
    why: str = ""
    remedy: tuple[Remedy, ...] = ()
    """What a person can do by hand; `advice` says what to do first."""
    advice: tuple[Advice, ...] = ()
    """Best first. Empty until the fixes were asked."""
    consequence_of: str | None = None
    """Fingerprint of the earlier break that this one is an echo of."""
    lost_ms: float | None = None
    """Time lost outside compiled graphs because of it; None where nothing was timed."""
    retrace_seconds: float | None = None
    """Compile time of the tracing that it threw away; None where that was not told."""


_WORST_FIRST = ("frame-eager", "rest-eager", "resumed", "unknown")


def break_sites(run: Run) -> list[Site]:
    """In order of appearance."""
    groups: dict[tuple[object, ...], list[tuple[Event, GraphBreak]]] = {}
    for event, body in run.of(GraphBreak):
        groups.setdefault(site_key(event, body), []).append((event, body))
    return [_site(members, run.header.root) for members in groups.values()]


def site_key(event: Event, body: GraphBreak) -> tuple[object, ...]:
    """Breaks of one site share it."""
    frame = event.site
    place = (frame.file, frame.line, frame.column) if frame else (body.frame,)
    return (body.gb_type, *place)


def _site(members: list[tuple[Event, GraphBreak]], root: str) -> Site:
    event, body = members[0]
    frame = event.site
    code = body.frame
    outcomes = {member.outcome for _, member in members}
    return Site(
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
        events=len(members),
        frames=len({member.frame for _, member in members}),
        ranks=tuple(sorted({member.rank for member, _ in members})),
        tests=tuple(sorted({member.test for member, _ in members if member.test})),
        outcome=next(outcome for outcome in _WORST_FIRST if outcome in outcomes),
        gave_up=tuple(
            dict.fromkeys(
                member.frame
                for _, member in members
                if member.frame and member.outcome in ("frame-eager", "rest-eager")
            )
        ),
        in_torch=code is not None and origin_of(code.file) == "torch",
        fingerprint=fingerprint(body.gb_type, frame, root),
        because=tuple(member.id for member, _ in members),
    )
