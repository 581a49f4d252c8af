"""Frames that run eagerly, as a whole or from a break to their end, and why."""

from __future__ import annotations

import msgspec

from compilescope.knowledge.findings.finding import Finding, Toll
from compilescope.record.bodies import FrameSkipped, GraphBreak
from compilescope.record.body import FindingKind
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of, shown_code


class EagerFinding(Finding, frozen=True, kw_only=True):
    """A function, or the rest of one, that Dynamo gave up."""

    reason: str
    cause: str
    gb_id: str | None
    rest_only: bool
    """True where the part before the break is compiled."""
    may_hide_breaks: bool
    """Dynamo stopped looking: what comes after the break was never traced."""
    is_call: bool = False
    """The place is the user's call: what runs eagerly is torch's own function that it calls."""

    @property
    def kind(self) -> FindingKind:
        return "eager"

    @property
    def toll(self) -> Toll:
        return Toll.EAGER

    @property
    def rule_id(self) -> str:
        return f"eager/{self.cause}"

    @property
    def title(self) -> str:
        about = f"what {self.function} calls" if self.is_call else self.function
        return f"{about} runs eagerly"

    @property
    def message(self) -> str:
        return self.reason

    @property
    def events(self) -> int:
        """As JSON and Python users know `count`."""
        return self.count


class _FrameGroup(msgspec.Struct):
    reason: str
    cause: str
    gb_id: str | None
    hides: bool
    ids: list[str]
    ranks: set[int]


_HIDING = ("graph-break", "generator")


def eager_frames(run: Run) -> list[EagerFinding]:
    """Frames lost for a reason that is known and not harmless. The standard library's own functions
    hold no code of the user's: what they call is compiled by itself."""
    groups: dict[tuple[str, int, str, str, bool, bool], _FrameGroup] = {}

    def add(code: CodeRef, rest: bool, entry: _FrameGroup) -> None:
        if origin_of(code.file) == "stdlib":
            return
        key = (code.file, code.line, code.function, entry.reason, rest, code.is_call)
        group = groups.setdefault(key, entry)
        if group is not entry:
            group.ids += entry.ids
            group.ranks |= entry.ranks

    skipped = set()
    for event, body in run.of(FrameSkipped):
        if body.cause in ("harmless", "unexplained"):
            continue
        if body.because:
            skipped.add(body.because)
        reason = "recompile limit" if body.cause == "recompile-limit" else body.reason
        entry = _FrameGroup(
            reason, body.cause, body.gb_id, body.cause in _HIDING, [event.id], {event.rank}
        )
        add(shown_code(body.frame, event.stack), body.frame.resumed, entry)
    for event, broken in run.of(GraphBreak):
        if broken.frame is None or broken.outcome not in ("frame-eager", "rest-eager"):
            continue
        rest = broken.outcome == "rest-eager" or broken.frame.resumed
        # Where torch reports the skipped frame too, that report stands for both.
        if event.id not in skipped:
            entry = _FrameGroup(
                broken.gb_type, "graph-break", broken.gb_id, True, [event.id], {event.rank}
            )
            add(shown_code(broken.frame, event.stack), rest, entry)
    return [
        EagerFinding(
            file=file,
            line=line,
            function=function,
            reason=reason,
            cause=group.cause,
            gb_id=group.gb_id,
            rest_only=rest,
            may_hide_breaks=group.hides,
            is_call=is_call,
            count=len(group.ids),
            ranks=tuple(sorted(group.ranks)),
            because=tuple(group.ids),
            fingerprint=fingerprint(
                f"eager {group.cause}", Frame(file, line, function), run.header.root
            ),
        )
        for (file, line, function, reason, rest, is_call), group in groups.items()
    ]


class UnexplainedSkip(msgspec.Struct, frozen=True):
    """A frame that torch skipped without saying why."""

    file: str
    line: int
    function: str
    reason: str


def unexplained_skips(run: Run) -> list[UnexplainedSkip]:
    return list(
        dict.fromkeys(
            UnexplainedSkip(body.frame.file, body.frame.line, body.frame.function, body.reason)
            for _, body in run.of(FrameSkipped)
            if body.cause == "unexplained"
        )
    )
