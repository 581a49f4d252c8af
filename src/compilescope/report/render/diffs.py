"""Tells what a line of a unified diff is: added, removed, a header, or context."""

from __future__ import annotations

from typing import Literal

DiffKind = Literal["file", "place", "added", "removed", "same"]


def diff_kind(line: str) -> DiffKind:
    if line.startswith(("+++ ", "--- ")):
        return "file"
    if line.startswith("@@"):
        return "place"
    if line.startswith("+"):
        return "added"
    return "removed" if line.startswith("-") else "same"
