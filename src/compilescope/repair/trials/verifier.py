"""The verdict on a version: does it do what the program did, and lose less?

Verified is only what passed every check; what could not be checked is unverified, never passed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compilescope.fixes.patch import Allowance
from compilescope.model.fix_search import FixCheck, FixVerdict, Losses, UncoveredBreak
from compilescope.processes.outcome import last_words
from compilescope.repair.trials.baseline import TrialBaseline
from compilescope.repair.trials.changes import Changes, changes_between
from compilescope.repair.trials.loss_checks import check_losses
from compilescope.repair.trials.losses import losses_of
from compilescope.repair.trials.printed_output import compare_output, differs_in_numbers
from compilescope.repair.trials.uncovered import uncovered_breaks
from compilescope.repair.trials.value_checks import compare_values
from compilescope.repair.trials.verification import Verification
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import CapturedRun
from compilescope.repair.trials.workbench import Workbench

_OF_RUNS = (
    *("gone", "breaks", "recompiles", "guards", "eager", "failures", "operators"),
    *("exit", "output"),
)
"""Checks of what was seen under capture; the others are of replays."""
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
    trial = _Trial(bench, before, version, patch_allows)
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
        watched=after,
    )


def confirm(
    bench: Workbench,
    before: TrialBaseline,
    version: Version,
    *,
    gone: Collection[str],
    patch_allows: frozenset[Allowance] = frozenset(),
    states: str = "",
) -> Verification:
    """Look again at a version that was proven in forks of a warm process, in a fresh one. If that
    shows anything else, everything is proven anew in fresh processes: their word counts."""
    trial = _Trial(bench, before, version, patch_allows)
    trial.changes = changes_between(before.version, version)
    verdict, reason = trial.look(gone, bench.watch(version, fresh=True)) or ("verified", states)
    if verdict != "verified":
        bench.cool("a fresh process behaved differently")
        anew = TrialBaseline(bench, before.version)
        return verify(bench, anew, version, gone=gone, patch_allows=patch_allows, states=states)
    assert trial.after is not None
    after = losses_of(trial.after.digest, trial.after.operators, distinct=True)
    checks = tuple(trial.checks)
    return Verification(
        verdict=verdict,
        reason=reason,
        checks=checks,
        before=before.counts,
        after=after,
        uncovered=trial.uncovered,
        watched=trial.after,
    )


class _Trial:
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
        found = self.look(gone, self._bench.watch(self._version))
        if found is not None:
            return found
        self._compare_values()
        return self._verdict() or ("verified", "")

    def look(self, gone: Collection[str], after: CapturedRun) -> tuple[FixVerdict, str] | None:
        """What a run of it shows, without any replays; None: nothing is wrong."""
        self.after = after
        self.uncovered = uncovered_breaks(self._before.watched, after, self.changes)
        # How it ended comes first: what a run lost that broke off says nothing.
        self.checks += [self._exit(after)]
        self.checks += check_losses(self._before.watched, after, gone, self.changes, self.uncovered)
        found = self._verdict()
        if found is not None:
            return found
        self.checks.append(self._output(after))
        return self._verdict()

    def _verdict(self) -> tuple[FixVerdict, str] | None:
        """What the checks so far come to; None: nothing is wrong."""
        failed = [check for check in self.checks if check.verdict == "fail"]
        if failed:
            # Only what the original never does itself counts against a version.
            before, name = self._before, failed[0].name
            unsteady = ""
            if all(check.name != "gone" for check in failed):
                unsteady = before.unsteady_run if name in _OF_RUNS else before.unsteady_values
            if unsteady:
                return "unverified", unsteady
            return "rejected", failed[0].words
        unknown = [check for check in self.checks if check.verdict == "unknown"]
        return ("unverified", unknown[0].words) if unknown else None

    def _exit(self, after: CapturedRun) -> FixCheck:
        if after.timed_out:
            words = f"it did not finish within {self._bench.limit_s:g} s"
            return FixCheck("exit", "fail", words)
        wanted = self._before.exit_status
        if after.exit_status != wanted:
            return FixCheck("exit", "fail", _ending(after, wanted))
        return FixCheck("exit", "pass", f"status {wanted}")

    def _output(self, after: CapturedRun) -> FixCheck:
        before = self._before
        printed = compare_output(before.stdout, after.stdout, self._allows)
        if printed.verdict == "fail" and differs_in_numbers(before.stdout, after.stdout):
            # Numbers may move as far as compiling the original moves them, and from run to run.
            others = [before.probed.stdout, before.watched_again.stdout]
            printed = compare_output(before.stdout, after.stdout, self._allows, others)
        return FixCheck("output", printed.verdict, printed.words)

    def _compare_values(self) -> None:
        found = compare_values(self._bench, self._before, self._version, self.changes, self._allows)
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
