"""The judgement on anybody's change: does the program do the same, and does it lose more?

The checks are those of a fix's trial, but none ends it: what changed weighs more than what is lost,
and both are told. A change that cannot be judged is unknown, never verified.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compilescope.base.processes.outcome import last_words
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.loss_checks import check_losses
from compilescope.change.repair.trials.losses import (
    captured_lines,
    compiled_functions,
    losses_of,
)
from compilescope.change.repair.trials.printed_output import compare_output
from compilescope.change.repair.trials.recorded_runs import CapturedRun, ReplayedRun
from compilescope.change.repair.trials.varying_text import without_varying
from compilescope.change.repair.trials.verifier import VersionTrial, uncovered_breaks
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.repair.verification.changed_lines import (
    ChangedCode,
    ChangedStatement,
    Ran,
    changed_code,
    lines_to_watch,
    places_of,
)
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.fix_search import (
    ChangedCause,
    ChangeVerdict,
    CountedTwice,
    FixCheck,
    Losses,
    Times,
)

_COUNTED = ("breaks", "recompiles", "eager", "failures", "graphs", "operators")
_MORE_EAGER = 0.1
"""Share of the operators that run. Chosen: the two ways of counting differ by single operators
where a change writes the same in others; a function that is no longer compiled shows as more."""
_MOST_SAID = 160
"""Letters of a program's last line. Chosen: it is one clause of a sentence."""
_MOST_PLACES = 6
"""Of lines that did not run. Chosen: what one sentence bears."""


@dataclass
class ComparedChange:
    """What came of comparing."""

    verdict: ChangeVerdict = "unknown"
    reason: str = ""
    checks: list[FixCheck] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    share: tuple[float | None, float | None] = (None, None)
    new: list[ChangedCause] = field(default_factory=list)
    uncovered: list[ChangedCause] = field(default_factory=list)
    gone: list[ChangedCause] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    """The findings behind `new`."""
    before: CapturedRun | None = None
    after: CapturedRun | None = None


class ChangeComparison:
    """Two versions under way."""

    def __init__(
        self,
        bench: Workbench,
        before: Version,
        after: Version,
        baseline: TrialBaseline | None = None,
    ) -> None:
        """`baseline`: of the first version, where several are held against it; its replays note
        the lines that the bench was told to watch."""
        self._bench = bench
        self._version = after
        self._changes = changes_between(before, after)
        self.code: ChangedCode = changed_code(self._changes)
        bench.thorough = True
        if baseline is None:
            bench.watched[before.key] = lines_to_watch(self.code.old)
        bench.watched[after.key] = lines_to_watch(self.code.new)
        self._is_shared = baseline is not None
        self._baseline = baseline or TrialBaseline(bench, before)
        self.result = ComparedChange()

    def run_both(self) -> str:
        """Each once, in a fresh process; held against a shared baseline, as that was run. Why
        nothing can be compared; empty where something can."""
        result, bench = self.result, self._bench
        fresh, light = not self._is_shared, self._baseline.light
        seen = self._baseline.captured if self._is_shared else None
        if seen is None:
            seen = bench.watch(self._baseline.version, fresh=True)
            self._baseline = TrialBaseline(bench, self._baseline.version, seen)
        result.before = seen
        if seen.timed_out:
            return f"the program did not finish within {bench.limit_s:g} s"
        if seen.exit_status < 0:
            return f"the program itself is killed by signal {-seen.exit_status}"
        result.after = bench.watch(self._version, fresh=fresh, light=light)
        self._trial = VersionTrial(bench, self._baseline, self._version, frozenset())
        self._trial.changes = self._changes
        self._trial.after = result.after
        return ""

    def compare_end(self) -> None:
        """How it ends alone."""
        assert self.result.after is not None
        self._trial.checks.append(self._exit_check(self.result.after))

    def _exit_check(self, after: CapturedRun) -> FixCheck:
        """A fix has to mend what cannot be compiled; anybody's change may leave it as it is."""
        before = self._baseline.captured
        fails = self._baseline.failed_to_compile and bool(after.digest.failures)
        if fails and after.exit_status == before.exit_status:
            return FixCheck("exit", "pass", "neither version can be compiled")
        return self._trial.exit_check(after)

    def compare_behavior(self) -> None:
        """How it ends, what it prints, and what its compiled regions give."""
        after = self.result.after
        assert after is not None
        trial, baseline = self._trial, self._baseline
        ended = self._exit_check(after)
        trial.checks.append(ended)
        if ended.verdict == "pass" and after.exit_status == baseline.exit_status:
            trial.checks.append(trial.output_check(after))
        elif ended.verdict == "fail" and not after.digest.graphs and not baseline.unsteady("exit"):
            return  # It ended before anything was compiled: there is nothing to replay.
        if baseline.failed_to_compile:
            trial.notes.append(
                "the original fails to compile: it was compared with what it does eagerly"
            )
        probed = baseline.probed
        if probed.calls or probed.collective:
            trial.compare_values(by_anyone=True)
        elif after.digest.graphs or (self.result.before and self.result.before.digest.graphs):
            trial.notes.append("no compiled region could be called again")

    def count_operators(self) -> None:
        """Which share of them runs eagerly, in calls of what the original compiles."""
        if not self._baseline.probed.calls:
            return
        shares = []
        for version in (self._baseline.version, self._version):
            shares.append(self._bench.eager_share(version))
        self.result.share = (shares[0], shares[1])

    # The verdict

    def judge(self, *, behavior_compared: bool = True) -> None:
        result, trial = self.result, self._trial
        assert result.before is not None and result.after is not None
        self._compare_causes(result.before, result.after)
        lost = list(self._lost(result.before, result.after))
        behavior = [self._steadied(check) for check in trial.checks]
        result.checks = [*behavior, *lost]
        result.inputs = list(dict.fromkeys(trial.inputs))
        failed = [check for check in behavior if check.verdict == "fail"]
        # What a region gives names the input; what is printed follows from it.
        failed.sort(key=lambda check: check.name == "output")
        unknown = [check.words for check in behavior if check.verdict == "unknown"]
        if behavior_compared:
            unknown += self._unseen() if not unknown else []
            self._tell_compared(behavior)
        if failed:
            result.verdict, result.reason = "changed", failed[0].words
        elif unknown:
            result.verdict, result.reason = "unknown", unknown[0]
        elif any(check.verdict == "fail" for check in lost):
            worst = next(check for check in lost if check.verdict == "fail")
            unsteady = self._baseline.unsteady(worst.name)
            result.verdict = "unknown" if unsteady else "worse"
            result.reason = unsteady or worst.words
        else:
            result.verdict, result.reason = "verified", ""

    def _steadied(self, check: FixCheck) -> FixCheck:
        unsteady = self._baseline.unsteady(check.name) if check.verdict == "fail" else ""
        return FixCheck(check.name, "unknown", unsteady) if unsteady else check

    def _unseen(self) -> Iterator[str]:
        """Why all checks may pass though nothing was seen of the change."""
        result, code = self.result, self.code
        assert result.before is not None and result.after is not None
        after = result.after
        if after.exit_status and b"Traceback (most recent call last)" in after.stderr:
            last = " ".join(last_words(after.stderr).split())[:_MOST_SAID]
            yield f"the program fails in both versions ({last})"
            return
        old, new = self._baseline.stdout, after.stdout
        varies = old != new and compare_output(old, new).verdict != "pass"
        unsteady = self._baseline.unsteady("output") if varies else ""
        if unsteady:
            # A number that differs in each run could hide what the change does to it.
            yield unsteady
            return
        silent = not (self._has_steady_output() if varies else old.strip())
        ran = self.ran_statements()
        inside = [each for each, within in ran if within]
        told = [each for each in (*code.old, *code.new) if not each.is_import]
        if told and not any(each in told for each, _ in ran):
            yield f"the program runs none of the changed lines ({self._listed(told)})"
        elif not self._baseline.probed.calls and silent:
            yield "the program compiles nothing that was called and prints nothing to compare"
        elif silent and not inside and not all(each.is_about_compiling for each, _ in ran):
            yield (
                "the changed lines run outside of compiled code, and the program prints nothing "
                "that would show what they do"
            )

    def _has_steady_output(self) -> bool:
        """Beside times and made-up names, which differ from run to run and are not compared?"""
        outputs = (self._baseline.stdout, self._baseline.captured_again.stdout)
        if outputs[0] != outputs[1]:
            self._trial.notes.append(
                "parts of the output that differ between runs of the original, such as times and "
                "names"
            )
        texts = [output.decode(errors="replace").splitlines() for output in outputs]
        left = without_varying(texts)[0]
        return any(each.isalnum() for line in left for each in line.replace("<...>", ""))

    # What was compared, and what was not

    def ran_statements(self) -> list[tuple[ChangedStatement, bool]]:
        """Those that ran, and whether in compiled code."""
        found = []
        for side, statements in enumerate((self.code.old, self.code.new)):
            lines = self.lines_run(side)
            found += [(each, each.ran_inside(lines)) for each in statements if each.ran(lines)]
        return found

    def lines_run(self, side: int) -> Ran:
        """Seen in the eager run of a version, or in the graphs that were captured of it."""
        probed: ReplayedRun = self._baseline.probed
        captured = self.result.before
        if side:
            light = self._baseline.light
            probed = self._bench.probe(self._version, compiled=True, like=probed, light=light)
            captured = self.result.after
        lines = dict(probed.lines)
        if captured is not None:
            lines |= dict.fromkeys(captured_lines(captured.run), True)
        return lines

    def _tell_compared(self, behavior: Sequence[FixCheck]) -> None:
        result, trial, baseline = self.result, self._trial, self._baseline
        probed = baseline.probed
        calls: Counter[str] = Counter(call["name"] for call in probed.calls)
        replayed = any(check.name == "values" for check in behavior) or trial.inputs
        if calls and replayed:
            train = any(replay["train"] for call in probed.calls for replay in call["replays"])
            kinds = len(set(trial.inputs))
            for name, number in calls.items():
                result.compared.append(
                    f"`{name}`: {number} recorded call{'s' * (number > 1)}, eager and compiled"
                )
            if kinds:
                result.compared.append(
                    f"equal on {kinds} kind{'s' * (kinds > 1)} of inputs: results, changed "
                    "arguments, module state"
                    + (", gradients" if train else "; no result requires a gradient")
                )
        for check in behavior:
            if check.name == "output" and check.verdict != "unknown":
                lines = len(baseline.stdout.splitlines())
                printed = f"{lines} line{'s' * (lines != 1)} of output" if lines else "no output"
                result.compared.append(
                    f"the program: {printed}, exit status {baseline.exit_status}"
                )
        result.compared += self._lines_told()
        result.not_compared += [_sentence(each) for each in dict.fromkeys(trial.notes)]
        result.not_compared += baseline.not_compared
        if not probed.calls:
            result.not_compared.append(
                "Results of functions: nothing compiled was called, so output and exit status are "
                "all that was compared."
            )
        result.not_compared.append("Files, stderr and whatever else the program leaves behind.")
        files = "the same inputs, files, environment and seed"
        result.not_compared.append(
            f"Anything beyond these runs: both versions ran with {files}; code that looks at the "
            "time, a file or a variable can behave differently elsewhere."
        )

    def _lines_told(self) -> Iterator[str]:
        code = self.code
        if code.is_empty:
            yield "no changed statement: comments, blank lines or docstrings alone"
            return
        every = [*code.old, *code.new]
        ran = self.ran_statements()
        inside = sum(within for _, within in ran)
        where = f"{inside} in compiled code" if inside else "none of them in compiled code"
        yield f"changed statements: {len(ran)} of {len(every)} ran" + (f", {where}" if ran else "")
        missed = [each for each in every if each not in [one for one, _ in ran]]
        if missed and ran:
            self.result.not_compared.append(
                f"Changed lines that did not run: {self._listed(missed)}."
            )
        configures = all(each.is_about_compiling for each, _ in ran)
        if ran and not (inside or configures) and self._baseline.probed.calls:
            self.result.not_compared.append(
                "What the changed lines do outside of compiled code: output, exit status and the "
                "inputs of compiled functions are all that shows it."
            )

    def _listed(self, statements: Sequence[ChangedStatement]) -> str:
        old = [each for each in statements if each in self.code.old]
        new = [each for each in statements if each not in old]
        places = places_of(new)
        places += [f"{each} (old)" for each in places_of(old)] if not new else []
        shown = ", ".join(places[:_MOST_PLACES])
        return shown + (f" and {len(places) - _MOST_PLACES} more" if places[_MOST_PLACES:] else "")

    # What is lost

    def _compare_causes(self, before: CapturedRun, after: CapturedRun) -> None:
        """A function may have moved, and a line may be written anew: what has the same rule takes
        the place of what is gone."""
        old = {each.fingerprint: each for each in findings(before.digest)}
        new = {each.fingerprint: each for each in findings(after.digest)}
        gone = [each for name, each in old.items() if name not in new]
        come = [each for name, each in new.items() if name not in old]
        for same in (_kind_and_source, _kind_and_rule):
            for each in list(come):
                other = next((one for one in gone if same(one) == same(each)), None)
                if other is not None:
                    gone.remove(other)
                    come.remove(each)
        hidden = {
            (each.file, each.line): each.why
            for each in uncovered_breaks(before, after, self._changes)
        }
        known = {(code.file, code.function) for code in compiled_functions(before.run)}
        known |= {(file, name) for (file, _), name in captured_lines(before.run).items()}
        for each in come:
            why = hidden.get((each.file, each.line), "") if each.kind == "break" else ""
            if each.kind in ("recompile", "eager") and (each.file, each.function) not in known:
                why = f"`{each.function}` was not compiled before" if gone else ""
            if why and self._is_untouched(each):
                self.result.uncovered.append(_cause(each, why))
            else:
                self.result.new.append(_cause(each))
                self.result.found.append(each)
        self.result.gone = [_cause(each) for each in gone]

    def _is_untouched(self, found: Finding) -> bool:
        """Is its line in the first version too? What a change writes was never hidden."""
        return not self._changes.is_new(found.file, found.line)

    def _lost(self, before: CapturedRun, after: CapturedRun) -> Iterator[FixCheck]:
        names = {"break": "graph break", "eager": "eager function", "failure": "failure"}
        for each in self.result.new:
            what = names.get(each.kind, each.kind)
            at = f"{os.path.basename(each.file)}:{each.line}" if each.file else "the program"
            yield FixCheck("causes", "fail", f"a new {what} at {at}: {each.title}")
        uncovered = uncovered_breaks(before, after, self._changes)
        for check in check_losses(before, after, (), self._changes, uncovered):
            if check.name in ("recompiles", "guards"):
                yield check
        were, are = (losses_of(each.digest, each.operators) for each in (before, after))
        if were.operators and not are.operators:
            yield FixCheck("operators", "fail", "nothing is compiled anymore")
        old, new = self.result.share
        if old is not None and new is not None:
            words = f"{old:.0%} of the operators ran eagerly before, {new:.0%} after"
            more = new > old + _MORE_EAGER
            yield FixCheck("share", "fail" if more else "pass", words)


def counted(
    before: Sequence[CapturedRun], after: Sequence[CapturedRun]
) -> tuple[CountedTwice, ...]:
    """The least and the most of all runs of each version."""
    sides = [
        [losses_of(run.digest, run.operators, distinct=True) for run in runs]
        for runs in (before, after)
    ]
    if not all(sides):
        return ()
    return tuple(
        CountedTwice(name, _ends(sides[0], name), _ends(sides[1], name)) for name in _COUNTED
    )


def _ends(losses: Sequence[Losses], name: str) -> tuple[int, int]:
    found = [getattr(each, name) for each in losses]
    return min(found), max(found)


def is_slower(times: Times | None) -> bool:
    return times is not None and times.slower is True


def _kind_and_source(found: Finding) -> tuple[str, str, str]:
    return found.kind, found.rule_id, found.source.strip()


def _kind_and_rule(found: Finding) -> tuple[str, str]:
    return found.kind, found.rule_id


def _cause(found: Finding, why: str = "") -> ChangedCause:
    return ChangedCause(
        kind=found.kind,
        rule=found.rule_id,
        title=found.title,
        file=found.file,
        line=found.line,
        function=found.function,
        source=found.source.strip(),
        fingerprint=found.fingerprint,
        why=why,
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
