"""Whether a version loses no more than the original did.

A break that nobody saw before is progress where tracing had not come so far; on a line that the
patch wrote, or where tracing had gone by before, it is a loss.

What weighs more is what is paid in each call: a function that runs eagerly, then a break. Compiling
once more for it is a price that may be paid, if the versions are used again: else it goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from compilescope.change.repair.trials.losses import (
    captured_lines,
    compiled_functions,
    count_operators,
    guards_on_data,
    losses_of,
)
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Changes
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.finding import Finding, Toll
from compilescope.knowledge.findings.recompiles import (
    RecompiledFrame,
    RecompileFinding,
    recompile_findings,
    stays_lost,
)
from compilescope.record.bodies import Recompile
from compilescope.record.fix_search import FixCheck, UncoveredBreak
from compilescope.record.run import Run

_ONCE = frozenset(
    f"recompile/{name}"
    for name in ("attribute-presence", "aliasing", "device-change", "dtype-change", "bool-change")
)
"""Causes that have few cases and no more: an attribute is there or not, two names are one tensor or
two, a state moves to the device of its module. Others, sizes and numbers, can go on for ever."""
_EACH_OBJECT = frozenset({"recompile/object-identity", "recompile/object-gone"})
"""Causes that come back with each new object, in every call if each call makes one."""
_LEAST_KEPT = 1 / 3
"""Of the captured operators, where a part is to run eagerly. Chosen: what leaves more of it eager
wins no compilation; a loop that stays outside was often captured turn by turn."""


def check_losses(
    before: CapturedRun,
    after: CapturedRun,
    gone: Collection[str],
    changes: Changes,
    uncovered: Sequence[UncoveredBreak],
    *,
    skips: bool = False,
    less: bool = False,
    once: bool = False,
    prepares: bool = False,
) -> list[FixCheck]:
    """All count checks, the most telling first. `skips`: the version need not run all of it.
    `less`: a part of it may run eagerly. `prepares`: a first call may. `once`: what made a function
    compile again and again may still do so a single time."""
    comparison = _LossComparison(before, after, gone, changes, uncovered, once=once)
    return [
        comparison.gone(),
        comparison.breaks(),
        comparison.recompiles(),
        comparison.guards(),
        comparison.eager(),
        comparison.failures(),
        comparison.operators(skips=skips, less=less, prepares=prepares),
    ]


def certain_failure(
    before: CapturedRun, part: CapturedRun, gone: Collection[str], changes: Changes
) -> FixCheck | None:
    """What fails whatever else happens in a run that goes on: the break is still there, the
    recompile comes more often than before, a function that was compiled has met the limit."""
    stays = {found.fingerprint for found in _certain(before, part)}
    comparison = _LossComparison(before, part, stays & set(gone), changes, ())
    checks = [comparison.gone()]
    if any(frame.cause == "recompile-limit" for frame in part.digest.eager_frames):
        checks.append(comparison.eager())
    return next((check for check in checks if check.verdict == "fail"), None)


def _certain(before: CapturedRun, part: CapturedRun) -> Iterator[Finding]:
    """Of a run that goes on: what is no less of a loss than in the one before, however often it is
    called from here."""
    known = findings(before.digest)
    counts = {found.fingerprint: found.count for found in known}
    # Of a function that was given up, more versions may end just that.
    given_up = {found.fingerprint for found in known if found.toll is Toll.EAGER}
    for found in findings(part.digest):
        if found.fingerprint in given_up:
            continue
        more = found.count > counts.get(found.fingerprint, 0)
        if not isinstance(found, RecompileFinding) or (more and stays_lost(found)):
            yield found


class _LossComparison:
    def __init__(
        self,
        before: CapturedRun,
        after: CapturedRun,
        gone: Collection[str],
        changes: Changes,
        uncovered: Sequence[UncoveredBreak],
        *,
        once: bool = False,
    ) -> None:
        self._before, self._after = before, after
        self._once = once
        self._uncovered = uncovered
        self._gone = set(gone)
        self._changes = changes
        self._old = {found.fingerprint: found for found in findings(before.digest)}
        self._new = {found.fingerprint: found for found in findings(after.digest)}
        self._lines = captured_lines(before.run)
        self._left_behind = [
            site
            for site in before.digest.sites
            if site.fingerprint not in self._new and site.fingerprint not in self._gone
        ]
        self._were = losses_of(before.digest, before.operators, distinct=True)
        self._are = losses_of(after.digest, after.operators, distinct=True)
        self._going_on = _going_on(after.digest)

    @cached_property
    def _left_calls(self) -> set[tuple[str, int | None]]:
        """The lines whose calls led to a break, and no longer do: one that takes the place of all
        of them is where a helper is left to Python."""
        left = [site for site in self._before.digest.sites if site.fingerprint not in self._new]
        return {call for site in left for call in calls_to(site, self._before.run)}

    def gone(self) -> FixCheck:
        left = [self._new[name] for name in self._gone if name in self._new]
        for found in left:
            if not self._is_eased(found):
                # The title comes last: a function that it begins with keeps its case.
                words = f"on line {found.line} there is still: {found.title}"
                return FixCheck("gone", "fail", words)
        if left and self._once:
            return FixCheck("gone", "pass", f"on line {left[0].line} it is compiled once for it")
        if left:
            words = f"`{left[0].function}` no longer runs eagerly, and what is compiled is reused"
            return FixCheck("gone", "pass", words)
        return FixCheck("gone", "pass", "the cause is gone")

    def _is_eased(self, found: Finding) -> bool:
        """Was a function given up for it before, which now has a version for each case?"""
        if self._once and found.count == 1 < self._old[found.fingerprint].count:
            return found.toll is not Toll.EAGER
        return self._old[found.fingerprint].toll is Toll.EAGER and self._is_reused(found)

    def _is_reused(self, found: Finding) -> bool:
        return found.kind == "recompile" and found.fingerprint not in self._going_on

    def breaks(self) -> FixCheck:
        new = [site for site in self._after.digest.sites if site.fingerprint not in self._old]
        for site in new:
            if self._is_where_one_went(site):
                words = f"line {site.line} still breaks the graph, as: {site.gb_type}"
                return FixCheck("breaks", "fail", words)
            reason = self._wrong(site)
            if reason:
                words = f"a new graph break on line {site.line} ({site.gb_type}): {reason}"
                return FixCheck("breaks", "fail", words)
        were, are = self._were, self._are
        if new and are.breaks >= were.breaks and are.operators <= were.operators:
            words = f"the graph break only moves, to line {new[0].line} ({new[0].gb_type})"
            return FixCheck("breaks", "fail", words)
        if are.breaks > were.breaks:
            unexplained = [each for each in self._uncovered if not each.why]
            if unexplained:
                first = unexplained[0]
                words = f"{were.breaks} graph breaks before, {are.breaks} after: nothing shows "
                words += f"that the one on line {first.line} ({first.cause}) was only hidden"
                return FixCheck("breaks", "fail", words)
        if self._uncovered:
            first = self._uncovered[0]
            words = f"{were.breaks} before, {are.breaks} after; newly visible: "
            words += f"line {first.line} ({first.cause})"
            words += f", as {first.why}" if first.why else ""
            more = len(self._uncovered) - 1
            return FixCheck("breaks", "pass", f"{words}, and {more} more" if more else words)
        return FixCheck("breaks", "pass", f"{were.breaks} before, {are.breaks} after")

    def _is_where_one_went(self, site: BreakFinding) -> bool:
        """Does the expression that the patch is about end the graph still, for another reason? What
        is gained then is gained by the other patches that it is tried with."""
        if site.column is None or self._changes.is_new(site.file, site.line):
            return False
        line = self._changes.old_line(site.file, site.line)
        place = (site.file, line, site.column, site.end_column)
        return any(
            (old.file, old.line, old.column, old.end_column) == place
            for old in self._before.digest.sites
            if old.fingerprint in self._gone
        )

    def _wrong(self, site: BreakFinding) -> str:
        """Why a new break counts against the patch; empty where it was only hidden before."""
        if self._changes.is_new(site.file, site.line):
            return "" if self._stays(site) else "the patch wrote that line"
        line = self._changes.old_line(site.file, site.line)
        if line is None:
            return ""
        later = [
            number
            for (file, number), function in self._lines.items()
            if file == site.file and function == site.function and number > line
        ]
        if self._are.breaks < self._were.breaks and (site.file, line) in self._left_calls:
            return ""
        # Lines of which nothing is captured do not show that tracing came by.
        if later and (site.file, line) in self._lines:
            return "tracing got past that line before"
        return ""

    def _stays(self, site: BreakFinding) -> bool:
        """Does it take the place of one that the patch is not about, and are fewer left in all?"""
        fewer = self._are.breaks < self._were.breaks
        return fewer and takes_place_of(site, self._left_behind, self._changes) is not None

    def recompiles(self) -> FixCheck:
        were, are = self._were.avoidable, self._are.avoidable
        found = [each for each in self._new.values() if each.kind == "recompile"]
        new = [each for each in found if each.fingerprint not in self._old]
        kinds = [each.rule_id for each in self._old.values() if each.kind == "recompile"]
        worse = [each for each in found if self._is_worse(each)]
        fresh = [each for each in worse if each in new and each.rule_id not in kinds]
        if fresh:
            words = f"a new cause of recompiles: {fresh[0].title} ({fresh[0].message})"
            return FixCheck("recompiles", "fail", words)
        tied = [e for e in new if e.rule_id in _EACH_OBJECT and not self._is_reused(e)]
        if tied and are > were:
            words = f"each new object needs a graph of its own: {tied[0].title}"
            return FixCheck("recompiles", "fail", words)
        if are > were and (worse or not found):
            words = f"{were} avoidable recompiles before, {are} after"
            return FixCheck("recompiles", "fail", words)
        words = f"{self._were.recompiles} before, {self._are.recompiles} after"
        if are > were:
            words += ": what is compiled is reused, or was eager before"
        elif new:
            words += f"; {new[0].title} is now reported for another function"
        return FixCheck("recompiles", "pass", words)

    def _is_worse(self, found: Finding) -> bool:
        """Is more compiled for it than before, and is that no fair price?"""
        old = self._old.get(found.fingerprint)
        if (old is not None and found.count <= old.count) or self._was_eager(found):
            return False
        less = self._are.every_call < self._were.every_call
        less = less or self._are.avoidable < self._were.avoidable
        return not (less and (_has_few_cases(found) or self._is_reused(found)))

    def _was_eager(self, found: Finding) -> bool:
        """Was the function that recompiles not compiled at all before? By its line: each class of a
        file may have a `forward`."""
        known = compiled_functions(self._before.run)
        if (found.file, found.function) not in {(code.file, code.function) for code in known}:
            return True
        because, given_up = set(found.because), self._before.digest.eager_frames
        again = {
            (body.frame.file, self._changes.old_line(body.frame.file, body.frame.line))
            for event, body in self._after.run.of(Recompile)
            if event.id in because and body.frame is not None
        }
        eager = {(each.file, each.line) for each in given_up if not each.rest_only}
        return bool(again) and again <= eager - {(code.file, code.line) for code in known}

    def guards(self) -> FixCheck:
        """A graph that holds for one number out of a tensor: each other one needs another graph,
        and after the limit there is none."""
        known = set(guards_on_data(self._before.run))
        for guard in guards_on_data(self._after.run):
            if guard not in known:
                words = f"a graph would serve one value alone: its guard is `{guard}`"
                return FixCheck("guards", "fail", words)
        return FixCheck("guards", "pass", "no guard on a value read from data")

    def eager(self) -> FixCheck:
        old = {_name(frame) for frame in self._before.digest.eager_frames}
        whole = {name[:2] for name in old if not name[2]}
        known = {(code.file, code.function) for code in compiled_functions(self._before.run)}
        known |= {(file, function) for (file, _), function in self._lines.items()}
        for frame in self._after.digest.eager_frames:
            name = _name(frame)
            # What was eager as a whole may now be so from some line on.
            if name in old or name[:2] in whole or name[:2] not in known:
                continue
            if frame.rest_only and any(other[:2] == name[:2] for other in old):
                continue
            words = f"`{frame.function}` now runs eagerly: {frame.reason}"
            return FixCheck("eager", "fail", words)
        were, are = self._were.eager, self._are.eager
        return FixCheck("eager", "pass", f"{were} eager fallbacks before, {are} after")

    def failures(self) -> FixCheck:
        for name, found in self._new.items():
            if found.kind == "failure" and name not in self._old:
                return FixCheck(
                    "failures", "fail", f"a new failure: {found.title}: {found.message}"
                )
        return FixCheck(
            "failures", "pass", f"{self._were.failures} before, {self._are.failures} after"
        )

    def operators(self, *, skips: bool, less: bool, prepares: bool) -> FixCheck:
        were, are = self._were.operators, self._are.operators
        words = f"{were} operators captured before, {are} after"
        if less and not are:
            return FixCheck("operators", "fail", f"{words}: nothing is compiled")
        if are >= were:
            return FixCheck("operators", "pass", words)
        if less:
            own, left = (
                count_operators(each.run, need_graph=True) for each in (self._before, self._after)
            )
            kept = left >= own * _LEAST_KEPT
            words += ": enough of them" if kept else ": too few are left to be a gain"
            return FixCheck("operators", "pass" if kept else "fail", words)
        if skips and are and not (self._are.breaks or self._are.eager or self._are.failures):
            # All that runs is in graphs, so what is missing there does not run.
            return FixCheck("operators", "pass", f"{words}: the others do not run anymore")
        now = captured_lines(self._after.run)
        if prepares and are and self._runs_whole(now):
            words += ": the others are those of a first call"
            return FixCheck("operators", "pass", words)
        mended = {
            (found.file, found.line)
            for name, found in self._old.items()
            if name in self._gone or (found.kind == "break" and name not in self._new)
        }
        mended |= self._changes.left_alone()
        # What broke there may well have to stay outside of any graph, and Python adds numbers as
        # fast as a graph does.
        lines = captured_lines(self._before.run, newest=True, but=mended, numbers=False)
        for (file, line), function in lines.items():
            if (file, line) in mended:
                continue
            new = self._changes.new_line(file, line)
            # What is under `if not torch.compiler.is_compiling()` now was put there on purpose.
            if self._changes.is_wrapped(file, line):
                continue
            if new is not None and (file, new) not in now:
                words += f"; nothing on line {new} in {function} is captured anymore"
                return FixCheck("operators", "fail", words)
        if not now and self._lines:
            return FixCheck("operators", "fail", words)
        return FixCheck("operators", "pass", f"{words}: only on lines that the patch replaces")

    def _runs_whole(self, now: dict[tuple[str, int], str]) -> bool:
        """Does all that was compiled run in graphs alone? Then no call but those that are not
        compiled does anything else."""
        if self._are.breaks or self._are.eager or self._are.failures:
            return False
        known = {(code.file, code.function) for code in compiled_functions(self._after.run)}
        known |= {(file, function) for (file, _), function in now.items()}
        return all(
            (code.file, code.function) in known for code in compiled_functions(self._before.run)
        )


def calls_to(site: BreakFinding, run: Run) -> set[tuple[str, int | None]]:
    """Where it was called from, by file and line."""
    stacks = [event.stack[:-1] for event in run.events_with(site.because)]
    return {(frame.file, frame.line) for stack in stacks for frame in stack}


def takes_place_of(
    site: BreakFinding, gone: Collection[BreakFinding], changes: Changes
) -> BreakFinding | None:
    """The break that was there before a patch wrote the line anew: what stays a break in another
    form, a condition that is read in a function of its own."""
    if not changes.is_new(site.file, site.line):
        return None
    return next(
        (
            old
            for old in gone
            if (old.file, old.function) == (site.file, site.function)
            and changes.new_line(old.file, old.line) is None
        ),
        None,
    )


def _going_on(digest: Digest) -> set[str]:
    """The causes, by fingerprint, for which a function may be compiled again and again."""
    return {
        found.fingerprint
        for frame in digest.recompiles
        for found in recompile_findings(frame, digest.root)
        if not (found.needed or _is_reused(frame, found))
    }


def _is_reused(frame: RecompiledFrame, found: RecompileFinding) -> bool:
    """The evidence that it has come to an end: no version was there for a single call, and then
    there were more calls that compiled nothing than versions."""
    if frame.limit_hit or found.replaced or found.calls_after is None:
        return False
    return found.calls_after > frame.count


def _has_few_cases(found: Finding) -> bool:
    """Also a bool that was read between two graphs."""
    if isinstance(found, RecompileFinding) and found.guard_kind in ("TRUE_MATCH", "FALSE_MATCH"):
        return True
    return found.rule_id in _ONCE


def _name(frame: EagerFinding) -> tuple[str, str, bool]:
    return frame.file, frame.function, frame.rest_only
