"""Which file of a program has another name now: told by the causes that are in it.

A fingerprint names the file. Where one is renamed or moved, the same causes turn up under another
name, and none is left under the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from compilescope.findings.finding import Finding
from compilescope.model.fingerprint import normalised

_MODULE = re.compile(r"__import_\w+")
_Names = tuple[Callable[[str], str], Callable[[str], str]]


def renamed_files(
    gone: list[Finding],
    came: list[Finding],
    all_found: tuple[list[Finding], list[Finding]],
    names: _Names,
) -> dict[str, str]:
    """Old name -> new name, of files that no longer have a cause and of such that had none.

    Each goes to the file that shares most causes with it; where two share as many, to neither.
    """
    known = [{names[side](each.file) for each in all_found[side]} for side in (0, 1)]
    before = _by_file(gone, names[0], known[1])
    after = _by_file(came, names[1], known[0])
    shared = [
        (len(causes & others), old, new)
        for old, causes in before.items()
        for new, others in after.items()
        if causes & others
    ]
    found: dict[str, str] = {}
    for number, old, new in sorted(shared, reverse=True):
        rivals = [
            each
            for each in shared
            if each[0] == number and (each[1] == old) != (each[2] == new)
            if each[1] not in found and each[2] not in found.values()
        ]
        if old not in found and new not in found.values() and not rivals:
            found[old] = new
    return found


def cause_in(finding: Finding, file: str) -> tuple[str, ...]:
    """What makes it this cause, in a file of that name."""
    by_line = finding.kind in ("break", "failure")
    said = normalised(finding.source) if by_line else _MODULE.sub("__import", finding.title)
    return file, finding.kind, finding.rule_id, finding.function, said


def _by_file(
    found: list[Finding], name: Callable[[str], str], elsewhere: set[str]
) -> dict[str, set[tuple[str, ...]]]:
    """The causes of each file that the other run knows nothing of."""
    causes: dict[str, set[tuple[str, ...]]] = {}
    for each in found:
        file = name(each.file)
        if each.file and file not in elsewhere:
            causes.setdefault(file, set()).add(cause_in(each, ""))
    return causes
