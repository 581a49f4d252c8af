"""Fixes for a program that cannot be run here: written into a copy of its script, none proven.

What a log tells was seen on another machine, so a fix is proposed as for a live run, for causes
whose file and very line agree with the script at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import msgspec

from compilescope.errors import ToolError
from compilescope.fixes.fix import Fix
from compilescope.fixes.merging import merge
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.proposals import proposals_for
from compilescope.fixes.source.editing import head_end
from compilescope.fixes.subject import Program, Subject
from compilescope.fixes.subjects import subjects_of
from compilescope.model.run import Run
from compilescope.rules.digest import digest

_MOST = 20


@dataclass(frozen=True)
class Unproven:
    """The script with what was proposed, what that is, and what is left to do by hand."""

    text: str
    done: tuple[str, ...]
    left: tuple[str, ...]


def propose_unproven(script: Path, run: Run) -> Unproven:
    """`script` as the run's program, maybe under another path."""
    path = str(script.absolute())
    program = Program(run, digest(run), path)
    try:
        text = program.module(path).text
    except Refused as reason:
        why = str(reason).rstrip(".")
        raise ToolError(f"Cannot change {script}: {why}.") from None
    found: list[tuple[Subject, Fix, Patch]] = []
    left: list[str] = []
    for subject in subjects_of(program):
        here = _here(subject, path, text)
        chosen = _first_fix(here or subject, path)
        if chosen is None:
            left.append(f"{_place(subject)}: {_advice(subject)}")
        else:
            found.append((subject, *chosen))
    files, kept = merge({path: text}, [patch.files for _, _, patch in found])
    left += [_place(s) + ": another fix changes the same lines" for s, _, _ in _others(found, kept)]
    done = [_told(*found[number]) for number in kept]
    return Unproven(
        _headed(files.get(path, text), script.name, done, left), tuple(done), tuple(left)
    )


def _here(subject: Subject, path: str, text: str) -> Subject | None:
    """The cause in the script, if its file has the name and its line the words that were logged."""
    finding = subject.finding
    lines = text.splitlines()
    if PurePath(finding.file).name != PurePath(path).name or not 0 < finding.line <= len(lines):
        return None
    if finding.source and lines[finding.line - 1].strip() != finding.source.strip():
        return None
    site = subject.site and msgspec.structs.replace(subject.site, file=path)
    return replace(subject, finding=msgspec.structs.replace(finding, file=path), site=site)


def _first_fix(subject: Subject, path: str) -> tuple[Fix, Patch] | None:
    """The first that fits and changes nothing but the script."""
    for fix, patch in proposals_for(subject, most=_MOST).made:
        if set(patch.files) == {path} and not patch.environment and not patch.needs_human:
            return fix, patch
    return None


def _others(
    found: list[tuple[Subject, Fix, Patch]], kept: list[int]
) -> list[tuple[Subject, Fix, Patch]]:
    return [each for number, each in enumerate(found) if number not in kept]


def _told(subject: Subject, fix: Fix, patch: Patch) -> str:
    return " ".join(f"{_place(subject)}: {fix.title}. {patch.states}".split())


def _place(subject: Subject) -> str:
    finding = subject.finding
    name = subject.site.gb_id if subject.site is not None else ""
    return f"{PurePath(finding.file).name}:{finding.line} {name or ''}".rstrip()


def _advice(subject: Subject) -> str:
    return " ".join(subject.finding.remedy.split()) or "no fix is known"


def _headed(text: str, name: str, done: list[str], left: list[str]) -> str:
    """Below the docstring and `__future__`, which must stay first."""
    head = [
        f"# Made by compilescope from {name} and the log of a run of it.",
        "# Not verified: run it where the log was written, and check the new log.",
        "#",
        *_comments("Done:", done),
        "#",
        *_comments("To do by hand:", left),
    ]
    place = head_end(text)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:place], *(f"{line}\n" for line in head), *lines[place:]])


def _comments(title: str, items: list[str]) -> list[str]:
    return [f"# {title}", *(f"# - {item}" for item in items or ["nothing"])]
