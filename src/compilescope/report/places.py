"""How files are called in a report."""

from __future__ import annotations

import re

from compilescope.model.stack import origin_of
from compilescope.rules.findings import Finding

_PACKAGE = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")


def shown_path(file: str, root: str) -> str:
    """Relative to the program's folder, or to the installed package."""
    if root and file.startswith(root.rstrip("/\\") + "/"):
        return file[len(root.rstrip("/\\")) + 1 :]
    if origin_of(file) in ("library", "torch"):
        return _PACKAGE.sub("", file)
    return file


def place(file: str, line: int, root: str) -> str:
    return f"{shown_path(file, root)}:{line}"


def anchor_of(finding: Finding) -> str:
    """The item that tells of a finding."""
    if finding.kind == "break" or not finding.because:
        return finding.fingerprint
    return f"{finding.kind}-{finding.because[0]}"


def count(number: int, one: str, many: str = "") -> str:
    """`1 graph`, `2 graphs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
