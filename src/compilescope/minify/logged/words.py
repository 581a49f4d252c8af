"""What scripts say of a log's break, its texts made safe: lines of a docstring, a file's name."""

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


def break_words(site: BreakFinding) -> dict[str, str]:
    """What the head of every script says of the log's break."""
    return {
        "gb": one_line(site.gb_id or "(no ID)"),
        "kind": one_line(site.gb_type),
        "place": one_line(f"{site.file}:{site.line}"),
        "source": one_line(site.source) or "(the log does not include the line)",
    }


def file_name(site: BreakFinding) -> str:
    stem = _WORD.sub("_", Path(site.file).stem.lower()).strip("_")[:40]
    kind = _WORD.sub("_", (site.gb_id or "break").lower()).strip("_")[:20]
    return f"{kind}_{stem or 'program'}_{site.line}.py"
