"""How files are called in a report."""

from __future__ import annotations

import re

from compilescope.model.stack import cell_of, origin_of
from compilescope.rules.findings import Finding

_PACKAGE = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_MOST_LETTERS = 24


def shown_path(file: str, root: str) -> str:
    """Relative to the program's folder, or to the installed package; a cell by its number."""
    cell = cell_of(file)
    if cell is not None:
        return f"In [{cell}]"
    if root and file.startswith(root.rstrip("/\\") + "/"):
        return file[len(root.rstrip("/\\")) + 1 :]
    if origin_of(file) in ("library", "torch"):
        return _PACKAGE.sub("", file)
    return file


def place(file: str, line: int, root: str) -> str:
    shown = shown_path(file, root)
    return f"{shown}, line {line}" if cell_of(file) is not None else f"{shown}:{line}"


def brief_place(file: str, line: int, root: str) -> str:
    """The same for a line that has little room: of a long path the file's name alone."""
    at = place(file, line, root)
    return at if len(at) <= _MOST_LETTERS else re.split(r"[/\\]", at)[-1][-_MOST_LETTERS:]


def anchor_of(finding: Finding) -> str:
    """The item that is about a finding."""
    if finding.kind == "break" or not finding.because:
        return finding.fingerprint
    return f"{finding.kind}-{finding.because[0]}"


def count(number: int, one: str, many: str = "") -> str:
    """`1 graph`, `2 graphs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
