"""What to do about each cause of a run: the one home of advice, for every view.

A change is only ever a fix's own proposal on the user's lines, so nothing is advised that the fix
would refuse. Where every fix refuses, the reason that matters is told with what a person can do;
a rule's general words stand alone only where no fix speaks.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from compilescope.fixes.diffs import patch_diff
from compilescope.fixes.fix import Fix
from compilescope.fixes.main_file import main_file_of
from compilescope.fixes.patch import NeedsRun, Patch, Refused
from compilescope.fixes.proposals import Proposals, proposals_for
from compilescope.fixes.subject import Program, Subject
from compilescope.model.bodies import FixAttempt, SourceSeen
from compilescope.model.run import Run
from compilescope.rules.causes.advice import Advice
from compilescope.rules.causes.remedy import Remedy
from compilescope.rules.digest import Digest
from compilescope.rules.failures import Failure
from compilescope.rules.findings import Finding, failure_finding, recompile_findings, site_finding
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.sites import Site

_MOST_CAUSES = 300
"""Asking the fixes takes some ten milliseconds a cause; beyond this the rules' words must do."""
_MOST_PROPOSALS = 3
_BROKEN_VALUE = "broken-value"
_STILL_A_VALUE = ("value-from-outside", "outside-of-compiled")
"""Without the break, but with the value as an argument, which is guarded as it was before."""
_RUNNERS = ("pytest", "torchrun")


def advised(run: Run, seen: Digest) -> Digest:
    """The digest with advice for every break, recompile and failure."""
    if not (seen.sites or seen.recompiles or seen.failures):
        return seen
    adviser = _Adviser(run, seen)
    return msgspec.structs.replace(
        seen,
        failures=tuple(adviser.failure(each) for each in seen.failures),
        sites=tuple(adviser.site(each) for each in seen.sites),
        recompiles=tuple(adviser.frame(each) for each in seen.recompiles),
    )


@dataclass
class _Adviser:
    run: Run
    seen: Digest
    _asked: int = 0
    _known: dict[tuple[str, str], tuple[Advice, ...]] = field(default_factory=dict)

    @cached_property
    def program(self) -> Program:
        header = self.run.header
        return Program(
            self.run,
            self.seen,
            main_file_of(header.command, header.cwd),
            _KeptTexts(self.run, self.is_here),
            on_this_machine=self.is_here,
        )

    @property
    def is_here(self) -> bool:
        """Did the program run on this machine?"""
        host = self.run.header.host
        return bool(host) and host == socket.gethostname()

    @cached_property
    def attempts(self) -> dict[str, list[FixAttempt]]:
        """By the event of the cause that each was tried on."""
        found: dict[str, list[FixAttempt]] = {}
        for _, body in self.run.of(FixAttempt):
            if body.because and body.fix:
                found.setdefault(body.because, []).append(body)
        return found

    @cached_property
    def fix_command(self) -> str:
        """What to type; empty where `fix` has nothing to run."""
        command = self.run.header.command
        if not command or command[0] in _RUNNERS:
            return ""
        return shlex.join(["compilescope", "fix", *command])

    def site(self, site: Site) -> Site:
        if site.consequence_of is not None:
            root = next(s for s in self.seen.sites if s.fingerprint == site.consequence_of)
            where = f"{os.path.basename(root.file)}:{root.line}"
            advice: tuple[Advice, ...] = (
                _by_hand(f"Fix the graph break at {where} first: this one goes away with it."),
            )
        else:
            advice = self._advice(Subject(site_finding(site), self.program, site=site), site.remedy)
        return msgspec.structs.replace(site, advice=advice)

    def frame(self, frame: RecompiledFrame) -> RecompiledFrame:
        found = recompile_findings(frame, self.seen.root) if frame.causes else []
        causes = [
            msgspec.structs.replace(
                cause,
                advice=self._of_the_break(cause, frame)
                or self._advice(
                    Subject(finding, self.program, cause=cause, frame=frame), cause.remedy
                ),
            )
            for cause, finding in zip(frame.causes, found, strict=True)
        ]
        return msgspec.structs.replace(frame, causes=tuple(causes))

    def _of_the_break(self, cause: RecompileCause, frame: RecompiledFrame) -> tuple[Advice, ...]:
        """The changes that mend a break, for a value that the break brought into Python: without
        it there is no rest of the function to compile again."""
        if cause.rule != _BROKEN_VALUE:
            return ()
        for site in self.seen.sites:
            if (site.file, site.line) == (frame.file, frame.resumed_at):
                advice = self.site(site).advice
                is_mended = advice and advice[0].diff and advice[0].fix not in _STILL_A_VALUE
                if site.consequence_of is None and is_mended:
                    return advice
        return ()

    def failure(self, failure: Failure) -> Failure:
        finding = failure_finding(failure, self.seen.root)
        subject = Subject(finding, self.program, failure=failure)
        return msgspec.structs.replace(failure, advice=self._advice(subject, failure.remedy))

    def _advice(self, subject: Subject, remedies: tuple[Remedy, ...]) -> tuple[Advice, ...]:
        """One value guarded in two parts of a function, or a line that breaks twice, is one cause:
        it is asked about once."""
        key = (subject.finding.kind, subject.finding.fingerprint)
        if key not in self._known:
            self._known[key] = tuple(self._ask(subject, remedies))
        return self._known[key]

    def _ask(self, subject: Subject, remedies: tuple[Remedy, ...]) -> Iterator[Advice]:
        self._asked += 1
        if self._asked > _MOST_CAUSES:
            yield from (_by_hand(remedy.text) for remedy in remedies)
            return
        tried = self._tried(subject.finding)
        yield from (
            Advice(each.fix, "proven", each.diff, _sentence(each.title, each.states))
            for each in tried
            if each.verdict == "verified" and each.kept
        )
        spoken = {each.fix for each in tried if each.verdict != "unverified"}
        proposals = proposals_for(subject, most=_MOST_PROPOSALS + len(spoken))
        made = [(fix, patch) for fix, patch in proposals.made if fix.id not in spoken]
        offered = [self._proposed(subject, fix, patch) for fix, patch in made]
        yield from sorted(offered, key=lambda advice: not advice.diff)
        yield from self._words(proposals, remedies, alone=not offered)

    def _tried(self, finding: Finding) -> list[FixAttempt]:
        return [each for event in finding.because for each in self.attempts.get(event, ())]

    def _proposed(self, subject: Subject, fix: Fix, patch: Patch) -> Advice:
        told = _sentence(fix.title, patch.states)
        if patch.needs_human:
            return Advice(fix.id, "by hand", "", _sentence(fix.title, patch.needs_human))
        if fix.only_run_tells:
            command = self.fix_command or "compilescope fix"
            words = f"`{command}` can try it: {fix.title}. It keeps it only if your program"
            return Advice(fix.id, "proposed", "", f"{words} still computes and prints the same.")
        theirs = [file for file in patch.files if not subject.program.is_own(file)]
        if theirs:
            script = self.fix_command.replace("compilescope fix", "compilescope fix --script", 1)
            way = f"`{script}` makes" if script else "`compilescope fix --script` makes"
            name = os.path.basename(theirs[0])
            words = f"{way} a copy of your program with {name} patched: {fix.title}."
            return Advice(fix.id, "proposed", "", words)
        if patch.environment:
            setting = " ".join(f"{name}={value}" for name, value in patch.environment.items())
            told = f"Start the program with `{setting}`. {told}"
        return Advice(fix.id, "proposed", patch_diff(subject, patch), told)

    def _words(
        self, proposals: Proposals, remedies: tuple[Remedy, ...], *, alone: bool
    ) -> Iterator[Advice]:
        """What a person can do; with the reason that no fix does it, where none is offered."""
        refusal = proposals.reason
        if not alone or refusal is None:
            yield from (_by_hand(remedy.text) for remedy in remedies)
            return
        if isinstance(refusal, NeedsRun):
            command = self.fix_command or "compilescope fix"
            fix = next(fix for fix, each in proposals.refused if each is refusal)
            yield Advice(
                fix.id,
                "by hand",
                "",
                f"Run `{command}` to find out whether a fix works: {refusal}.",
            )
            yield from (_by_hand(remedy.text) for remedy in remedies)
            return
        first = refusal.instead or (remedies[0].text if remedies else "")
        yield _by_hand(_why_by_hand(refusal, first))
        yield from (_by_hand(remedy.text) for remedy in remedies if remedy.text != first)


class _KeptTexts(Mapping[str, str]):
    """The files of a program as they were when it ran, read when asked for."""

    def __init__(self, run: Run, is_here: bool) -> None:
        self._run = run
        self._is_here = is_here
        self._artifacts = {body.file: body.artifact for _, body in run.of(SourceSeen)}

    def __getitem__(self, file: str) -> str:
        text = self._run.artifacts.get(self._artifacts[file])
        if text is None:
            raise KeyError(file)
        return _with_its_line_ends(file, text) if self._is_here else text

    def __iter__(self) -> Iterator[str]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)


def _with_its_line_ends(file: str, kept: str) -> str:
    """A program's text is kept as Python reads it, its lines all ended alike; a patch needs them
    as they are in the file, if that is still the same."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except (OSError, ValueError):
        return kept
    return text if _read_lines(text) == _read_lines(kept) else kept


def _read_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _by_hand(text: str) -> Advice:
    return Advice(None, "by hand", "", text)


def _why_by_hand(refusal: Refused, words: str) -> str:
    reason = str(refusal).rstrip(".")
    return (
        f"No automatic fix: {reason}. {words[0].upper()}{words[1:]}"
        if words
        else f"No automatic fix: {reason}."
    )


def _sentence(title: str, more: str) -> str:
    """A title that begins with code keeps its case."""
    first = title.split(" ", 1)[0]
    head = title if "." in first or "_" in first else title[:1].upper() + title[1:]
    return f"{head.rstrip('.')}. {more}" if more else f"{head.rstrip('.')}."
