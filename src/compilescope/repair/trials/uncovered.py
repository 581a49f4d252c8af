"""Graph breaks that only a version shows: each with what hid it in the original.

Where a graph breaks inside a loop or a `with`, Dynamo gives up the function and all that follows in
it runs eagerly: what would break there is seen only once the first break is gone. After other
breaks Dynamo goes on at the next line: what breaks there now and did not before was not hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from compilescope.findings.breaks import BreakFinding
from compilescope.model.bodies import GraphBreak
from compilescope.model.fix_search import UncoveredBreak
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame
from compilescope.repair.trials.changes import Changes
from compilescope.repair.trials.losses import captured_lines, compiled_functions
from compilescope.repair.trials.watched import CapturedRun

_Function = tuple[str, str]
"""Its file and name."""


def uncovered_breaks(
    before: CapturedRun, after: CapturedRun, changes: Changes
) -> tuple[UncoveredBreak, ...]:
    """In the order in which the version met them."""
    return tuple(_Before(before, after, changes).uncovered())


class _Before:
    """What the original showed, for breaks that only the version has."""

    def __init__(self, before: CapturedRun, after: CapturedRun, changes: Changes) -> None:
        self._after, self._changes = after, changes
        self._old = {site.fingerprint for site in before.digest.sites}
        left = {site.fingerprint for site in after.digest.sites}
        self._gone = [site for site in before.digest.sites if site.fingerprint not in left]
        self._traced = {(code.file, code.function) for code in compiled_functions(before.run)}
        self._traced |= {(file, name) for (file, _), name in captured_lines(before.run).items()}

    def uncovered(self) -> Iterator[UncoveredBreak]:
        stacks = _stacks(self._after.run)
        for site in {each.fingerprint: each for each in self._after.digest.sites}.values():
            if site.fingerprint not in self._old:
                stack = stacks.get(site.because[0], ()) if site.because else ()
                yield UncoveredBreak(
                    file=site.file,
                    line=site.line,
                    function=site.function,
                    source=site.source.strip(),
                    rule=site.rule or site.rule_id,
                    cause=site.title,
                    why=self._why(site, stack),
                )

    def _why(self, site: BreakFinding, stack: tuple[Frame, ...]) -> str:
        """Empty where nothing tells why it was not seen before."""
        for gone in self._gone:
            if (gone.file, gone.line) == (site.file, self._old_line(site)):
                return f"the same line broke before for another reason: {gone.title}"
        for gone in self._gone:
            given_up = _given_up(gone, stack, site)
            if given_up:
                return f"{given_up} was not traced: {_place(gone)} broke the graph there"
        if (site.file, site.function) not in self._traced:
            return f"{site.function} was not traced before"
        return ""

    def _old_line(self, site: BreakFinding) -> int | None:
        return self._changes.old_line(site.file, site.line)


def _stacks(run: Run) -> dict[str, tuple[Frame, ...]]:
    """By the id of the break's event."""
    return {event.id: event.stack for event, _ in run.of(GraphBreak)}


def _given_up(gone: BreakFinding, stack: tuple[Frame, ...], site: BreakFinding) -> str:
    """The function that ran eagerly because of a break that is gone, and that this one is in."""
    inside: set[_Function] = {(frame.file, frame.function) for frame in stack}
    inside.add((site.file, site.function))
    return next((_name(code) for code in gone.gave_up if (code.file, code.function) in inside), "")


def _name(code: CodeRef) -> str:
    return f"the rest of {code.function}" if code.resumed else code.function


def _place(site: BreakFinding) -> str:
    return f"{os.path.basename(site.file)}:{site.line}"
