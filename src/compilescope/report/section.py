"""What a section of a report is, what it is drawn from, and how much of a long list it draws."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import msgspec

from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.knowledge.analysis.partial_digest import digest_of_drawn, is_long
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import (
    RecompiledFrame,
    RecompileFinding,
    count_strictly,
    recompile_findings,
)
from compilescope.knowledge.registry.pages import Pages
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import FixAttempt, LogRead
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.report.blocks import Block, Fold, Paragraph, Quote, Span, Table, note, words
from compilescope.report.finding import ShownAdvice

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.stages.staged_graphs import StagedGraph


T = TypeVar("T")

MOST_ITEMS = 60
"""A page must open in any browser: more entries of a section are named, not drawn. Chosen;
benchmarks/big_runs.py holds a page to 10 s and 3 MB."""
MOST_IN_FULL = 1_000
"""Entries of a section in a text: nobody reads more, and JSON has them all. Chosen."""
_IN_FULL_OF_LONG = 200
"""The same of a long run, of which each entry takes longer to explain. Chosen; as below."""
MOST_FILES = 40
"""As many files are drawn with what each line lost. Chosen: likewise."""
_ASKED_OF_LONG, _ASKED_FOR_SUMMARY = 40, 20
"""Causes. Of a long run there are seconds to spare for the worst causes only. Chosen;
benchmarks/big_runs.py holds `show` to 5 s."""


class Reading(msgspec.Struct, frozen=True, dict=True):
    """A run as a report reads it."""

    run: Run
    full: bool = False
    """The whole story, or the summary that a user sees first."""
    page: bool = False
    """Drawn as a page, whose first screen tells the most expensive causes before their time."""
    text: bool = False
    """Drawn as a text to read, and no more: nothing is explained that it has no room for."""
    pages: Pages | None = None
    """Where graph breaks are explained at length; None where no link is wanted."""
    jobs_at: str = ""
    """The address that a sweep's jobs have their pages under; empty where they have none."""
    quotes: Mapping[str, Quote] = msgspec.field(default_factory=dict)
    """What a language model said of causes, by fingerprint."""
    drawn: int | None = None
    """The number of causes that the report shows. None: all. The cause `only` is always shown."""
    only: int | None = None
    """The number of the one cause that is drawn: of a long run the fixes are asked about it alone,
    and without a limit."""
    strict: bool = False
    """Every recompile counts as lost, also those for versions that the program needs."""
    explain: Callable[[int], str] = "compilescope explain --cause {}".format
    """The command that explains a cause in full."""
    reader: Literal["command line", "python"] = "command line"
    """Who reads: in a notebook nobody can give a flag."""

    @functools.cached_property
    def _made(self) -> dict[Callable[[Reading], object], object]:
        return {}

    @functools.cached_property
    def digest(self) -> Digest:
        """With what to do about each cause."""
        seen, ranked = self._unadvised()
        if self.strict:
            seen = msgspec.structs.replace(seen, recompiles=count_strictly(seen.recompiles))
        if not (seen.sites or seen.recompiles or seen.failures):
            return seen  # Nothing to ask the fixes about: they are not imported.
        from compilescope.change.fixes.advice import advised

        only = self.only if is_long(self.run) else None
        return advised(self.run, seen, self.most_asked, only=only, ranked=ranked or ())

    def _unadvised(self) -> tuple[Digest, list[Finding] | None]:
        """And its causes by cost, where they are known already."""
        if is_long(self.run) and self.drawn is not None:
            only = [] if self.only is None else [self.only]
            return digest_of_drawn(self.run, [*range(1, self.drawn + 1), *only])
        # Of a page of causes alone (`explain`) each is drawn.
        if is_long(self.run) and self.full and (self.page or self.text):
            most = self.most_items
            return digest_of_drawn(self.run, range(1, most + 1), most, MOST_FILES)
        return digest(self.run), None

    @property
    def most_asked(self) -> int:
        """The fixes are asked about causes up to this number."""
        from compilescope.change.fixes.advice import MOST_ASKED

        if not is_long(self.run):
            return MOST_ASKED
        return _ASKED_OF_LONG if self.full else _ASKED_FOR_SUMMARY

    @property
    def most_items(self) -> int:
        """Entries of a long list that are drawn."""
        if self.page:
            return MOST_ITEMS
        return _IN_FULL_OF_LONG if self.text and is_long(self.run) else MOST_IN_FULL

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """Every cause, ranked as in the digest."""
        return findings(self.digest)

    @functools.cached_property
    def causes(self) -> list[Finding]:
        """Most expensive first; a cause's number is its place in this list, from 1."""
        return by_cost(self.findings)

    @functools.cached_property
    def sites_of(self) -> dict[str, list[BreakFinding]]:
        """Graph breaks by the fingerprint of their cause."""
        found: dict[str, list[BreakFinding]] = {}
        for site in self.digest.sites:
            found.setdefault(site.fingerprint, []).append(site)
        return found

    @functools.cached_property
    def recompiles_of(self) -> dict[str, list[tuple[RecompiledFrame, RecompileFinding]]]:
        """Recompiled functions and the guards that failed, by the fingerprint of their cause."""
        found: dict[str, list[tuple[RecompiledFrame, RecompileFinding]]] = {}
        for frame in self.digest.recompiles:
            for finding in recompile_findings(frame, self.root):
                found.setdefault(finding.fingerprint, []).append((frame, finding))
        return found

    @functools.cached_property
    def told(self) -> ShownAdvice:
        """Of changes, so far in this document."""
        first = next(iter(self.run.header.command), "")
        return ShownAdvice(
            in_python=self.reader == "python",
            from_log=self.run.count(LogRead) > 0,
            doubts=dict(self._doubts()),
            from_stdin=first == "-",
            runner=first if first == "pytest" else "",
            folding=self.page,
        )

    def _doubts(self) -> Iterator[tuple[str, str]]:
        """Why the fixes of a log's script could not be verified; of one that has two reasons, the
        first."""
        if self.run.count(LogRead):
            tried = [each for _, each in self.run.of(FixAttempt) if each.verdict == "unverified"]
            yield from ((each.fix, each.reason) for each in reversed(tried) if each.reason)

    @functools.cached_property
    def sources(self) -> Sources:
        return Sources(self.run)

    @functools.cached_property
    def break_names(self) -> dict[str, str]:
        """What each graph break is called where others speak of it, by fingerprint."""
        return {site.fingerprint: f"break {n}" for n, site in enumerate(self.digest.sites, 1)}

    @functools.cached_property
    def events_by_id(self) -> dict[str, Event]:
        return {event.id: event for event in self.run.events}

    @functools.cached_property
    def graphs(self) -> list[StagedGraph]:
        """In the order in which work on them began."""
        from compilescope.knowledge.analysis.stages.staged_graphs import staged_graphs

        return staged_graphs(self.run)

    @functools.cached_property
    def graph_groups(self) -> list[list[StagedGraph]]:
        """Those with the same code together."""
        from compilescope.knowledge.analysis.stages.reader import StageReader
        from compilescope.report.graph_panes import equal_graphs

        return equal_graphs(self.graphs, StageReader(self.run, self.sources))

    def once(self, make: Callable[[Reading], T]) -> T:
        """What several sections need and none of them owns: made when the first one asks."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(T, self._made[make])

    @property
    def see_all(self) -> str:
        """Where a list that was cut short is whole."""
        return "`.digest` has them all" if self.reader == "python" else "see --json"

    @property
    def root(self) -> str:
        return self.run.header.root


class Section(msgspec.Struct, frozen=True):
    """A part of the report. One that builds no blocks is left out."""

    id: str
    order: int
    build: Callable[[Reading], list[Block]]
    title: str = ""
    note: str = ""
    in_summary: bool = True
    """Part of what `show` prints; every section is part of the full report."""


def first_items(
    reading: Reading, found: Sequence[T], draw: Callable[[int, T], Block], section: str
) -> list[Block]:
    """Each drawn with its number, from 1; of very many only the first ones."""
    most = reading.most_items
    blocks = [draw(number, each) for number, each in enumerate(found[:most], 1)]
    if len(found) > most:
        blocks.append(_more(reading, len(found) - most, section))
    return blocks


def bounded(reading: Reading, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Of a long run, whose sections may all be long: what a list or a table has beyond what anyone
    reads is counted."""
    most = MOST_IN_FULL
    found: list[Block] = []
    for block in blocks[:most]:
        if isinstance(block, Table) and len(block.rows) > most:
            left = len(block.rows) - most
            block = msgspec.structs.replace(block, rows=block.rows[:most])
            found += [block, note(f"and {left:,} more; {reading.see_all}")]
        elif isinstance(block, Fold):
            found.append(msgspec.structs.replace(block, blocks=bounded(reading, block.blocks)))
        else:
            found.append(block)
    if len(blocks) > most:
        found.append(note(f"and {len(blocks) - most:,} more; {reading.see_all}"))
    return tuple(found)


def _more(reading: Reading, left: int, section: str) -> Block:
    if not reading.page:
        return note(f"and {left:,} more; {reading.see_all}")
    command = ["compilescope", "show", "--all", "--section", section, reading.digest.run]
    return Paragraph(words(f"and {left:,} more: ", Span(shlex.join(command), "code")))
