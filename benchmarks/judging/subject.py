"""A program as the judge's original: recorded once, then held against each change of it.

What is asked is what `verify` asks, in forks of a warm process and without Inductor. Eager replays
come first: where they differ, `verify` says that it is changed, whatever else it finds. All of it
is asked where they do not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from compilescope.base.errors import ToolError
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.value_checks import compare_values
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.repair.verification.changed_lines import changed_code, lines_to_watch
from compilescope.change.repair.verification.comparison import ChangeComparison
from compilescope.instrument.recorder.target import Target
from judging.case import ROOT, Answer, Case, Finished, Judged, Kind, LeftOut, cases_of
from judging.mutants import draw

_LIMIT_S = 300.0
"""Of the program itself."""
_LIMIT_TIMES, _LEAST_LIMIT_S = 12.0, 30.0
"""So many times as long may a changed one take. Chosen: a loop without end is to cost little."""
_OF_HEAVY = 2
"""So many of a program whose replays take as long. Chosen: one of them costs as much as twenty."""


class LeftOutError(Exception):
    """Nothing can be held against this program."""


class JudgedSubject:
    """One program."""

    def __init__(self, subject: str, warm: WarmParent) -> None:
        self._subject = subject
        self._file = str(ROOT / subject)
        self._text = (ROOT / subject).read_text(encoding="utf-8")
        try:
            target = Target("script", (self._file,))
            self._bench = Workbench(target, warm=warm, limit_s=_LIMIT_S)
        except ToolError as error:
            raise LeftOutError(str(error)) from None
        self._bench.thorough = True
        every = set(range(1, self._text.count("\n") + 2))
        self._bench.watched[Version().key] = {self._file: every}
        self._baseline = TrialBaseline(self._bench, light=True)

    def __enter__(self) -> JudgedSubject:
        return self

    def __exit__(self, *_: object) -> None:
        self._bench.close()

    def record(self) -> None:
        """Run it once for each question; raises where it cannot be judged."""
        baseline = self._baseline
        reason = baseline.unusable
        if not reason and not baseline.probed.calls:
            reason = "nothing that it compiles is called"
        if not reason:
            reason = next(
                (check.words for check in baseline.replayable.checks if check.verdict != "pass"), ""
            )
        reason = reason or baseline.unsteady_values
        if reason:
            raise LeftOutError(reason)
        self.seconds = max(self._bench.watch_s, self._bench.probe_s)
        self._bench.limit_s = max(_LIMIT_TIMES * self.seconds, _LEAST_LIMIT_S)

    def drawn(self, kind: Kind, number: int, seed: int, heavy_s: float) -> list[Case]:
        """Changes of what is compiled, of what makes its modules, and of what never runs: what only
        the program around it does is its input."""
        lines = self._baseline.probed.lines
        number = min(number, _OF_HEAVY) if self.seconds > heavy_s else number
        found = {
            case.change: case
            for case in cases_of(self._subject, kind)
            if lines.get((self._file, case.change.line), True) or "." in case.change.function
        }
        return [found[each] for each in draw(list(found), number, f"{seed} {self._subject}")]

    def judged(self, case: Case) -> Judged:
        begun = time.monotonic()
        version = Version({self._file: case.change.text})
        verdict, reason, ran = self._judged(version)
        change = case.change
        return Judged(
            key=case.key,
            subject=case.subject,
            kind=case.kind,
            operator=change.operator,
            line=change.line,
            function=change.function,
            old=change.old,
            new=change.new,
            verdict=verdict,
            reason=reason,
            ran=ran,
            seconds=round(time.monotonic() - begun, 3),
        )

    def _judged(self, version: Version) -> tuple[str, str, bool]:
        bench, baseline = self._bench, self._baseline
        changes = changes_between(baseline.version, version)
        bench.watched[version.key] = lines_to_watch(changed_code(changes).new)
        found = compare_values(
            bench,
            baseline,
            version,
            changes,
            frozenset(),
            light=True,
            by_anyone=True,
            compiled=False,
        )
        failed = [check for check in found.checks if check.verdict == "fail"]
        if failed:
            return "changed", failed[0].words, True
        comparison = ChangeComparison(bench, baseline.version, version, baseline)
        reason = comparison.run_both()
        if reason:
            return "unknown", reason, True
        comparison.compare_behavior()
        comparison.judge()
        ran = bool(comparison.ran_statements()) or comparison.code.is_empty
        return comparison.result.verdict, comparison.result.reason, ran


def judge_subject(
    subject: str,
    warm: WarmParent,
    kinds: Sequence[tuple[Kind, int]],
    seed: int,
    known: frozenset[str],
    heavy_s: float,
) -> Iterator[Answer]:
    """So many of each kind, but for those that are known."""
    os.chdir(ROOT)
    try:
        with JudgedSubject(subject, warm) as judge:
            judge.record()
            for kind, number in kinds:
                for case in judge.drawn(kind, number, seed, heavy_s):
                    if case.key not in known:
                        yield judge.judged(case)
        yield Finished(subject, asked_of(kinds, seed))
    except LeftOutError as error:
        yield LeftOut(subject, str(error))


def asked_of(kinds: Sequence[tuple[Kind, int]], seed: int) -> str:
    return " ".join([*(f"{number} {kind}" for kind, number in kinds), f"seed {seed}"])
