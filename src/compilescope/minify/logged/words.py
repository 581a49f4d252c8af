"""Texts of a log made safe for a script: one line of a docstring, the name of a file."""

from __future__ import annotations

import re
from pathlib import Path

from compilescope import texts
from compilescope.findings.breaks import BreakFinding
from compilescope.texts import in_docstring

_WORD = re.compile(r"[^a-z0-9]+")


def one_line(text: str) -> str:
    """For a docstring: a log may hold anything."""
    return in_docstring(texts.one_line(text)[:200])


def file_name(site: BreakFinding) -> str:
    stem = _WORD.sub("_", Path(site.file).stem.lower()).strip("_")[:40]
    kind = _WORD.sub("_", (site.gb_id or "break").lower()).strip("_")[:20]
    return f"{kind}_{stem or 'program'}_{site.line}.py"
