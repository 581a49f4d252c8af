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

_AnyEntry = BreakFinding | RecompiledFrame | FailureFinding
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
def digest_of_drawn(
    run: Run, numbers: Iterable[int], most_entries: int = 0, most_files: int = 0
) -> RankedDigest:
    """As `digest`, where all that lies in a file that something is drawn of is explained, and
    nothing else: to parse a file is what takes time and memory, and a fix looks at what else its
    function lost. Drawn are the causes of these numbers, the first entries of each list, and the
    files that lose most."""
    seen = digest(run, explained=False)
    found = by_cost(findings(seen))
    drawn = [found[number - 1] for number in numbers if number <= len(found)]
    lists: list[Sequence[_AnyEntry]] = [seen.sites, seen.recompiles, seen.failures]
    entries = [entry for each in lists for entry in each[:most_entries]]
    # The summary names what a program needs several versions for.
    needed = itertools.islice(filter(_is_needed, seen.recompiles), _MOST_NEEDED)
    files = {each.file for each in (*drawn, *entries, *needed)}
    if most_files:
        files |= costliest_files(seen, most_files)
    # The line behind a guard may lie in another file than the function that is compiled again.
    files |= {
        frame.file
        for frame in seen.recompiles
        if any(cause.file in files for cause in frame.causes)
    }
    worst = {(each.kind, each.fingerprint) for each in drawn}

    def is_worst(entry: _AnyEntry) -> bool:
        """Of thousands of entries that are one cause the first is."""
        names = worst.intersection(_names(entry))
        worst.difference_update(names)
        return bool(names)

    sites, frames, failed = (_of_files(each, files, is_worst) for each in lists)
    return RankedDigest(_explained(run, seen, sites, frames, failed), found)


@uncollected()
def digest_of_first(run: Run, most: int) -> tuple[Digest, bool]:
    """As `digest`, where no more than the first `most` causes of each list are explained; and
    whether these are all."""
    seen = digest(run, explained=False)
    sites = [number for number, site in enumerate(seen.sites) if site.rule not in DEVICE_RULES]
    before = itertools.accumulate(len(frame.causes) for frame in seen.recompiles)
    frames = [number for number, causes in enumerate(before) if causes <= most]
    failed = range(min(most, len(seen.failures)))
    whole = len(sites) <= most and len(frames) == len(seen.recompiles)
    return (
        _explained(run, seen, sites[:most], frames, failed),
        whole and len(failed) == len(seen.failures),
    )


def _explained(
    run: Run, seen: Digest, sites: Iterable[int], frames: Iterable[int], failed: Iterable[int]
) -> Digest:
    """With the entries of these indices explained."""
    from compilescope.knowledge.rules.causes.explanations import (
        explained_failure,
        explained_frame,
        explained_site,
    )

    sources = Sources(run)

    def explain(
        entries: tuple[_Entry, ...],
        numbers: Iterable[int],
        explained: Callable[[_Entry, Sources], _Entry],
    ) -> tuple[_Entry, ...]:
        found = list(entries)
        # File by file: not every file's tree is kept.
        for number in sorted(numbers, key=lambda number: entries[number].file):
            found[number] = explained(entries[number], sources)
        return tuple(found)

    def site_explained(site: BreakFinding, sources: Sources) -> BreakFinding:
        return site if site.rule in DEVICE_RULES else explained_site(site, sources)

    return msgspec.structs.replace(
        seen,
        sites=explain(seen.sites, sites, site_explained),
        recompiles=explain(seen.recompiles, frames, explained_frame),
        failures=explain(seen.failures, failed, explained_failure),
    )


def _is_needed(frame: RecompiledFrame) -> bool:
    return any([cause.needed for cause in frame.causes])


def _names(entry: _AnyEntry) -> list[tuple[FindingKind, str]]:
    """Of the causes that it is, or a part of."""
    findings = entry.causes if isinstance(entry, RecompiledFrame) else (entry,)
    return [(each.kind, each.fingerprint) for each in findings]


def _of_files(
    entries: Sequence[_AnyEntry], files: set[str], is_worst: Callable[[_AnyEntry], bool]
) -> Iterator[int]:
    """The indices of those in these files; of very many in a file the first and the worst."""
    seen: dict[str, int] = dict.fromkeys(files, 0)
    for number, entry in enumerate(entries):
        if entry.file in seen and (seen[entry.file] < _MOST_OF_FILE or is_worst(entry)):
            seen[entry.file] += 1
            yield number
