"""Chooses which break, recompile or crash is minified: the one asked for, else the first."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from compilescope.errors import ToolError
from compilescope.minify.source.findings import SourceFinding
from compilescope.minify.source.messages import TrialResult

_SITE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")


@dataclass(frozen=True)
class SitePlace:
    """`file.py:12` of the command line."""

    file: str
    line: int

    def has(self, cause: SourceFinding) -> bool:
        if cause.line != self.line:
            return False
        mine, theirs = os.path.normpath(self.file), os.path.normpath(cause.file)
        return theirs == mine or theirs.endswith(os.sep + mine)


def read_site(text: str) -> SitePlace:
    found = _SITE.match(text)
    if found is None:
        raise ToolError(f"--site {text!r} is not FILE:LINE.", hint="For example: train.py:41")
    return SitePlace(found["file"], int(found["line"]))


@dataclass(frozen=True)
class ChosenFinding:
    """What to make smaller, and the others that there are."""

    finding: SourceFinding
    others: tuple[SourceFinding, ...]


def choose(
    seen: TrialResult, predicate: str | None, site: SitePlace | None
) -> ChosenFinding | None:
    """The first of the user's own causes; None where the program shows none at all.

    The crash that ended it comes first, breaks come before recompiles, and what another break left
    behind comes last.
    """
    distinct = list({(c.fingerprint, c.file, c.line): c for c in reversed(seen.findings)}.values())[
        ::-1
    ]
    fitting = [c for c in distinct if predicate in (None, c.predicate)]
    if site is not None:
        wanted = [c for c in fitting if site.has(c)]
        if not wanted:
            raise _nothing_there(site, fitting, predicate)
    else:
        wanted = sorted(fitting, key=lambda c: (c.predicate != "crash", c.echo, not c.own))
    if not wanted:
        return None
    first = wanted[0]
    return ChosenFinding(
        first, tuple(c for c in distinct if c is not first and not _same(c, first))
    )


def _same(one: SourceFinding, other: SourceFinding) -> bool:
    """A break that fullgraph=True made an error is that crash."""
    kinds = {one.kind, other.kind} == {"break", "failure"}
    return kinds and one.error == other.error != "" and one.line == other.line


def _nothing_there(site: SitePlace, found: list[SourceFinding], predicate: str | None) -> ToolError:
    what = predicate or "crash, break or recompile"
    places = ", ".join(dict.fromkeys(f"{os.path.basename(c.file)}:{c.line}" for c in found))
    return ToolError(
        f"The program shows no {what} at {site.file}:{site.line}.",
        hint=f"It shows them at {places}." if places else "It shows none at all.",
    )
