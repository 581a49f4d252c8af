"""What differs between two of PyTorch's tables: ids that were added, removed or reworded."""

from __future__ import annotations

import hashlib
import json

import msgspec

from compilescope.registry.table import Entry, RawVariant, Registry


class Reworded(msgspec.Struct, frozen=True):
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
    reworded: tuple[Reworded, ...]
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


def _reworded(old: Entry, new: Entry) -> Reworded:
    before, after = old.variants[0], new.variants[0]
    pairs = {
        "type": (before.gb_type, after.gb_type),
        "context": (before.context, after.context),
        "explanation": (before.explanation, after.explanation),
        "hints": ("\n".join(before.hints), "\n".join(after.hints)),
    }
    changes = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return Reworded(new.gb_id, new.title, changes)
