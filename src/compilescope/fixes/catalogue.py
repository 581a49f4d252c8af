"""Every fix there is, in the order in which they are tried. Adding a file adds a fix."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache

import compilescope.fixes.breaks as breaks
import compilescope.fixes.recompiles as recompiles
from compilescope.fixes.fix import Fix
from compilescope.fixes.index import INDEX, Indexed
from compilescope.fixes.subject import Subject
from compilescope.plugins import carried, discover, public_modules


@cache
def all_fixes() -> tuple[Fix, ...]:
    found = [
        fix
        for package in (breaks, recompiles)
        for fix in discover(package, "FIX", Fix, several="FIXES")
    ]
    return tuple(sorted(found, key=lambda fix: (fix.order, fix.id)))


def fixes_answering(keys: Set[str]) -> list[Fix]:
    """Those that name one of these rules, graph-break ids or categories; no others are imported."""
    named = [_fix(name, entry) for name, entry in _entries(keys).items()]
    return sorted((fix for fix in named if keys & fix.rules), key=lambda fix: (fix.order, fix.id))


def fixes_for(subject: Subject) -> list[Fix]:
    return list(each_fix_for(subject))


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
    named = {name: each for name, each in INDEX.items() if not keys.isdisjoint(each.rules)}
    known = {entry.module for entry in INDEX.values()}
    for module in _modules():
        if module not in known:
            named |= {name: each for name, each in indexed(module).items() if keys & {*each.rules}}
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


def _fixes(module: str) -> tuple[Fix, ...]:
    return carried(f"{__package__}.{module}", "FIX", Fix, several="FIXES")
