"""Ids that speak of the same thing, by the rare words that their types and texts share."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from compilescope.registry.table import Entry, Registry
from compilescope.registry.taxonomy import Category, Taxonomy

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
_NAME_WEIGHT = 2.0  # A name with an underscore is of the matter itself.
_EMPTY = frozenset(
    ("false", "true", "none", "config", "not", "with", "and", "for", "the", "this", "that", "set")
)
_SAME_CATEGORY = 2.0


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
