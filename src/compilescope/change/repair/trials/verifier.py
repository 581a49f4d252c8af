"""The verdict on a version: does it do what the program did, and lose less? And how long do the two
take?

Verified is only what passed every check; what could not be checked is unverified, never passed.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from compilescope.base.processes.outcome import last_words
from compilescope.change.fixes.patch import Allowance, dims_joined, fields_read
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.loss_checks import (
    calls_to,
    certain_failure,
    check_losses,
    takes_place_of,
)
from compilescope.change.repair.trials.losses import (
    captured_lines,
    compiled_functions,
    losses_of,
)
from compilescope.change.repair.trials.printed_output import compare_output, numbers_are_near
from compilescope.change.repair.trials.recorded_runs import CapturedRun, Verification
from compilescope.change.repair.trials.value_checks import compare_values
from compilescope.change.repair.trials.version import Changes, Version, changes_between
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.record.bodies import GraphBreak, RegionTime
from compilescope.record.fix_search import (
    FixCheck,
    FixVerdict,
    Losses,
    Spread,
    Timed,
    Times,
    UncoveredBreak,
)
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

_Function = tuple[str, str]
"""Its file and name."""
_MOST_SAID = 160
"""Letters of a program's last line. Chosen: it is one clause of a sentence."""


def verify(
    bench: Workbench,
    before: TrialBaseline,
    version: Version,
    *,
    gone: Collection[str],
    patch_allows: frozenset[Allowance] = frozenset(),
    states: str = "",
    changed: Mapping[str, Collection[int]] | None = None,
) -> Verification:
    """Try a version in fresh processes. `gone` are the fingerprints that must vanish, `changed`
    the lines of the new texts that a patch touched (by file), beside those that differ."""
    trial = VersionTrial(bench, before, version, patch_allows)
    trial.changes = changes_between(before.version, version, changed)
    verdict, reason = trial.judge(gone)
    after = trial.after
    return Verification(
        verdict=verdict,
        reason=reason or (states if verdict == "verified" else ""),
        checks=tuple(trial.checks),
        before=before.counts,
        after=losses_of(after.digest, after.operators, distinct=True) if after else Losses(),
        notes=tuple(dict.fromkeys(trial.notes)),
        inputs=tuple(dict.fromkeys(trial.inputs)),
        uncovered=trial.uncovered,
        not_compared=tuple(before.not_compared) if verdict == "verified" else (),
        captured=after,
    )


def confirm(
    bench: Workbench,
    before: TrialBaseline,
    version: Version,
    *,
    gone: Collection[str],
    patch_allows: frozenset[Allowance] = frozenset(),
    states: str = "",
    replayed: bool = True,
) -> Verification:
    """Look again at a version that was proven in forks of a warm process, in a fresh one. If that
    shows anything else, everything is proven anew in fresh processes: their word counts.
    `replayed`: its values were compared as `before` has them, and need not be again."""
    trial = VersionTrial(bench, before, version, patch_allows)
    trial.changes = changes_between(before.version, version)
    verdict, reason = trial.look(gone, bench.watch(version, fresh=True)) or ("verified", states)
    if verdict != "verified":
        bench.cool("a fresh process behaved differently")
        anew = TrialBaseline(bench, before.version)
        return verify(bench, anew, version, gone=gone, patch_allows=patch_allows, states=states)
    if not replayed:
        trial.compare_values()
        verdict, reason = trial.verdict() or (verdict, reason)
    assert trial.after is not None
    after = losses_of(trial.after.digest, trial.after.operators, distinct=True)
    checks = tuple(trial.checks)
    return Verification(
        verdict=verdict,
        reason=reason,
        checks=checks,
        before=before.counts,
        after=after,
        notes=tuple(trial.notes),
        uncovered=trial.uncovered,
        captured=trial.after,
    )


class VersionTrial:
    """One version under way."""

    def __init__(
        self,
        bench: Workbench,
        before: TrialBaseline,
        version: Version,
        allows: frozenset[Allowance],
    ) -> None:
        self._bench = bench
        self._before = before
        self._version = version
        self._allows = allows
        self.changes = Changes()
        self.checks: list[FixCheck] = []
        self.notes: list[str] = []
        self.inputs: list[str] = []
        self.after: CapturedRun | None = None
        self.uncovered: tuple[UncoveredBreak, ...] = ()

    def judge(self, gone: Collection[str]) -> tuple[FixVerdict, str]:
        if self._before.unusable:
            return "unverified", self._before.unusable
        seen = self._bench.watch(
            self._version,
            light=self._before.light,
            enough=lambda part: self._failure(gone, part),
        )
        found = self._glance(gone, seen) if seen.is_part else self.look(gone, seen)
        if found is not None:
            return found
        self.compare_values()
        return self.verdict() or ("verified", "")

    def _glance(self, gone: Collection[str], part: CapturedRun) -> tuple[FixVerdict, str] | None:
        """At a run that was ended for what it had shown."""
        self.after = part
        self.checks += filter(None, [self._failure(gone, part)])
        return self.verdict()

    def _failure(self, gone: Collection[str], part: CapturedRun) -> FixCheck | None:
        return certain_failure(self._before.captured, part, gone, self.changes)

    def look(self, gone: Collection[str], after: CapturedRun) -> tuple[FixVerdict, str] | None:
        """What a run of it shows, without any replays; None: nothing is wrong."""
        self.after = after
        self.uncovered = uncovered_breaks(self._before.captured, after, self.changes)
        # How it ended comes first: what a run lost that broke off says nothing.
        self.checks += [self.exit_check(after)]
        self.checks += check_losses(
            self._before.captured,
            after,
            gone,
            self.changes,
            self.uncovered,
            skips=fields_read(self._allows) is not None,
            less="compiles-less" in self._allows,
            once=bool(dims_joined(self._allows)),  # An empty list, and one that is not.
            prepares="prepares-eagerly" in self._allows,
        )
        found = self.verdict()
        if found is not None:
            return found
        self.checks.append(self.output_check(after))
        return self.verdict()

    def verdict(self) -> tuple[FixVerdict, str] | None:
        """What the checks so far come to; None: nothing is wrong."""
        failed = [check for check in self.checks if check.verdict == "fail"]
        if failed:
            certain = any(check.name == "gone" for check in failed)
            unsteady = "" if certain else self._before.unsteady(failed[0].name)
            if unsteady:
                return "unverified", unsteady
            return "rejected", failed[0].words
        unknown = [check for check in self.checks if check.verdict == "unknown"]
        return ("unverified", unknown[0].words) if unknown else None

    def exit_check(self, after: CapturedRun) -> FixCheck:
        if after.timed_out:
            words = f"it did not finish within {self._bench.limit_s:g} s"
            return FixCheck("exit", "fail", words)
        wanted = self._before.exit_status
        if after.exit_status != wanted:
            return FixCheck("exit", "fail", _ending(after, wanted))
        return FixCheck("exit", "pass", f"status {wanted}")

    def output_check(self, after: CapturedRun) -> FixCheck:
        before = self._before
        printed = compare_output(before.stdout, after.stdout, self._allows)
        if printed.verdict == "fail":
            # Numbers may move as far as compiling the original moves them, and from run to run;
            # times are what they are.
            others = [before.values.probed.stdout, before.captured_again.stdout]
            printed = compare_output(before.stdout, after.stdout, self._allows, others)
        if printed.verdict == "fail" and self._prints_the_same_eagerly(after):
            self.notes.append(f"compiled, {printed.words}; eagerly both versions print the same")
            return FixCheck("output", "pass", self.notes[-1])
        return FixCheck("output", printed.verdict, printed.words)

    def _prints_the_same_eagerly(self, after: CapturedRun) -> bool:
        """Where numbers differ alone, and little: what is fused with what decides how they are
        rounded, and a training loop makes much of little. Replays tell whether a graph is wrong."""
        wanted = self._before.values.probed
        if not numbers_are_near(self._before.stdout, after.stdout):
            return False
        light = self._before.light
        found = self._bench.probe(self._version, compiled=True, like=wanted, light=light)
        same = compare_output(wanted.stdout, found.stdout, self._allows).verdict == "pass"
        return same and found.exit_status == wanted.exit_status

    def compare_values(self, *, by_anyone: bool = False) -> None:
        before, changes = self._before.values, self.changes
        if before is not self._before:
            changes = changes_between(before.version, self._version)
        found = compare_values(
            self._bench,
            before,
            self._version,
            changes,
            self._allows,
            light=self._before.light,
            by_anyone=by_anyone,
        )
        self.checks += found.checks
        self.notes += found.notes
        self.inputs += found.inputs


def _ending(after: CapturedRun, wanted: int) -> str:
    """How it ends and the original does not: one clause, with what it said last."""
    last = " ".join(last_words(after.stderr).split())[:_MOST_SAID]
    if after.exit_status < 0:
        return f"it is killed by signal {-after.exit_status}"
    if not after.exit_status:
        return f"it exits with status 0, the original with {wanted}"
    crashed = b"Traceback (most recent call last)" in after.stderr
    how = "it crashes" if crashed and after.exit_status == 1 else ""
    how = how or f"it exits with status {after.exit_status}"
    return f"{how}: {last}" if last else how


# Graph breaks that only a version shows: each with what hid it in the original.
#
# Where a graph breaks inside a loop or a `with`, Dynamo gives up the function and all that follows
# in it runs eagerly: what would break there is seen only once the first break is gone. After other
# breaks Dynamo goes on at the next line: what breaks there now and did not before was not hidden.


def uncovered_breaks(
    before: CapturedRun, after: CapturedRun, changes: Changes
) -> tuple[UncoveredBreak, ...]:
    """In the order in which the version met them."""
    return tuple(_Before(before, after, changes).uncovered())


class _Before:
    """What the original showed, for breaks that only the version has."""

    def __init__(self, before: CapturedRun, after: CapturedRun, changes: Changes) -> None:
        self._run, self._after, self._changes = before.run, after, changes
        self._old = {site.fingerprint for site in before.digest.sites}
        left = {site.fingerprint for site in after.digest.sites}
        self._gone = [site for site in before.digest.sites if site.fingerprint not in left]
        self._traced = {(code.file, code.function) for code in compiled_functions(before.run)}
        self._traced |= {(file, name) for (file, _), name in captured_lines(before.run).items()}

    def uncovered(self) -> Iterator[UncoveredBreak]:
        stacks = _stacks(self._after.run)
        for site in {each.fingerprint: each for each in self._after.digest.sites}.values():
            stays = takes_place_of(site, self._gone, self._changes) is not None
            if site.fingerprint not in self._old and not stays:
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
            return f"`{site.function}` was not traced before"
        for gone in self._gone:
            if (site.file, self._old_line(site)) in calls_to(gone, self._run):
                return f"what it calls broke before: {gone.title}"
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


NEVER_WARM = "no compiled region is called again after it is compiled"


def measure(
    bench: Workbench,
    before: Version,
    after: Version,
    *,
    rounds: int = 3,
    cold: int = 2,
    seen: tuple[list[CapturedRun], list[CapturedRun]] | None = None,
) -> Times:
    """Both by turns. First calls and whole runs are timed in the `cold` first rounds, with empty
    caches for what is compiled; the others time warm calls alone, of code that is in a cache.
    `seen` gets the runs."""
    if bench.moves(before) or bench.moves(after):
        return _weighed(bench, before, after, rounds)
    seen = seen if seen is not None else ([], [])
    with ExitStack() as caches:
        environments: list[dict[str, str]] = [{}, {}]
        for number in range(rounds):
            for side, version in enumerate((before, after)):
                if number < cold:
                    cache = tempfile.TemporaryDirectory(prefix="compilescope-")
                    environments[side] = {"TORCHINDUCTOR_CACHE_DIR": caches.enter_context(cache)}
                run = bench.watch(version, timed=True, environment=environments[side])
                if run.timed_out:
                    return Times(reason=f"it did not finish within {bench.limit_s:g} s")
                seen[side].append(run)
            if not _another_round_tells(*seen):
                break
    old, new = (_timed(runs, cold) for runs in seen)
    reason = ""
    if old.steady is None or new.steady is None:
        reason = NEVER_WARM
    return Times(old, new, reason, imports=bool(bench.cold))


def _weighed(bench: Workbench, before: Version, after: Version, rounds: int) -> Times:
    """By calls of what the files on disk compile, by turns; of nothing else."""
    warm: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as opened:
        folders = [
            opened.enter_context(tempfile.TemporaryDirectory(prefix="compilescope-")) for _ in warm
        ]
        for _ in range(rounds):
            for side, version in enumerate((before, after)):
                found = bench.weigh(version, caches=Path(folders[side]))
                if found is not None and found.warm_s is not None:
                    warm[side].append(found.warm_s)
    old, new = (Timed(steady=spread(each)) for each in warm)
    reason = NEVER_WARM if old.steady is None or new.steady is None else ""
    return Times(old, new, reason, imports=bool(bench.cold))


def _another_round_tells(before: Sequence[CapturedRun], after: Sequence[CapturedRun]) -> bool:
    """Not where no call is warm, nor where warm calls of both take as long: what two rounds leave
    open, no third one settles."""
    old, new = (spread(_known(_steady_s, runs)) for runs in (before, after))
    if old is None and new is None:
        return False
    overlap = old is not None and new is not None and old.low <= new.high and new.low <= old.high
    return len(before) < 2 or not overlap


def _timed(runs: Sequence[CapturedRun], cold: int) -> Timed:
    return Timed(
        steady=spread(_known(_steady_s, runs)),
        first=spread(_known(_warmup_s, runs[:cold])),
        whole=spread([run.seconds for run in runs[:cold]]),
    )


def _known(
    seconds: Callable[[CapturedRun], float | None], runs: Sequence[CapturedRun]
) -> list[float]:
    return [s for s in map(seconds, runs) if s is not None]


def _steady_s(run: CapturedRun) -> float | None:
    """A warm call of each region, summed."""
    calls: dict[object, list[int]] = {}
    for _, body in run.run.of(RegionTime):
        total = calls.setdefault(body.region, [0, 0])
        total[0] += body.calls
        total[1] += body.total_ns
    warm = [ns / count / 1e9 for count, ns in calls.values() if count]
    return sum(warm) if warm else None


def _warmup_s(run: CapturedRun) -> float | None:
    """All calls during which something was compiled."""
    times = [body.warmup_ns for _, body in run.run.of(RegionTime) if body.warmup_calls]
    return sum(times) / 1e9 if times else None


def spread(seconds: list[float]) -> Spread | None:
    """None of none."""
    if not seconds:
        return None
    return Spread(statistics.median(seconds), min(seconds), max(seconds), len(seconds))
