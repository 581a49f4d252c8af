"""Fixes for what a log shows: proposed on the files at hand, none verified yet.

A log was written on another machine, so a fix is proposed as for a live run, for causes whose file
and very line are found here: in the script, in its other files, in installed packages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath

import msgspec

from compilescope.analysis.digest import digest
from compilescope.errors import ToolError
from compilescope.findings.breaks import BreakFinding
from compilescope.fixes.catalogue import proposals_for
from compilescope.fixes.fix import Fix
from compilescope.fixes.log_files import LogFiles
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Program, Subject, subjects_of
from compilescope.model.run import Run
from compilescope.source.refusals import Refused

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
