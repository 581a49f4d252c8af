"""The script of `logs --script`: a log's program with fixes for what the log shows.

The program is run here, on plain torch where its device is missing, and its fixes are searched and
verified as `fix` does it. A cause that only the log shows gets the first fix that fits, which is
listed apart as unverified: with it the program must still run as before, where it runs here at all.

A log was written on another machine, so a fix is proposed as for a live run, for causes whose file
and very line are found here: in the script, in its other files, in installed packages.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import msgspec

from compilescope.base.errors import ToolError
from compilescope.change.fixes.catalogue import proposals_for
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch, merge
from compilescope.change.fixes.program_files import LogFiles
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.delivery.emitter import (
    Emitted,
    LoggedScript,
    ScriptPlan,
    emit,
    plan_script,
)
from compilescope.change.repair.delivery.script import LOG_MARK
from compilescope.change.repair.search.budget import OUT_OF_TIME
from compilescope.change.repair.search.options import SearchOptions, main_file
from compilescope.change.repair.search.outcome import SearchResult
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.trials.printed_output import compare_output
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.instrument.torchapi.plain_torch import PlainTorch
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.fix_search import FixAttempt, Losses
from compilescope.record.run import Run, read_run

_MOVE = "Move it away first, or overwrite it with --force."
_HERE = "here"
_PLAIN = "here on plain torch"
_PATHS = (PurePosixPath, PureWindowsPath)
_NOTHING = Losses()


@dataclass(frozen=True)
class _Proposed:
    cause: LoggedSubject
    fix: Fix
    patch: Patch
    why: str = ""
    """Why it is unverified, where that is not so of all."""

    @property
    def words(self) -> str:
        words = in_words(self.cause, self.fix, self.patch)
        return f"{words} Unverified: {self.why}." if self.why else words


@dataclass
class _Searched:
    """What a search on the program showed here."""

    outcome: SearchResult = field(default_factory=lambda: SearchResult(_NOTHING, _NOTHING, ()))
    shown: frozenset[str] = frozenset()
    """Fingerprints of what the program loses here."""
    reason: str = ""
    """Why the program could not be run; empty where it ran to its end."""


def plan_logged(target: Target, *, force: bool = False) -> ScriptPlan:
    """Raises `ToolError` where the script cannot be written."""
    target.check()
    plan = plan_script(target, None)
    plan.check(force=force, hint=_MOVE)
    return plan


def fix_from_log(
    target: Target,
    run: Run,
    options: SearchOptions,
    folders: tuple[str, ...] = (),
    *,
    force: bool = False,
) -> LoggedScript:
    """`target` is the log's program as it is here."""
    plan = plan_logged(target, force=force)
    here = LogFiles(main_file(target), run.header.root, folders)
    causes = logged_subjects(run, here)
    searched = _search(target, options)
    outcome = searched.outcome
    kept = {each.fingerprint: each for each in outcome.attempts if each.kept}
    more = _propose_rest(causes, searched)
    dropped: dict[str, str] = {}
    if more:
        options.progress("checking unverified fixes", 0, 0)
        more, dropped = _runnable(target, searched, more, options)
    more, files = _merged(outcome, more)
    left = tuple(_left(causes, searched, more, dropped))
    if not files and not outcome.environment:
        reason = searched.reason and f"the program could not be run here: {searched.reason}"
        return LoggedScript(left=left, reason=reason or "no automatic fix applies")
    where = _PLAIN if options.plain and _missing() else _HERE
    done = tuple(_verified_words(each, causes) for each in kept.values())
    whole = replace(
        outcome,
        files=files,
        originals=_originals(files, outcome),
        environment={**outcome.environment, **_environment(more)},
        allows=outcome.allows.union(*(each.patch.allows for each in more)),
    )
    made = _emit(plan, whole, target, options, searched, done, more, left, where)
    if made.path is None:
        return made
    return replace(made, attempts=(*_told(causes, kept.values()), *_told_unverified(more, made)))


def _search(target: Target, options: SearchOptions) -> _Searched:
    if importlib.util.find_spec("torch") is None:
        return _Searched(reason="torch is not installed")
    with tempfile.TemporaryDirectory(prefix="compilescope-") as home:
        try:
            outcome = search(target, replace(options, home=Path(home), timed=False))
        except ToolError as error:
            return _Searched(reason=_clause(error.message))
        shown = frozenset[str]()
        if outcome.run:
            seen = digest(read_run(Path(home) / outcome.run))
            shown = frozenset(each.fingerprint for each in findings(seen))
    failed = [text for text in outcome.notes if "nothing could be verified" in text]
    if failed and not outcome.attempts:
        words = failed[0].replace(", so nothing could be verified", "")
        return _Searched(reason=_clause(words.replace("The program itself", "it")))
    return _Searched(outcome, shown)


def _told(causes: list[LoggedSubject], kept: Iterable[FixAttempt]) -> Iterator[FixAttempt]:
    """What was verified here, as said of the causes in the log."""
    for cause in causes:
        for attempt in kept:
            if _is_fixed(cause, (attempt,)):
                because = next(iter(cause.subject.finding.because), "")
                yield msgspec.structs.replace(
                    attempt, because=because, fingerprint=cause.fingerprint
                )


def _told_unverified(proposed: list[_Proposed], made: LoggedScript) -> Iterator[FixAttempt]:
    could_not_run = made.reason and f"the program could not be run here: {made.reason}"
    for each in proposed:
        finding = each.cause.subject.finding
        yield FixAttempt(
            each.fix.id,
            each.fix.title,
            "unverified",
            because=next(iter(finding.because), ""),
            cause=finding.title,
            reason=each.why or could_not_run,
            states=each.patch.states,
            kept=True,
            fingerprint=each.cause.fingerprint,
            file=finding.file,
            line=finding.line,
            function=finding.function,
            source=finding.source,
        )


def _clause(sentence: str) -> str:
    text = " ".join(sentence.split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _propose_rest(causes: list[LoggedSubject], searched: _Searched) -> list[_Proposed]:
    """For causes that a run here does not show, or whose fixes it cannot verify."""
    absent = "" if searched.reason else "the graph break does not occur when the program runs here"
    attempts = searched.outcome.attempts
    found = []
    for cause in causes:
        if _is_fixed(cause, attempts):
            continue
        if cause.fingerprint not in searched.shown:
            chosen, why = cause.propose(), absent
        else:
            chosen, why = _unsettled(cause, attempts)
        if chosen is not None:
            found.append(_Proposed(cause, *chosen, why))
    return found


def _is_fixed(cause: LoggedSubject, attempts: tuple[FixAttempt, ...]) -> bool:
    """A value that torch_xla reads on the host is a graph break on plain torch, by another name."""
    site = cause.subject.finding
    if site.rule != "xla/host-read":
        return any(each.kept and each.fingerprint == cause.fingerprint for each in attempts)
    return any(
        each.kept
        and (each.file, each.function) == (site.file, site.function)
        and (each.line == site.line or each.source.strip() == site.source.strip())
        for each in attempts
    )


def _unsettled(
    cause: LoggedSubject, attempts: tuple[FixAttempt, ...]
) -> tuple[tuple[Fix, Patch] | None, str]:
    """The first fix that ran and wins something, but could not be checked to the end."""
    for each in attempts:
        same = each.fingerprint == cause.fingerprint and each.round == 1
        if not same or not each.fix or each.verdict != "unverified" or each.breaks_after is None:
            continue
        gain = (each.breaks_before, each.recompiles_before)
        if (each.breaks_after, each.recompiles_after or 0) < gain:
            return cause.propose(only=each.fix), each.reason.rstrip(".")
    return None, ""


def _runnable(
    target: Target, searched: _Searched, proposed: list[_Proposed], options: SearchOptions
) -> tuple[list[_Proposed], dict[str, str]]:
    """Those with which the program, or at least an import of what they change, still runs; and
    why the others don't, by the cause."""
    if importlib.util.find_spec("torch") is None:
        return proposed, {}
    good, bad = [], {}
    with Workbench(
        target, limit_s=options.limit_s, stdin=options.stdin, plain=options.plain
    ) as bench:
        checks = _Checks(bench, not searched.reason, options)
        for each in proposed:
            problem = checks.problem(each.patch)
            if problem:
                bad[each.cause.fingerprint] = f"{each.fix.title}: rejected, {problem}"
            else:
                good.append(each)
    return good, bad


@dataclass(frozen=True)
class _Checks:
    """Runs a patch alone."""

    bench: Workbench
    runs: bool
    """The program itself runs here."""
    options: SearchOptions

    def problem(self, patch: Patch) -> str:
        """Empty where nothing speaks against it."""
        version = Version().with_patch(patch)
        if self.runs:
            return _worse(self.bench.watch(Version()), self.bench.watch(version), patch)
        for file in version.files:
            if file != main_file(self.bench.target) and self._stops_importing(file, version):
                return f"with it, {os.path.basename(file)} cannot be imported"
        return ""

    def _stops_importing(self, file: str, version: Version) -> bool:
        target = Target("code", (_LOADING.format(path=file),))
        with Workbench(target, limit_s=self.options.limit_s, plain=self.options.plain) as bench:
            if not bench.watch(version).exit_status:
                return False
            return not bench.watch(Version()).exit_status


_LOADING = """
import sys
from importlib.util import find_spec
path = {path!r}
parts = path.replace("\\\\", "/").removesuffix(".py").removesuffix("/__init__").split("/")
for start in range(len(parts) - 1, 0, -1):
    name = ".".join(parts[start:])
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        continue
    if spec is not None and spec.origin == path:
        __import__(name)
        break
"""


def _worse(before: CapturedRun, after: CapturedRun, patch: Patch) -> str:
    if after.timed_out:
        return "the program did not finish in time with it"
    if after.exit_status != before.exit_status:
        return f"with it the program ends with status {after.exit_status}"
    printed = compare_output(before.stdout, after.stdout, patch.allows)
    return "" if printed.verdict == "pass" else "with it the program prints something different"


def _merged(
    outcome: SearchResult, proposed: list[_Proposed]
) -> tuple[list[_Proposed], dict[str, str]]:
    """All that goes together; what was verified comes first."""
    patches: list[Mapping[str, str]] = [outcome.files, *(each.patch.files for each in proposed)]
    paths = {file for patch in patches for file in patch}
    bases = {file: outcome.originals.get(file) or _read(file) for file in paths}
    files, kept = merge(bases, patches)
    return [proposed[number - 1] for number in kept if number], files


def _originals(files: Mapping[str, str], outcome: SearchResult) -> dict[str, str]:
    return {file: outcome.originals.get(file) or _read(file) for file in files}


def _read(file: str) -> str:
    with open(file, encoding="utf-8-sig", newline="") as stream:
        return stream.read()


def _environment(proposed: list[_Proposed]) -> dict[str, str]:
    return {name: value for each in proposed for name, value in each.patch.environment.items()}


def _left(
    causes: list[LoggedSubject],
    searched: _Searched,
    proposed: list[_Proposed],
    dropped: Mapping[str, str],
) -> list[str]:
    """Causes of the log that the script leaves as they are, each with the best reason known."""
    attempts = searched.outcome.attempts
    fixed = {each.cause.fingerprint for each in proposed}
    fixed |= {each.fingerprint for each in causes if _is_fixed(each, attempts)}
    still = {each.place for each in searched.outcome.left}
    reasons = {each.fingerprint: each for each in attempts if not each.kept}
    found = []
    for cause in causes:
        finding = cause.subject.finding
        if cause.fingerprint in fixed:
            continue
        gone = cause.fingerprint in searched.shown and f"{finding.file}:{finding.line}" not in still
        if gone and cause.fingerprint not in reasons:
            continue  # Went away with another one.
        found.append(f"{cause.place}: {_why_left(cause, reasons, dropped)}")
    return found


def _why_left(
    cause: LoggedSubject, reasons: Mapping[str, FixAttempt], dropped: Mapping[str, str]
) -> str:
    if cause.fingerprint in dropped:
        return f"{dropped[cause.fingerprint]}. {cause.remedy}"
    tried = reasons.get(cause.fingerprint)
    if tried is not None and tried.reason in OUT_OF_TIME:
        return f"{tried.reason}. {cause.remedy}"
    if tried is not None and tried.fix:
        return f"{tried.title}: {tried.verdict}, {tried.reason.rstrip('.')}. {cause.remedy}"
    file = cause.subject.finding.file
    # Guards name torch's own files by a path within torch.
    if not cause.found and any(kind(file).is_absolute() for kind in _PATHS):
        name = os.path.basename(file)
        return f"{name} is not here with the line that the log shows. {cause.remedy}"
    return cause.remedy


def _verified_words(attempt: FixAttempt, causes: list[LoggedSubject]) -> str:
    """Named as the log names it, where the log shows it."""
    cause = next((each for each in causes if each.fingerprint == attempt.fingerprint), None)
    place = f"{os.path.basename(attempt.file)}:{attempt.line} {attempt.rule}"
    place = cause.place if cause is not None else place
    return " ".join(f"{place}: {attempt.title}. {attempt.states}".split())


def _missing() -> bool:
    return any(importlib.util.find_spec(name) is None for name in PlainTorch.PACKAGES)


def _emit(
    plan: ScriptPlan,
    outcome: SearchResult,
    target: Target,
    options: SearchOptions,
    searched: _Searched,
    done: tuple[str, ...],
    proposed: list[_Proposed],
    left: tuple[str, ...],
    where: str,
) -> LoggedScript:
    unverified = tuple(each.words for each in proposed)
    emitted: Emitted = emit(
        plan,
        outcome,
        target,
        options,
        done,
        unverified=unverified,
        left=left,
        mark=LOG_MARK,
        where=where,
        why_unverified=searched.reason and f"the program could not be run here: {searched.reason}",
        proven=not searched.reason,
        claimed=None if proposed else outcome.after,
    )
    proof = emitted.proof if not searched.reason else None
    if emitted.path is None:
        reason = f"when the script ran, {emitted.proof.reason}"
        return LoggedScript(left=left, reason=reason, proof=proof)
    return LoggedScript(
        path=emitted.path,
        command=plan.command,
        done=done,
        unverified=unverified,
        left=left,
        where=where,
        reason=searched.reason,
        proof=proof,
    )


_MOST = 20
"""Proposals for one cause. Chosen: the first that needs no run is taken, and those before it must
not fill the list."""


@dataclass(frozen=True)
class LoggedSubject:
    """One cause of a log, with its place here."""

    subject: Subject
    """Of the log, with the path of the file here where it was found."""
    found: bool
    """The file is here, with the line that the log shows."""

    @property
    def fingerprint(self) -> str:
        return self.subject.finding.fingerprint

    @property
    def place(self) -> str:
        """`train.py:7 GB0059`."""
        finding = self.subject.finding
        name = finding.gb_id if isinstance(finding, BreakFinding) else ""
        return f"{PurePath(finding.file).name}:{finding.line} {name or ''}".rstrip()

    @property
    def remedy(self) -> str:
        """What a person can do."""
        return " ".join(self.subject.finding.first_step.split()) or "no fix is known"

    def propose(self, only: str = "") -> tuple[Fix, Patch] | None:
        """The first fix that fits, or the one with that id. Without a run, nothing is switched off
        that the program may need."""
        if not self.found:
            return None
        for fix, patch in proposals_for(self.subject, most=_MOST).made:
            if only not in ("", fix.id) or patch.needs_human:
                continue
            if only or not fix.only_run_tells:
                return fix, patch
        return None


def logged_subjects(run: Run, here: LogFiles) -> list[LoggedSubject]:
    """Raises `ToolError` if the script cannot be read."""
    program = Program(run, digest(run), here.main)
    try:
        program.module(here.main)
    except Refused as reason:
        why = str(reason).rstrip(".")
        raise ToolError(f"Cannot change {PurePath(here.main).name}: {why}.") from None
    return [_placed(subject, here) for subject in subjects_of(program)]


def _placed(subject: Subject, here: LogFiles) -> LoggedSubject:
    finding = subject.finding
    path = here.find(finding.file, finding.line, finding.source)
    if path is None:
        return LoggedSubject(subject, found=False)
    placed = replace(subject, finding=msgspec.structs.replace(finding, file=path))
    return LoggedSubject(placed, found=True)


def in_words(cause: LoggedSubject, fix: Fix, patch: Patch) -> str:
    """For a list of changes."""
    return " ".join(f"{cause.place}: {fix.title}. {patch.states}".split())
