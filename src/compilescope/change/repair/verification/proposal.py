"""The judgement on a patch that nobody vouches for: one that a language model wrote.

Its author cannot be asked, and may have been told by a text in the program to do anything. So it is
held to more than a change of the user's own: it brings in nothing that could tell being watched
from not (`admission`), all of it was seen at work (`seen_code`), and it gives the same on more
inputs: other sizes, other numbers beside the arguments, values around the numbers that it writes.
And it wins something. What cannot be told is a rejection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from compilescope.base.errors import ToolError
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.repair.verification.admission import refusal
from compilescope.change.repair.verification.comparison import ChangeComparison
from compilescope.change.repair.verification.seen_code import (
    noted_lines,
    numbers_in,
    one_sided,
    unseen_statement,
    unseen_tie,
)
from compilescope.change.repair.verification.unified_diff import (
    FilePatch,
    apply_hunks,
    read_diff,
    stripped,
)
from compilescope.knowledge.analysis.findings import findings
from compilescope.record.body import Verdict
from compilescope.record.fix_search import FixCheck, FixVerdict

_MOST_FILES = 20
"""Of one patch. Chosen: far above what mends one cause."""


_MOST_NUMBERS = 8
"""Of one patch. Chosen: of each, inputs are made; among many, one could hide."""


class PatchRejected(Exception):
    """A diff is not even tried; the words say why, in a clause."""


@dataclass(frozen=True)
class JudgedPatch:
    """What came of a proposal."""

    verification: Verification
    version: Version
    compared: tuple[str, ...] = ()
    """What the verdict rests on, in sentences."""
    not_compared: tuple[str, ...] = ()


def patched_texts(diff: str, texts: Mapping[str, str], folder: str) -> dict[str, str]:
    """The new texts of the files that a diff changes. `texts`: by path, the files that it may
    change; `folder`: where its names start. Raises `PatchRejected` for whatever else it does."""
    try:
        patches = read_diff(diff.encode("utf-8", "replace"), "the patch")
    except ToolError as error:
        raise PatchRejected(_clause(error)) from None
    if len(patches) > _MOST_FILES:
        raise PatchRejected(f"it changes {len(patches)} files")
    found: dict[str, str] = {}
    for patch in patches:
        path = _path_of(patch, diff, texts, folder)
        text = found.get(path, texts[path])
        try:
            made = apply_hunks(text.replace("\r\n", "\n"), patch, os.path.basename(path))
        except ToolError as error:
            raise PatchRejected(_clause(error)) from None
        found[path] = made.replace("\n", "\r\n") if "\r\n" in text else made
    changed = {path: text for path, text in found.items() if text != texts[path]}
    if not changed:
        raise PatchRejected("it changes nothing")
    return changed


def _clause(error: ToolError) -> str:
    words = str(error).rstrip(".")
    return words[:1].lower() + words[1:]


_MODES = ("old mode ", "new mode ", "rename ", "copy ", "new file ", "deleted file ", "similarity ")


def _path_of(patch: FilePatch, diff: str, texts: Mapping[str, str], folder: str) -> str:
    """One of the program's own files, there before and after."""
    name = patch.name
    if patch.is_binary:
        raise PatchRejected(f"it changes {name} as a binary file")
    if any(line.startswith(_MODES) for line in diff.splitlines()):
        raise PatchRejected("it changes the mode or the name of a file, or makes or deletes one")
    if patch.old is None or patch.new is None:
        raise PatchRejected(f"it {'makes' if patch.old is None else 'deletes'} {name}")
    for each in (patch.old, patch.new):
        if os.path.isabs(each) or ".." in each.split("/") or "\\" in each or "\0" in each:
            raise PatchRejected(f"it changes {each}, which is no file of the program")
    paths = []
    for levels in (1, 0):
        pair = [os.path.join(folder, stripped(each, levels)) for each in (patch.old, patch.new)]
        both = [os.path.normpath(each) for each in pair]
        if both[0] in texts and both[0] == both[1]:
            paths.append(both[0])
    if not paths:
        raise PatchRejected(f"it changes {name}, which is no file that it may change")
    return paths[0]


@dataclass
class ProposalJudge:
    """Tries patches on one version of a program; what that does is run once for all of them."""

    bench: Workbench
    """Of its own: it is wary from now on."""
    before: Version
    texts: Mapping[str, str]
    """All files of the user's in that version, by path: what the patches may change."""
    light: bool = False
    _baseline: TrialBaseline | None = field(default=None, repr=False)

    @property
    def baseline(self) -> TrialBaseline:
        if self._baseline is None:
            bench = self.bench
            bench.thorough = bench.wary = True
            every = {path: range(1, text.count("\n") + 2) for path, text in self.texts.items()}
            bench.watched[self.before.key] = every
            self._baseline = TrialBaseline(bench, self.before, light=self.light)
        return self._baseline

    def judge(
        self,
        texts: Mapping[str, str],
        gone: Collection[str],
        gains: Callable[[Verification], bool] = lambda _: True,
    ) -> JudgedPatch:
        """`gone`: the fingerprints of causes that must vanish; `gains`: does it win something?"""
        version = Version(
            {**self.before.files, **texts}, self.before.environment, self.before.absent
        )
        words = refusal(self.texts, texts)
        if words:
            return self._rejected(version, FixCheck("admission", "fail", words))
        if self.baseline.unusable:
            return self._rejected(version, FixCheck("program", "unknown", self.baseline.unusable))
        return self._tried(version, gone, gains)

    def _rejected(self, version: Version, check: FixCheck) -> JudgedPatch:
        verdict: FixVerdict = "rejected" if check.verdict == "fail" else "unverified"
        return JudgedPatch(
            Verification(
                verdict=verdict,
                reason=check.words,
                checks=(check,),
            ),
            version,
        )

    def _tried(
        self, version: Version, gone: Collection[str], gains: Callable[[Verification], bool]
    ) -> JudgedPatch:
        comparison = ChangeComparison(self.bench, self.before, version, self.baseline)
        result = comparison.result
        words = comparison.run_both()
        if words:
            return self._rejected(version, FixCheck("program", "unknown", words))
        after = result.after
        assert after is not None
        lost = losses_of(after.digest, after.operators, distinct=True)
        found = Verification(
            verdict="verified", before=self.baseline.counts, after=lost, captured=after
        )
        left = {each.fingerprint for each in findings(after.digest)} & set(gone)
        ended = (after.exit_status, after.timed_out) == (self.baseline.exit_status, False)
        if ended and (left or not gains(found)):
            words = "the cause is still there" if left else "it wins nothing: as much is lost"
            return self._told(comparison, found, FixCheck("gone", "fail", words), version)
        comparison.compare_behavior()
        comparison.count_operators()
        comparison.judge()
        failed = _failed(comparison)
        if failed is None:
            failed = self._unseen(comparison, version)
        return self._told(comparison, found, failed, version)

    def _unseen(self, comparison: ChangeComparison, version: Version) -> FixCheck | None:
        """What of the change no comparison showed; and once more on inputs made of its numbers."""
        changes = changes_between(self.before, version)
        code = comparison.code
        noted = noted_lines(changes)
        like = self.baseline.probed
        old_run, new_run = comparison.lines_run(0), comparison.lines_run(1)
        focus = [(file, line) for file, lines in noted.items() for line in lines]
        seen = self.bench.probe(version, compiled=False, like=like, focus=focus, noted=noted)
        if seen.timed_out or seen.exit_status != self.baseline.exit_status:
            return FixCheck("seen", "unknown", "it ends differently when its conditions are noted")
        old_lines, new_lines = (
            each.record.get("coverage", {}).get("lines", {}) for each in (like, seen)
        )
        words = (
            unseen_statement(changes, code.new, new_run, new_lines, is_new=True)
            or unseen_statement(changes, code.old, old_run, old_lines, is_new=False)
            or one_sided(changes, seen.record.get("truths", ()))
            or unseen_tie(changes, seen.record.get("ties", ()))
        )
        if words:
            return FixCheck("seen", "unknown", words)
        numbers = numbers_in(changes)
        if len(numbers) > _MOST_NUMBERS:
            words = f"it writes {len(numbers)} numbers, more than can each be tried as an input"
            return FixCheck("numbers", "unknown", words)
        if not numbers:
            return None
        captured = self.baseline.captured
        again = TrialBaseline(self.bench, self.before, captured, light=self.light, numbers=numbers)
        other = ChangeComparison(self.bench, self.before, version, again)
        other.run_both()
        other.compare_behavior()
        other.judge()
        comparison.result.inputs = list(
            dict.fromkeys([*comparison.result.inputs, *other.result.inputs])
        )
        return _failed(other)

    def _told(
        self,
        comparison: ChangeComparison,
        found: Verification,
        failed: FixCheck | None,
        version: Version,
    ) -> JudgedPatch:
        result = comparison.result
        checks = [check for check in result.checks if check.verdict == "pass"]
        verdict: FixVerdict = "verified"
        if failed is not None:
            checks.append(failed)
            verdict = "rejected" if failed.verdict == "fail" else "unverified"
        return JudgedPatch(
            Verification(
                verdict=verdict,
                reason=failed.words if failed is not None else "",
                checks=tuple(checks),
                before=found.before,
                after=found.after,
                notes=tuple(result.not_compared),
                inputs=tuple(result.inputs),
                captured=found.captured,
            ),
            version,
            tuple(result.compared),
            tuple(result.not_compared),
        )


def _failed(comparison: ChangeComparison) -> FixCheck | None:
    result = comparison.result
    if result.verdict == "verified":
        return None
    verdict: Verdict = "unknown" if result.verdict == "unknown" else "fail"
    return FixCheck(result.verdict, verdict, result.reason)
