"""What the site tells, gathered before a page is drawn: every id with all that is known of it.

Ids are related that speak of the same thing, by the rare words that their types and texts share.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.cases import (
    EXAMPLES,
    BreakCount,
    BreakCounts,
    ExampleFile,
    Unreachable,
    load_break_counts,
    load_unreachable,
    read_examples,
)
from compilescope.knowledge.registry.downloads import current_registry
from compilescope.knowledge.registry.history import (
    HISTORY,
    History,
    fingerprint_of,
    load_history,
    release_of,
    with_table,
)
from compilescope.knowledge.registry.notes import Note, read_notes
from compilescope.knowledge.registry.table import Entry, Registry, Variant
from compilescope.knowledge.registry.taxonomy import (
    Category,
    Taxonomy,
    load_symptoms,
    load_taxonomy,
)
from compilescope.knowledge.registry.torch_copy import (
    BreakSite,
    RaisedBreaks,
    dynamo_sources,
    raised_types,
    read_table,
    torch_of,
)

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
# Chosen, not measured: a page names a few ids that surely belong together, not all that may.
_SHOWN = 6
_LEAST = 0.3
_SHARED = 2  # One rare word may be chance.
_SMALL = 12  # All ids of so small a category are related, and come first.
# A word that many share says nothing, and would make the work grow with the square of the table.
_COMMON = 60
# Chosen likewise: a word of the title, and one's own category, count twice.
_TITLE_WEIGHT = 2.0
_SAME_CATEGORY = 2.0
_NAME_WEIGHT = 2.0  # A name with an underscore is of the matter itself.
_EMPTY = frozenset(
    ("false", "true", "none", "config", "not", "with", "and", "for", "the", "this", "that", "set")
)


def related_ids(table: Registry, taxonomy: Taxonomy) -> dict[str, tuple[Entry, ...]]:
    """For each id the nearest others, the nearest first."""
    vectors = _vectors(table)
    holders: dict[str, list[int]] = defaultdict(list)
    for number, vector in enumerate(vectors):
        for word in vector:
            holders[word].append(number)
    categories = [taxonomy.category_of(entry.gb_id, entry.title) for entry in table]
    found = {}
    for number, entry in enumerate(table):
        likeness: dict[int, float] = defaultdict(float)
        shared: dict[int, int] = defaultdict(int)
        for word, weight in vectors[number].items():
            for other in holders[word]:
                likeness[other] += weight * vectors[other][word]
                shared[other] += 1
        own = categories[number]
        for other in likeness:
            if own is not None and categories[other] is own:
                likeness[other] *= _SAME_CATEGORY
        near = {o for o, much in likeness.items() if much >= _LEAST and shared[o] >= _SHARED}
        kin = _kin(own, categories)
        nearest = sorted(
            (near | kin) - {number},
            key=lambda o: (o not in kin, -round(likeness.get(o, 0.0), 9), o),
        )
        found[entry.gb_id] = tuple(table.entries[other] for other in nearest[:_SHOWN])
    return found


def _kin(own: Category | None, categories: list[Category | None]) -> set[int]:
    """All ids of a small category."""
    if own is None or len(own.ids) > _SMALL:
        return set()
    return {number for number, category in enumerate(categories) if category is own}


def _vectors(table: Registry) -> list[dict[str, float]]:
    """Words by how telling they are, of length one."""
    counted = [_words(entry) for entry in table]
    spread = Counter(word for words in counted for word in words)
    total = len(counted)
    vectors = []
    for words in counted:
        weights = {
            word: much * math.log(total / spread[word])
            for word, much in words.items()
            if 1 < spread[word] <= _COMMON
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        vectors.append({word: weight / length for word, weight in weights.items()})
    return vectors


def _words(entry: Entry) -> dict[str, float]:
    words: dict[str, float] = defaultdict(float)
    for word in _WORD.findall(" ".join(entry.titles).casefold()):
        words[word] += _TITLE_WEIGHT
    for word in _WORD.findall(" ".join((*entry.explanations, *entry.hints)).casefold()):
        words[word] = max(words[word], _NAME_WEIGHT if "_" in word else 1.0)
    return {word: weight for word, weight in words.items() if word not in _EMPTY}


_FIGURES = (
    *("total", "wordings", "several", "examples", "fixed", "outputs", "unreachable", "untried"),
    *("notes", "missing", "no_explanation", "no_hints", "not_raised"),
)


@dataclass(frozen=True)
class Wording:
    """One entry of an id."""

    variant: Variant
    since: str | None
    """The first version on record with these words."""


@dataclass(frozen=True)
class Page:
    """All that is known of one id."""

    entry: Entry
    wordings: tuple[Wording, ...]
    category: Category | None
    since: str | None
    example: ExampleFile | None
    output: str
    """What the tool prints for the example; empty where nobody has written it down."""
    unreachable: Unreachable | None
    note: Note | None
    """What comes with this version."""
    places: tuple[BreakSite, ...]
    """Where torch raises it."""
    raised: bool | None
    """None where there is no source to look into."""
    related: tuple[Entry, ...]
    own: Note | None = None
    """The user's own, which stands above the other."""
    met: BreakCount | None = None
    """How often it was met; None: never, where we counted."""

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(note for note in (self.own, self.note) if note is not None)

    @property
    def gb_id(self) -> str:
        return self.entry.gb_id

    @property
    def title(self) -> str:
        return self.entry.title

    @property
    def marks(self) -> tuple[str, ...]:
        """What it has that a reader may look for."""
        marks = {
            "example": self.example is not None,
            "fixed": self.example is not None and self.example.has_fixed,
            "note": bool(self.notes),
            "several": len(self.wordings) > 1,
            "unraised": self.raised is False,
            "missing": bool(self.missing),
        }
        return tuple(name for name, has in marks.items() if has)

    @property
    def missing(self) -> tuple[str, ...]:
        """What PyTorch's table leaves out."""
        parts = {"explanation": self.entry.explanations, "hints": self.entry.hints}
        return tuple(name for name, words in parts.items() if not words)


@dataclass(frozen=True)
class Content:
    """The site before it is drawn."""

    table: Registry
    release: str | None
    """The release that the table is of, as far as it is known."""
    taxonomy: Taxonomy
    history: History
    pages: tuple[Page, ...]
    symptoms: dict[str, tuple[str, ...]]
    by_id: dict[str, Page] = field(repr=False, default_factory=dict)
    met: BreakCounts = field(default_factory=BreakCounts)

    @property
    def name(self) -> str:
        if self.table.name:
            return self.table.name
        return f"torch {self.table.torch or self.release}" if self._torch else "a custom table"

    @property
    def _torch(self) -> str | None:
        return self.table.torch or self.release

    def of_category(self, category_id: str | None) -> tuple[Page, ...]:
        return tuple(
            p for p in self.pages if (p.category.id if p.category else None) == category_id
        )

    def neighbours(self, page: Page) -> tuple[Page | None, Page | None]:
        """The pages before and after it."""
        at = self.pages.index(page)
        before = self.pages[at - 1] if at else None
        return before, self.pages[at + 1] if at + 1 < len(self.pages) else None

    def with_notes(self, own: Mapping[str, Note]) -> Content:
        """The same with the user's own notes."""
        pages = tuple(
            replace(page, own=own.get(page.gb_id))
            if page.own is not None or page.gb_id in own
            else page
            for page in self.pages
        )
        return replace(self, pages=pages, by_id={page.gb_id: page for page in pages})

    @cached_property
    def ranked(self) -> tuple[Page, ...]:
        """The pages in the order in which readers need them: what is met most often first."""
        return tuple(sorted(self.pages, key=lambda page: self.met.rank(page.gb_id)))

    @property
    def uncategorised(self) -> tuple[Page, ...]:
        return self.of_category(None)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The figures of the dashboard."""
        counts = dict.fromkeys(_FIGURES, 0) | {"total": len(self.pages)}
        for page in self.pages:
            counts["wordings"] += len(page.wordings)
            counts["examples"] += page.example is not None
            counts["fixed"] += page.example is not None and page.example.has_fixed
            counts["outputs"] += bool(page.output)
            counts["unreachable"] += page.example is None and page.unreachable is not None
            counts["untried"] += page.example is None and page.unreachable is None
            counts["notes"] += bool(page.notes)
            counts["missing"] += bool(page.missing)
            counts["several"] += len(page.wordings) > 1
            counts["not_raised"] += page.raised is False
            for name in page.missing:
                counts[f"no_{name}"] += 1
        return counts


@dataclass(frozen=True)
class SiteSources:
    """Where the site is made from. None: what comes with this version."""

    table: Path | None = None
    """A JSON file, a wheel or a folder; None is the downloaded one, else the installed torch's."""
    notes: Path | None = None
    """The user's own, beside those that come with this version."""
    examples: Path | None = None
    history: Path | None = None


def gather(sources: SiteSources) -> Content:
    table = read_table(sources.table) if sources.table else current_registry()
    taxonomy = load_taxonomy()
    history = load_history(sources.history or HISTORY)
    release = release_of(table.torch) or history.version_of(table)
    if release is not None and release not in _versions(history):
        history = with_table(history, table, release)
    raised = _raised(table, sources)
    notes = read_notes()
    own = read_notes(sources.notes) if sources.notes is not None else {}
    examples = read_examples(sources.examples or EXAMPLES)
    unreachable = load_unreachable()
    related = related_ids(table, taxonomy)
    met = load_break_counts()
    pages = []
    for entry in table:
        example = examples.get(entry.gb_id)
        pages.append(
            Page(
                entry=entry,
                wordings=_wordings(entry, history),
                category=taxonomy.category_of(entry.gb_id, entry.title),
                since=history.since(entry.gb_id),
                example=example,
                output=(example.output or "") if example else "",
                unreachable=unreachable.get(entry.gb_id),
                note=notes.get(entry.gb_id),
                places=_places(entry, raised),
                raised=None if raised is None else any(map(raised.raises, entry.titles)),
                related=related[entry.gb_id],
                own=own.get(entry.gb_id),
                met=met.ids.get(entry.gb_id),
            )
        )
    by_id = {page.gb_id: page for page in pages}
    return Content(table, release, taxonomy, history, tuple(pages), load_symptoms(), by_id, met)


def _versions(history: History) -> set[str]:
    return {version for step in history.steps for version in (step.torch, *step.also)}


def _wordings(entry: Entry, history: History) -> tuple[Wording, ...]:
    found = []
    for variant in entry.variants:
        since = history.worded_since(entry.gb_id, fingerprint_of(variant.raw))
        found.append(Wording(variant, since))
    return tuple(found)


def _raised(table: Registry, sources: SiteSources) -> RaisedBreaks | None:
    """From the source of the torch that the table belongs to, where that is at hand."""
    copy = torch_of(table)
    if sources.table is not None and not copy and sources.table.suffix == ".whl":
        copy = sources.table
    found = raised_types(dynamo_sources(copy)) if copy else None
    return found if found is not None and found.calls else None


def _places(entry: Entry, raised: RaisedBreaks | None) -> tuple[BreakSite, ...]:
    if raised is None:
        return ()
    found = [call for title in entry.titles for call in raised.places(title)]
    return tuple(dict.fromkeys(found))


def check_sources(sources: SiteSources) -> None:
    """Say what cannot be read before anything is made of the rest."""
    for folder in (sources.notes, sources.examples):
        if folder is not None and not folder.is_dir():
            raise ToolError(f"There is no folder {folder}.")
