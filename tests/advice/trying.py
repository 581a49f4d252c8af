"""Takes the first advice of every finding of a program, applies its diff and runs the result."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from advice.comparing import as_stated, difference, names_difference, steady, without_first_calls
from advice.running import Program, Ran, WarmProcess
from compilescope.change.fixes.advice import advised
from compilescope.change.fixes.catalogue import fixes_for
from compilescope.change.fixes.diffs import patch_diff
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program as ProgramVersion
from compilescope.change.fixes.subject import subjects_of
from compilescope.change.repair.trials.printed_output import compare_output
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.remedy import Advice
from compilescope.knowledge.source.refusals import Refused

Result = Literal[
    "held", "no diff", "cause stays", "results differ", "crash", "patch does not apply"
]
RESULTS: tuple[Result, ...] = (
    "held",
    "no diff",
    "cause stays",
    "results differ",
    "crash",
    "patch does not apply",
)
_KINDS = ("break", "recompile", "failure")


@dataclass(frozen=True)
class Tried:
    """What came of the first advice for one finding."""

    program: str
    corpus: str
    kind: str
    rule: str
    """`print-call`, `category/explicit` where only its category is known, `recompile/int-change`,
    `failure/BackendCompilerFailed`."""
    gb_id: str
    place: str
    title: str
    own: bool
    """In a file of the program, not of an installed package."""
    advice: Advice
    result: Result
    words: str = ""
    """What went wrong, or why there is no diff."""
    stated: str = ""
    """What the fix says that a user could see change."""

    @property
    def label(self) -> str:
        return f"{self.corpus}/{self.program} {self.place} {self.rule}"


@dataclass
class Trial:
    """One program: its own run, and the versions that its advice makes of it."""

    warm: WarmProcess
    program: Program
    _versions: dict[str, _Version | str] = field(default_factory=dict)

    @cached_property
    def original(self) -> _Version:
        folder = self.warm.place()
        self.program.write(folder)
        return _Version(self.warm, self.program, folder)

    def tried(self) -> list[Tried]:
        before = self.original
        if before.captured.timed_out:
            raise RuntimeError(f"{self.program.name} runs for too long")
        return [self._try(finding) for finding in before.findings]

    def _try(self, finding: Finding) -> Tried:
        first = finding.advice[0] if finding.advice else Advice(None, "by hand", "", "")
        result, words, stated = self._outcome(finding, first)
        return Tried(
            program=self.program.name,
            corpus=self.program.corpus,
            kind=finding.kind,
            rule=_rule_of(finding),
            gb_id=finding.rule_id if finding.rule_id.startswith("GB") else "",
            place=f"{Path(finding.file).name}:{finding.line}",
            title=finding.title,
            own=finding.own,
            advice=first,
            result=result,
            words=words,
            stated=stated,
        )

    def _outcome(self, finding: Finding, first: Advice) -> tuple[Result, str, str]:
        if not first.diff:
            return "no diff", first.text, ""
        after = self._patched(first.diff)
        if isinstance(after, str):
            return "patch does not apply", after, ""
        patch = self._patch_behind(finding, first)
        stated = patch.states if patch is not None else ""
        before = self.original
        words = _crash(before, after, finding.kind)
        if words:
            return "crash", words, stated
        words = _still_there(before, after, finding)
        if words:
            return "cause stays", words, stated
        words = _other_results(before, after, finding.kind, patch)
        if words:
            return "results differ", words, stated
        more = _uncovered(before, after)
        return "held", f"uncovers {_told(more)}" if more else "", stated

    def _patched(self, diff: str) -> _Version | str:
        """The version that a diff makes; the words of `patch` where it does not apply."""
        if diff not in self._versions:
            folder = self.warm.place()
            self.program.write(folder)
            script = folder / self.program.script
            done = subprocess.run(
                ["patch", "-p1", "-F0", "--no-backup-if-mismatch"],
                input=diff.encode(),
                cwd=script.parent,
                capture_output=True,
                check=False,
            )
            version: _Version | str = _Version(self.warm, self.program, folder)
            if done.returncode:
                version = (done.stdout + done.stderr).decode(errors="replace").strip()
                shutil.rmtree(folder)
            self._versions[diff] = version
        return self._versions[diff]

    def _patch_behind(self, finding: Finding, first: Advice) -> Patch | None:
        """The proposal itself, for what it says that may differ."""
        before = self.original
        main = str(before.folder / self.program.script)
        own = finding.fingerprint
        subjects = subjects_of(ProgramVersion(before.captured.run, before.digest, main))
        # Its own first; a value that a break brought has the advice of the break.
        for subject in sorted(subjects, key=lambda each: each.finding.fingerprint != own):
            for fix in fixes_for(subject):
                if fix.id != first.fix:
                    continue
                with contextlib.suppress(Refused):
                    patch = fix.propose(subject)
                    if patch_diff(subject, patch) == first.diff:
                        return patch
        return None


@dataclass
class _Version:
    """One version of a program, run as often as is asked for."""

    warm: WarmProcess
    program: Program
    folder: Path

    @cached_property
    def captured(self) -> Ran:
        return self.warm.run(self.program, self.folder, "capture")

    @cached_property
    def digest(self) -> Digest:
        run = self.captured.run
        return advised(run, digest(run))

    @cached_property
    def findings(self) -> list[Finding]:
        """Every cause; what an earlier break only left behind is none."""
        found = findings(self.digest)
        return [each for each in found if each.kind in _KINDS and each.level != "note"]

    @cached_property
    def eager(self) -> Ran:
        return self.warm.run(self.program, self.folder, "eager")

    @cached_property
    def steady_values(self) -> dict[str, Any] | None:
        """What two eager runs agree on. The second one is made when it is asked for."""
        again = self.warm.run(self.program, self.folder, "eager").values
        if self.eager.values is None or again is None:
            return None
        return steady(self.eager.values, again)

    @cached_property
    def compiled(self) -> Ran:
        return self.warm.run(self.program, self.folder, "compiled")

    def returned(self, functions: Collection[str]) -> dict[str, Any]:
        """What these give in eager mode."""
        ran = self.warm.run(self.program, self.folder, "eager", functions)
        return ran.values or {"calls": [], "names": {}}


def _rule_of(finding: Finding) -> str:
    if isinstance(finding, BreakFinding):
        return finding.rule or f"category/{finding.category or 'none'}"
    if isinstance(finding, FailureFinding):
        return f"failure/{finding.rule or finding.category or finding.error}"
    return finding.rule_id


def _crash(before: _Version, after: _Version, kind: str) -> str:
    """Of the patched program, where the original does not end so."""
    truth = before.eager if kind == "failure" else before.captured
    for how, ran in (("compiled", after.captured), ("eager", after.eager)):
        if ran.timed_out:
            return f"{how}, it runs for too long"
        if ran.status not in (truth.status, before.eager.status):
            told = ran.error or ran.stderr.strip().rpartition("\n")[2]
            return f"{how}, it ends with {ran.status} instead of {truth.status}: {told}"[:400]
    if kind == "failure" and after.captured.status != before.eager.status:
        return f"it ends with {after.captured.status}, in eager mode with {before.eager.status}"
    return ""


def _key(finding: Finding) -> tuple[str, str, str]:
    subject = finding.title
    if finding.kind == "break" and finding.column is not None:
        subject = finding.source[finding.column : finding.end_column]
    return (finding.kind, finding.rule_id, subject)


def _still_there(before: _Version, after: _Version, finding: Finding) -> str:
    """The cause itself, or others of its kind in its place."""
    left = [each for each in after.findings if each.fingerprint == finding.fingerprint]
    if left:
        return f"still at line {left[0].line}"
    old, new = Counter(map(_key, before.findings)), Counter(map(_key, after.findings))
    if new[_key(finding)] >= old[_key(finding)]:
        return "the same, elsewhere: " + _told(
            each for each in after.findings if _key(each) == _key(finding)
        )
    written = [each for each in _uncovered(before, after) if each.kind == finding.kind]
    written = [each for each in written if not _stood_there(before, each)]
    if _recompiles(after) < _recompiles(before):
        # A bool has two cases and no more: a number had any.
        written = [each for each in written if each.rule_id != "recompile/bool-change"]
    if written:
        return "in its place: " + _told(written)
    for kind in {finding.kind, "failure"}:
        counts = [sum(each.kind == kind for each in one.findings) for one in (before, after)]
        if counts[1] > counts[0]:
            fresh = (each for each in _uncovered(before, after) if each.kind == kind)
            return f"{counts[0]} of kind {kind} became {counts[1]}: " + _told(fresh)
    if len(after.findings) > len(before.findings):
        return "more in its place: " + _told(_uncovered(before, after))
    return ""


def _recompiles(version: _Version) -> int:
    return sum(frame.count for frame in version.digest.recompiles)


def _uncovered(before: _Version, after: _Version) -> list[Finding]:
    """What the original did not get as far as: with a break gone, a number in the rest of the
    function is compiled for the first time."""
    known = {each.fingerprint for each in before.findings}
    return [each for each in after.findings if each.fingerprint not in known]


def _stood_there(before: _Version, finding: Finding) -> bool:
    """Is its line one of the original's, and not one that the patch wrote?"""
    name = Path(finding.file).name
    texts = [path.read_text() for path in before.folder.rglob(name)]
    lines = {line.strip() for text in texts for line in text.splitlines()}
    return not texts or finding.source.strip() in lines


def _told(found: Iterable[Finding]) -> str:
    return "; ".join(f"line {each.line}: {each.title}" for each in found)[:300]


def _other_results(before: _Version, after: _Version, kind: str, patch: Patch | None) -> str:
    allows = patch.allows if patch is not None else frozenset()
    truth = before.eager if kind == "failure" else before.captured
    others = (before.captured.stdout, before.eager.stdout)
    if "other-random-numbers" not in allows:
        for how, old, ran in (
            ("compiled", truth, after.captured),
            ("eager", before.eager, after.eager),
        ):
            told = compare_output(old.stdout, ran.stdout, allows, others)
            if told.verdict == "fail":
                return f"{how}: {told.words}"
    stated = patch is not None and bool(patch.states)
    other_numbers = "other-random-numbers" in allows
    return _other_values(before, after, other_numbers, stated=stated) or _other_returns(
        before, after, other_numbers, prepares="prepares-eagerly" in allows
    )


def _other_values(before: _Version, after: _Version, other_numbers: bool, *, stated: bool) -> str:
    if before.eager.values is None:
        return ""
    for how, ran in (("eager", after.eager), ("compiled", after.compiled)):
        if ran.values is None:
            return f"{how}: its values could not be kept"
        values = as_stated(before.eager.values, ran.values) if stated else ran.values
        words = _parted(before.eager.values, values, other_numbers)
        truth = before.steady_values if words else None
        if words and truth is not None:
            words = _parted(truth, values, other_numbers)
            if words and how == "compiled" and before.compiled.values is not None:
                # Compiling itself may make a difference, to the original as well.
                mine = steady(before.compiled.values, truth)
                words = _parted(mine, values, other_numbers)
        if words:
            return f"{how}: {words}"
    return ""


def _parted(old: dict[str, Any], new: dict[str, Any], other_numbers: bool) -> str:
    """A change may move a part out of a region, or one region into two: then the calls are not
    the same ones, and what the program and its functions make of them counts."""
    same_calls = _regions(old) == _regions(new)
    compare = difference if same_calls else names_difference
    return compare(old, new, other_numbers=other_numbers)


def _regions(values: dict[str, Any]) -> Counter[str]:
    return Counter(call["region"] for call in values["calls"])


def _other_returns(
    before: _Version, after: _Version, other_numbers: bool, *, prepares: bool
) -> str:
    """Where the regions are others: do the functions that were compiled return the same?"""
    old, new = before.eager.values, after.eager.values
    if old is None or new is None or _regions(old) == _regions(new):
        return ""
    functions = _regions(old).keys()
    truth, found = before.returned(functions), after.returned(functions)
    if prepares:
        found = without_first_calls(truth, found)
    if difference(truth, found, other_numbers=other_numbers):
        truth = steady(truth, before.returned(functions))
    words = difference(truth, found, other_numbers=other_numbers)
    return f"eager, in its functions: {words}" if words else ""
