"""From a break site to a question for a language model: no private paths, a short excerpt."""

from __future__ import annotations

from compilescope.explain.llm import Question
from compilescope.model.fingerprint import relative_file
from compilescope.model.run import Run
from compilescope.rules.digest import Digest
from compilescope.rules.sites import Site
from compilescope.rules.source import Sources

_AROUND = 6


def question_for(run: Run, digest: Digest, site: Site) -> Question:
    file = relative_file(site.file, digest.root)
    cause = "\n".join(
        [
            f"Category: {site.category}",
            f"PyTorch's type: {site.gb_type} ({site.gb_id or 'no ID'})",
            f"Place: {file}, line {site.line}, in {site.function}",
            f"Why: {site.why}",
            f"Result: {site.outcome}",
        ]
    )
    return Question(cause, _excerpt(Sources(run), site), digest.torch or "unknown")


def _excerpt(sources: Sources, site: Site) -> str:
    lines = sources.lines(site.file)
    if not 0 < site.line <= len(lines):
        return f"> {site.line}: {site.source}"
    first, last = max(1, site.line - _AROUND), min(len(lines), site.line + _AROUND)
    return "\n".join(
        f"{'>' if number == site.line else ' '} {number}: {lines[number - 1]}"
        for number in range(first, last + 1)
    )
