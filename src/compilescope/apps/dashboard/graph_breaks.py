"""The registry as the dashboard shows it: gathered once, with the user's notes as they are now."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.downloads import current_file
from compilescope.knowledge.registry.history import release_key
from compilescope.knowledge.registry.notes import own_notes
from compilescope.knowledge.registry.table import normal_id
from compilescope.report.site.content import Content, Page, SiteSources, gather

_MOST_CHARACTERS = 20_000
"""Of a search. Chosen: a pasted traceback fits."""
_IDS = re.compile(r"(?<![A-Za-z0-9])GB0*([0-9]{1,6})(?![A-Za-z0-9])", re.IGNORECASE)
_HAS = ("example", "fixed", "note", "several", "unraised", "missing")
_MEANS = ("config", "rewrite", "judgement", "upgrade")
_SORTS = ("best", "met", "id", "type", "category", "newest")
_LONG = 7
"""Words. Chosen: a search finds what has all of them, and of a longer text (a pasted message)
nothing does."""
_TELLING = 10
"""Letters. Chosen: a shorter type is a word that any text may have by chance."""


class GraphBreaks:
    """The table that was downloaded last, else that of the installed torch."""

    def __init__(self, notes: Path | None) -> None:
        self.notes = notes

    def content(self) -> Content:
        """Takes seconds the first time. Raises `ToolError` where there is no table."""
        path = current_file()
        with _GATHERING:
            found = _gathered(path, _mark(path))
        return found.with_notes(own_notes(self.notes) if self.notes is not None else {})


_GATHERING = threading.Lock()


@lru_cache(maxsize=1)
def _gathered(path: Path, mark: object) -> Content:
    """Once for a table: it is another one when torch was installed anew."""
    return gather(SiteSources())


def _mark(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class RegistryQuery:
    """What a reader looks for."""

    q: str = ""
    category: str = ""
    since: str = ""
    has: str = ""
    means: str = ""
    sort: str = ""

    @property
    def asks(self) -> bool:
        return any((self.q.strip(), self.category, self.since, self.has, self.means))

    def check(self, content: Content) -> None:
        known = {
            "category": {"none", *(category.id for category in content.taxonomy)},
            "since": {step.torch for step in content.history.steps},
            "has": _HAS,
            "means": _MEANS,
            "sort": _SORTS,
        }
        if len(self.q) > _MOST_CHARACTERS:
            raise ToolError(f"A search may have at most {_MOST_CHARACTERS:,} characters.")
        for name, allowed in known.items():
            value = getattr(self, name)
            if value and value not in allowed:
                raise ToolError(f"There is no {name} {value[:60]!r}.")


def find(content: Content, question: RegistryQuery) -> list[Page]:
    """The pages that fit, best first; as `compilescope registry search` ranks them."""
    question.check(content)
    pages = list(content.ranked)
    if question.q.strip():
        pages = _matching(content, question.q)
    pages = [page for page in pages if _fits(page, question)]
    keys = {
        "met": lambda page: content.ranked.index(page),
        "id": lambda page: content.pages.index(page),
        "type": lambda page: page.title.casefold(),
        "category": lambda page: page.category.id if page.category else "~",
    }
    if question.sort in keys:
        pages.sort(key=keys[question.sort])
    elif question.sort == "newest":
        pages.sort(key=lambda page: release_key(page.since or "999"), reverse=True)
    return pages


def _matching(content: Content, text: str) -> list[Page]:
    """Ids that are named, then types that a pasted message has, then all that have the words."""
    table = content.table
    named = [f"GB{int(number):04d}" for number in _IDS.findall(text)]
    only = normal_id(text)
    found = [only] if only else named
    folded = " ".join(text.casefold().split())
    lines = {" ".join(line.split()).casefold() for line in text.splitlines()}
    for entry in table:
        titles = [" ".join(title.casefold().split()) for title in entry.titles]
        if any(t in lines or (len(t) >= _TELLING and t in folded) for t in titles):
            found.append(entry.gb_id)
    if len(text.split()) <= _LONG:
        labels = {
            page.gb_id: " ".join((page.category.id, page.category.title))
            for page in content.pages
            if page.category
        }
        ranked = [entry.gb_id for entry in table.search([text], labels)]
        # Of a few words the ranking says more than the types that they happen to be.
        found = [*named, *ranked, *found] if not only else [*found, *ranked]
    return [content.by_id[gb_id] for gb_id in dict.fromkeys(found) if gb_id in content.by_id]


def _fits(page: Page, question: RegistryQuery) -> bool:
    category = page.category.id if page.category else "none"
    return (
        (not question.category or category == question.category)
        and (not question.since or page.since == question.since)
        and (not question.has or question.has in page.marks)
        and (not question.means or bool(page.category and question.means in page.category.means))
    )
