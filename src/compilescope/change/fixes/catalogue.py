"""Every fix there is, in the order in which they are tried, and what each of them proposes.

Adding a file adds a fix. A cause concerns a few of them, and importing all takes longer than asking
those: index.json, which a test makes of the fixes and compares with them, says which. A module that
it lacks yet is imported each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

import compilescope.change.fixes.breaks as breaks
import compilescope.change.fixes.recompiles as recompiles
from compilescope.base.plugins import carried, discover, plugged, public_modules
from compilescope.change.fixes.fix import Fix, Kind
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.refusals import NotMeant, Refused

GROUP = "compilescope.fixes"
"""The entry points of packages that bring fixes of their own."""
INDEX = Path(__file__).with_name("index.json")


class Indexed(NamedTuple):
    """A fix that has not been imported: where it is, and what decides when it is asked."""

    module: str
    order: int
    kind: Kind
    rules: tuple[str, ...]


@cache
def index() -> dict[str, Indexed]:
    """By the id of a fix."""
    return msgspec.json.decode(INDEX.read_bytes(), type=dict[str, Indexed])


@cache
def all_fixes() -> tuple[Fix, ...]:
    found = [
        fix
        for package in (breaks, recompiles)
        for fix in discover(package, "FIX", Fix, several="FIXES")
    ]
    known = {fix.id for fix in found}
    found += [fix for fixes in _plugged().values() for fix in fixes if fix.id not in known]
    return tuple(sorted(found, key=lambda fix: (fix.order, fix.id)))


def fixes_answering(keys: Set[str]) -> list[Fix]:
    """Those that name one of these rules, graph-break ids or categories; no others are imported."""
    named = [_fix(name, entry) for name, entry in _entries(keys).items()]
    return sorted((fix for fix in named if keys & fix.rules), key=lambda fix: (fix.order, fix.id))


def fixes_for(subject: Subject) -> list[Fix]:
    """Also where nobody names the cause, as some torch versions break without an id: those that
    see in the source what they change. They are to be verified, not only proposed."""
    named = list(each_fix_for(subject))
    finding = subject.finding
    if not isinstance(finding, BreakFinding) or finding.gb_id or finding.rule:
        return named
    every = [fix for fix in fixes_answering(_keys_of_breaks()) if fix not in named]
    return [fix for fix in every if not isinstance(_answer(fix, subject), Refused)] + named


@cache
def _keys_of_breaks() -> frozenset[str]:
    return frozenset(
        key
        for entry in index().values()
        if entry.module.startswith("breaks.") and entry.kind == "source"
        for key in entry.rules
    )


def each_fix_for(subject: Subject) -> Iterator[Fix]:
    """Each is imported when its turn comes. In a library, what its user can change comes first."""
    keys = subject.keys
    entries = _entries(keys)
    is_own = subject.program.is_own(subject.file)

    def turn(name: str) -> tuple[bool, int, str]:
        entry = entries[name]
        return not is_own and entry.kind not in ("caller", "config"), entry.order, name

    for name in sorted(entries, key=turn):
        fix = _fix(name, entries[name])
        if keys & fix.rules:
            yield fix


def _entries(keys: Set[str]) -> dict[str, Indexed]:
    """By id: those that name one of the keys, of the index and of the modules that it lacks."""
    named = {name: each for name, each in index().items() if not keys.isdisjoint(each.rules)}
    known = {entry.module for entry in index().values()}
    for module in _modules():
        if module not in known:
            named |= {name: each for name, each in indexed(module).items() if keys & {*each.rules}}
    for module in _plugged():
        theirs = indexed(module)
        named |= {
            name: each
            for name, each in theirs.items()
            if name not in index() and keys & {*each.rules}
        }
    return named


def indexed(module: str) -> dict[str, Indexed]:
    """What the index has to say of a module."""
    return {
        fix.id: Indexed(module, fix.order, fix.kind, tuple(sorted(fix.rules)))
        for fix in _fixes(module)
    }


@cache
def _modules() -> tuple[str, ...]:
    return tuple(
        f"{package.__name__.rpartition('.')[2]}.{name}"
        for package in (breaks, recompiles)
        for name in public_modules(package)
    )


def _fix(name: str, entry: Indexed) -> Fix:
    return next(fix for fix in _fixes(entry.module) if fix.id == name)


@cache
def _plugged() -> dict[str, tuple[Fix, ...]]:
    return plugged(GROUP, "FIX", Fix, several="FIXES")


def _fixes(module: str) -> tuple[Fix, ...]:
    if module in _plugged():
        return _plugged()[module]
    return carried(f"{__package__}.{module}", "FIX", Fix, several="FIXES")


class Proposals(msgspec.Struct, frozen=True):
    """In the order in which the fixes would be tried."""

    made: list[tuple[Fix, Patch]] = msgspec.field(default_factory=list)
    refused: list[tuple[Fix, Refused]] = msgspec.field(default_factory=list)

    @property
    def reason(self) -> Refused | None:
        """The refusal that matters: of the first fix that fits but for one thing."""
        near = (refusal for _, refusal in self.refused if not isinstance(refusal, NotMeant))
        return next(near, None)


def proposals_for(subject: Subject, *, most: int) -> Proposals:
    """The first `most` that fixes make. Where no file has a text that could be changed, none can:
    then it ends with the refusal that matters."""
    found = Proposals()
    hopeless = not subject.program.has_source
    for fix, answer in _answers(subject):
        if isinstance(answer, Refused):
            found.refused.append((fix, answer))
            if hopeless and found.reason is not None:
                break
            continue
        found.made.append((fix, answer))
        if len(found.made) >= most:
            break
    return found


def _answers(subject: Subject) -> Iterator[tuple[Fix, Patch | Refused]]:
    for fix in each_fix_for(subject):
        yield fix, _answer(fix, subject)


def _answer(fix: Fix, subject: Subject) -> Patch | Refused:
    try:
        return fix.propose(subject.meant_for(fix.rules))
    except Refused as refusal:
        return refusal
    except Exception:  # A fix is a plugin: a fault in one must not take a report down.
        import logging

        told = logging.getLogger(__name__)
        told.debug("fix %s failed on %s", fix.id, subject.finding.title, exc_info=True)
        return NotMeant(f"the fix {fix.id} failed here")
