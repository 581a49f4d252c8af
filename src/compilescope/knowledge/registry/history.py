"""How PyTorch's table differs from version to version: what came, what went, what was worded anew.

`difference` compares two tables. Which torch brought which graph break is in history.json, which
this reads and adds to: it has a step for each table that differs from the one before it.
`tools/registry_upkeep.py compare --record` adds one, from the tables of released wheels.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.table import Entry, RawVariant, Registry, normal_id
from compilescope.record.plain_files import read_given

HISTORY = Path(__file__).with_name("history.json")
_RELEASE = re.compile(r"\d+(?:\.\d+)+")


class NewBreak(msgspec.Struct, frozen=True):
    """An id that a version brought."""

    title: str
    wordings: tuple[str, ...]
    """Fingerprints, the newest first."""


class HistoryStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version of torch, as it differs from the one before."""

    torch: str
    also: tuple[str, ...] = ()
    """Later versions with the very same table."""
    came: dict[str, NewBreak] = {}
    went: tuple[str, ...] = ()
    reworded: dict[str, tuple[str, ...]] = {}


class History(msgspec.Struct, frozen=True, dict=True):
    """The steps, the oldest first."""

    steps: tuple[HistoryStep, ...] = ()

    @cached_property
    def tables(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """The ids and wordings of each version."""
        tables: dict[str, dict[str, tuple[str, ...]]] = {}
        now: dict[str, tuple[str, ...]] = {}
        for step in self.steps:
            now = {gb_id: words for gb_id, words in now.items() if gb_id not in step.went}
            now |= {gb_id: came.wordings for gb_id, came in step.came.items()}
            now |= step.reworded
            tables[step.torch] = now
        return tables

    @cached_property
    def titles(self) -> dict[str, str]:
        """Every id that ever was, with the type it came with."""
        return {gb_id: came.title for step in self.steps for gb_id, came in step.came.items()}

    @cached_property
    def _since(self) -> dict[str, str]:
        return {gb_id: step.torch for step in reversed(self.steps) for gb_id in step.came}

    @cached_property
    def _worded(self) -> dict[tuple[str, str], str]:
        first: dict[tuple[str, str], str] = {}
        for torch, table in self.tables.items():
            for gb_id, words in table.items():
                for word in words:
                    first.setdefault((gb_id, word), torch)
        return first

    def since(self, gb_id: str) -> str | None:
        """The first version that has the id; None where no table on record has it."""
        return self._since.get(gb_id)

    def worded_since(self, gb_id: str, fingerprint: str) -> str | None:
        """The first version with this wording of the id."""
        return self._worded.get((gb_id, fingerprint))

    def version_of(self, table: Registry) -> str | None:
        """The version on record that has exactly this table."""
        now = {entry.gb_id: wordings(entry) for entry in table}
        return next((torch for torch, known in self.tables.items() if known == now), None)


def release_of(torch: str | None) -> str | None:
    """`2.13.0` of `2.13.0+cpu`; None for what is no release, such as a nightly."""
    base = (torch or "").partition("+")[0]
    return base if _RELEASE.fullmatch(base) else None


def release_key(torch: str) -> tuple[int, ...]:
    return tuple(int(part) for part in torch.split("."))


def with_table(history: History, table: Registry, torch: str) -> History:
    """The history with the table of one more version, in its place among the others."""
    tables = {**history.tables, torch: {entry.gb_id: wordings(entry) for entry in table}}
    titles = {entry.gb_id: entry.title for entry in table} | history.titles
    also = {step.torch: step.also for step in history.steps}
    steps: list[HistoryStep] = []
    before: dict[str, tuple[str, ...]] = {}
    for version in sorted(tables, key=release_key):
        now = tables[version]
        if steps and now == before:
            same = (*steps[-1].also, version, *also.get(version, ()))
            steps[-1] = msgspec.structs.replace(steps[-1], also=tuple(dict.fromkeys(same)))
            continue
        steps.append(
            HistoryStep(
                version,
                also.get(version, ()),
                {g: NewBreak(titles[g], words) for g, words in now.items() if g not in before},
                tuple(g for g in before if g not in now),
                {g: words for g, words in now.items() if g in before and words != before[g]},
            )
        )
        before = now
    return History(tuple(steps))


@lru_cache(maxsize=4)
def load_history(path: Path = HISTORY) -> History:
    """The history that comes with this version, or that of a file."""
    try:
        history = msgspec.json.decode(read_given(path), type=History)
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolError(f"The history {path} could not be read: {why}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolError(f"The history {path} is not valid: {error}.") from None
    versions = [step.torch for step in history.steps]
    ids = [*history.titles, *(g for step in history.steps for g in (*step.went, *step.reworded))]
    if any(release_of(torch) != torch for torch in versions):
        raise ToolError(
            f"The history {path} is not valid: it names a version that is not a release."
        )
    if versions != sorted(set(versions), key=release_key):
        raise ToolError(f"The history {path} is not valid: its versions are not in order.")
    if any(normal_id(gb_id) != gb_id for gb_id in ids):
        raise ToolError(
            f"The history {path} is not valid: it names something that is not a graph-break id."
        )
    return history


class RewordedBreak(msgspec.Struct, frozen=True):
    """An id whose newest wording is another one."""

    gb_id: str
    title: str
    """The newer one."""
    changes: dict[str, tuple[str, str]]
    """What differs in the newest wording: `type`, `context`, `explanation`, `hints`; before and
    after. Empty where only earlier wordings were added, dropped or put in another order."""


class TableDifference(msgspec.Struct, frozen=True):
    """From one table to another. Each list is in order of id."""

    before: str | None
    """The versions of torch; None for a table that does not say."""
    after: str | None
    came: tuple[Entry, ...]
    went: tuple[Entry, ...]
    reworded: tuple[RewordedBreak, ...]
    same: int
    """Ids with the same words in both."""


def difference(before: Registry, after: Registry) -> TableDifference:
    old = {entry.gb_id: entry for entry in before}
    new = {entry.gb_id: entry for entry in after}
    shared = [entry for gb_id, entry in new.items() if gb_id in old]
    changed = [entry for entry in shared if wordings(entry) != wordings(old[entry.gb_id])]
    return TableDifference(
        before.torch,
        after.torch,
        came=tuple(entry for gb_id, entry in new.items() if gb_id not in old),
        went=tuple(entry for gb_id, entry in old.items() if gb_id not in new),
        reworded=tuple(_reworded(old[entry.gb_id], entry) for entry in changed),
        same=len(shared) - len(changed),
    )


def wordings(entry: Entry) -> tuple[str, ...]:
    """A short fingerprint of each wording, the newest first."""
    return tuple(fingerprint_of(variant.raw) for variant in entry.variants)


def fingerprint_of(raw: RawVariant) -> str:
    words = json.dumps([raw.gb_type, raw.context, raw.explanation, raw.hints])
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def _reworded(old: Entry, new: Entry) -> RewordedBreak:
    before, after = old.variants[0], new.variants[0]
    pairs = {
        "type": (before.gb_type, after.gb_type),
        "context": (before.context, after.context),
        "explanation": (before.explanation, after.explanation),
        "hints": ("\n".join(before.hints), "\n".join(after.hints)),
    }
    changes = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return RewordedBreak(new.gb_id, new.title, changes)
