"""The digest for a view that draws a few of very many causes: the others are not explained.

To explain a cause is to parse its file and to ask every rule. Which causes come first takes little
of that, so that their order and their numbers are those of the whole digest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.knowledge.analysis.line_costs import costliest_files
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompiledFrame
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES
from compilescope.knowledge.source.spots import Sources
from compilescope.record.body import FindingKind
from compilescope.record.run import Run
from compilescope.record.uncollected import uncollected

_Entry = TypeVar("_Entry", BreakFinding, RecompiledFrame, FailureFinding)
_MOST_OF_FILE = 300
"""Entries of one list that are explained in a file, the first ones. Chosen: as many as the longest
file has that someone wrote; generated ones have tens of thousands, on lines that no page draws."""
_MOST_NEEDED = 40
"""Functions with versions that are no loss which are explained. Chosen: more than are named."""
_LONG = 20_000
"""Events. Chosen: a report of such a run is slow as it is (benchmarks/big_runs.py has 100,000)."""


def is_long(run: Run) -> bool:
    """So many events that a report has little time for anything else."""
    return len(run.events) > _LONG


class RankedDigest(NamedTuple):
    """A digest of which some causes are explained, and the order of all of them."""

    digest: Digest
    causes: list[Finding]
    """Most expensive first, none of them explained: to find them all takes as long as to explain a
    few."""


@uncollected()
def digest_of_drawn(run: Run, is_drawn: Callable[[int], bool]) -> RankedDigest:
    """As `digest`, where only causes of the numbers that are drawn, and those beside them that a
    fix looks at, have their category, their reason, their remedies and their stretch of source."""
    seen = digest(run, explained=False)
    causes = by_cost(findings(seen))
    drawn = _DrawnCauses(Sources(run), [each for n, each in enumerate(causes, 1) if is_drawn(n)])
    seen = msgspec.structs.replace(
        seen,
        sites=tuple(map(drawn.site, seen.sites)),
        recompiles=tuple(map(drawn.frame, seen.recompiles)),
        failures=tuple(map(drawn.failure, seen.failures)),
    )
    return RankedDigest(seen, causes)


@uncollected()
def digest_of_files(run: Run, most_entries: int, most_files: int) -> RankedDigest:
    """As `digest`, where all that lies in a file that a page draws something of is explained, and
    nothing else: to parse a file is what takes time and memory. A page draws the first entries of
    each list, the most expensive of all causes, and the files that lose most."""
    seen = digest(run, explained=False)
    found = by_cost(findings(seen))
    lists = (found, seen.sites, seen.recompiles, seen.failures)
    files = {each.file for entries in lists for each in entries[:most_entries]}
    files |= costliest_files(seen, most_files)
    # The line behind a guard may lie in another file than the function that is compiled again.
    files |= {
        frame.file
        for frame in seen.recompiles
        if any(cause.file in files for cause in frame.causes)
    }
    sources = Sources(run)
    # File by file: not every file's tree is kept.
    by_file = sorted(files)
    worst = {(each.kind, each.fingerprint) for each in found[:most_entries]}

    def is_worst(entry: BreakFinding | RecompiledFrame | FailureFinding) -> bool:
        """Of thousands of entries that are one cause the first is."""
        names = worst.intersection(_names(entry))
        worst.difference_update(names)
        return bool(names)

    from compilescope.knowledge.rules.causes.explanations import (
        explained_failure,
        explained_frame,
        explained_site,
    )

    sites = {
        number: site if site.rule in DEVICE_RULES else explained_site(site, sources)
        for number, site in _of_files(seen.sites, by_file, is_worst)
    }
    frames = {
        number: explained_frame(frame, sources)
        for number, frame in _of_files(seen.recompiles, by_file, is_worst)
    }
    failed = {
        number: explained_failure(failure, sources)
        for number, failure in _of_files(seen.failures, by_file, is_worst)
    }
    seen = msgspec.structs.replace(
        seen,
        sites=tuple(sites.get(n, each) for n, each in enumerate(seen.sites)),
        recompiles=tuple(frames.get(n, each) for n, each in enumerate(seen.recompiles)),
        failures=tuple(failed.get(n, each) for n, each in enumerate(seen.failures)),
    )
    return RankedDigest(seen, found)


@uncollected()
def digest_of_first(run: Run, most: int) -> tuple[Digest, bool]:
    """As `digest`, where no more than the first `most` causes of each list are explained; and
    whether these are all."""
    from compilescope.knowledge.rules.causes.explanations import (
        explained_failure,
        explained_frame,
        explained_site,
    )

    seen = digest(run, explained=False)
    sources = Sources(run)
    own = {number: site for number, site in enumerate(seen.sites) if site.rule in DEVICE_RULES}
    others = [number for number in range(len(seen.sites)) if number not in own]
    frames = [
        number
        for number, before in enumerate(
            itertools.accumulate(len(frame.causes) for frame in seen.recompiles)
        )
        if before <= most
    ]
    failed = range(min(most, len(seen.failures)))
    whole = len(others) <= most and len(frames) == len(seen.recompiles)
    explained = msgspec.structs.replace(
        seen,
        sites=_explained(seen.sites, others[:most], explained_site, sources),
        recompiles=_explained(seen.recompiles, frames, explained_frame, sources),
        failures=_explained(seen.failures, failed, explained_failure, sources),
    )
    return explained, whole and len(failed) == len(seen.failures)


def _explained(
    entries: tuple[_Entry, ...],
    numbers: Iterable[int],
    explain: Callable[[_Entry, Sources], _Entry],
    sources: Sources,
) -> tuple[_Entry, ...]:
    """The entries, those of these numbers explained."""
    found = list(entries)
    # File by file: not every file's tree is kept.
    for number in sorted(numbers, key=lambda number: entries[number].file):
        found[number] = explain(entries[number], sources)
    return tuple(found)


def _names(entry: BreakFinding | RecompiledFrame | FailureFinding) -> list[tuple[FindingKind, str]]:
    """Of the causes that it is, or a part of."""
    findings = entry.causes if isinstance(entry, RecompiledFrame) else (entry,)
    return [(each.kind, each.fingerprint) for each in findings]


def _of_files(
    entries: Sequence[_Entry], files: Iterable[str], is_worst: Callable[[_Entry], bool]
) -> Iterator[tuple[int, _Entry]]:
    """Those of one file after the other, each with its index; of very many in a file the first and
    the worst."""
    lying: dict[str, list[tuple[int, _Entry]]] = {}
    for number, entry in enumerate(entries):
        others = lying.setdefault(entry.file, [])
        if len(others) < _MOST_OF_FILE or is_worst(entry):
            others.append((number, entry))
    for file in files:
        yield from lying.get(file, ())


class _DrawnCauses:
    def __init__(self, sources: Sources, drawn: Iterable[Finding]) -> None:
        self._sources = sources
        self._left = {(each.kind, each.fingerprint) for each in drawn}
        """Of several with one name, which are one cause, the first is what is drawn."""
        self._room = dict.fromkeys((each.file for each in drawn), _MOST_OF_FILE)
        """How many more sites are placed in each file that something is drawn of."""
        self._needed = _MOST_NEEDED

    def site(self, site: BreakFinding) -> BreakFinding:
        from compilescope.knowledge.rules.causes.explanations import explained_site, placed_site

        if site.rule in DEVICE_RULES:
            return site
        if self._takes("break", site.fingerprint):
            return explained_site(site, self._sources)
        # A fix may change all that Dynamo stopped at in a function.
        room = self._room.get(site.file, 0)
        if not room:
            return site
        self._room[site.file] = room - 1
        return placed_site(site, self._sources)

    def frame(self, frame: RecompiledFrame) -> RecompiledFrame:
        """With all causes or none: a fix looks at what else failed."""
        drawn = any([self._takes("recompile", each.fingerprint) for each in frame.causes])
        # The summary names what a program needs several versions for.
        if not drawn and self._needed and any([each.needed for each in frame.causes]):
            self._needed -= 1
            drawn = True
        if not drawn:
            return frame
        from compilescope.knowledge.rules.causes.explanations import explained_frame

        return explained_frame(frame, self._sources)

    def failure(self, failure: FailureFinding) -> FailureFinding:
        if not self._takes("failure", failure.fingerprint):
            return failure
        from compilescope.knowledge.rules.causes.explanations import explained_failure

        return explained_failure(failure, self._sources)

    def _takes(self, kind: FindingKind, name: str) -> bool:
        """Is it drawn?"""
        if (kind, name) not in self._left:
            return False
        self._left.remove((kind, name))
        return True
