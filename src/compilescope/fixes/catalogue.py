"""Every fix there is, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Set
from functools import cache

import compilescope.fixes.breaks as breaks
import compilescope.fixes.recompiles as recompiles
from compilescope.fixes.fix import Fix
from compilescope.fixes.subject import Subject
from compilescope.plugins import discover


@cache
def all_fixes() -> tuple[Fix, ...]:
    found = [*discover(breaks, "FIX", Fix), *discover(recompiles, "FIX", Fix)]
    return tuple(sorted(found, key=lambda fix: (fix.order, fix.id)))


def fixes_answering(keys: Set[str]) -> list[Fix]:
    """Those that name one of these rules, graph-break ids or categories."""
    return [fix for fix in all_fixes() if fix.rules & keys]


def fixes_for(subject: Subject) -> list[Fix]:
    """In a library, what its user can change comes first."""
    found = fixes_answering(subject.keys)
    if subject.program.is_own(subject.file):
        return found
    return sorted(found, key=lambda fix: fix.kind not in ("caller", "config"))
