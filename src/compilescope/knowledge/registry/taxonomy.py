"""The taxonomy of graph breaks, and the symptoms that users search by. The facts are in
taxonomy.toml and symptoms.toml; this reads and checks them.

Commands read the same facts from taxonomy.json, which a test makes of the other and compares with
it: parsing 50 kB of TOML takes longer than all else that explaining a graph break does.

Every id and every type has one category at most, so the order of the file decides nothing but the
order of display.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.table import normal_id

_Kind = TypeVar("_Kind")
_SYMPTOMS = Path(__file__).with_name("symptoms.toml")
_FILE = Path(__file__).with_name("taxonomy.toml")
_READY = _FILE.with_suffix(".json")

CategoryId = Literal[
    "data-dependent-branch",
    "validation-guard",
    "data-dependent-operator",
    "dynamic-shape-operator",
    "scalar-extraction",
    "skipped-function",
    "logging",
    "exception",
    "unsupported-builtin",
    "context-manager",
    "generator",
    "class-construction",
    "extension",
    "missing-kernel",
    "tensor-subclass",
    "mutation",
    "autograd",
    "rng-device-state",
    "distributed",
    "reconstruction",
    "explicit",
    "recompile-limit",
    "user-error",
    "backend-failure",
    "compiler-bug",
]
Mean = Literal["config", "rewrite", "judgement", "upgrade"]
CATEGORY_IDS: tuple[str, ...] = get_args(CategoryId)


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of graph break."""

    id: CategoryId
    title: str
    why: str
    """Why Dynamo cannot go on."""
    fix: str
    """What usually mends it."""
    means: tuple[Mean, ...]
    """What can: a flag, a mechanical rewrite, a judgement of the author, another version."""
    ids: dict[str, str]
    """Graph-break ids, each with its type."""
    types: tuple[str, ...] = ()
    """Reasons that come without an id, and earlier names of types."""
    from_line: bool = False
    """Also decided by what the user's line does, whatever id PyTorch gives it."""


class Taxonomy(msgspec.Struct, frozen=True, dict=True):
    """All categories, and which of them an id or a type belongs to."""

    categories: tuple[Category, ...]

    def __iter__(self) -> Iterator[Category]:
        return iter(self.categories)

    def get(self, category_id: str) -> Category | None:
        return next((c for c in self.categories if c.id == category_id), None)

    def category_of(self, gb_id: str | None, gb_type: str | None = None) -> Category | None:
        """By id, else by type; None for what PyTorch brought since.

        Of a reason without an id, `gb_type` may be the first line of its message or the class of
        the exception.
        """
        known = self._by_id.get(normal_id(gb_id) or "") if gb_id else None
        if known is not None or not gb_type:
            return known
        text = _fold(gb_type)
        exact = self._by_type.get(text) or self._by_type.get(text.rsplit(".", 1)[-1])
        return exact or next((c for phrase, c in self._phrases if phrase in text), None)

    @cached_property
    def _by_id(self) -> dict[str, Category]:
        return {gb_id: category for category in self.categories for gb_id in category.ids}

    @cached_property
    def _by_type(self) -> dict[str, Category]:
        return {_fold(name): c for c in self.categories for name in (*c.ids.values(), *c.types)}

    @cached_property
    def _phrases(self) -> tuple[tuple[str, Category], ...]:
        """Words that may stand anywhere in a message, the longest first. A single word is the
        name of a class and has to match as a whole."""
        found = [(_fold(name), c) for c in self.categories for name in c.types if " " in name]
        return tuple(sorted(found, key=lambda item: -len(item[0])))


@lru_cache(maxsize=1)
def load_taxonomy() -> Taxonomy:
    """The taxonomy that comes with this version."""
    try:
        return msgspec.json.decode(_READY.read_bytes(), type=Taxonomy)
    except (OSError, msgspec.DecodeError):
        return read_taxonomy(_FILE)


class _TaxonomyFile(msgspec.Struct, forbid_unknown_fields=True):
    category: list[Category]


def read_taxonomy(path: Path) -> Taxonomy:
    """Read and check a taxonomy file."""
    raw = _decoded(path, _TaxonomyFile, "taxonomy", "is")
    categories = tuple(
        msgspec.structs.replace(category, why=_flow(category.why), fix=_flow(category.fix))
        for category in raw.category
    )
    for problem in _problems(categories):
        raise ToolError(f"The taxonomy {path} is not valid: {problem}.")
    return Taxonomy(categories)


def _problems(categories: tuple[Category, ...]) -> Iterator[str]:
    named: set[str] = set()
    owner_of_id: dict[str, str] = {}
    owner_of_type: dict[str, str] = {}
    for category in categories:
        if category.id in named:
            yield f"the category {category.id} appears twice"
        named.add(category.id)
        for field in ("title", "why", "fix", "means"):
            if not getattr(category, field):
                yield f"the category {category.id} has no {field}"
        for gb_id in category.ids:
            if normal_id(gb_id) != gb_id:
                yield f"{gb_id!r} in {category.id} is not a graph-break id"
            owner = owner_of_id.setdefault(gb_id, category.id)
            if owner != category.id:
                yield f"{gb_id} is in {owner} and in {category.id}"
        for name in (*category.ids.values(), *category.types):
            owner = owner_of_type.setdefault(_fold(name), category.id)
            if owner != category.id:
                yield f"the type {name!r} is in {owner} and in {category.id}"
    if missing := [name for name in CATEGORY_IDS if name not in named]:
        yield f"it lacks the category {missing[0]}"


def _fold(text: str) -> str:
    return _flow(text).casefold()


def _flow(text: str) -> str:
    return " ".join(text.split())


# What users see or write when they meet a category of graph breaks, so that search finds it.
#
# The words are in symptoms.toml; this reads and checks them.


@lru_cache(maxsize=1)
def load_symptoms() -> dict[str, tuple[str, ...]]:
    """The symptoms of each category: the first is for display, all are for search."""
    return read_symptoms(_SYMPTOMS)


def read_symptoms(path: Path) -> dict[str, tuple[str, ...]]:
    """Read and check a file of symptoms."""
    symptoms = _decoded(path, dict[str, tuple[str, ...]], "symptoms", "are")
    if set(symptoms) != set(CATEGORY_IDS) or not all(symptoms.values()):
        raise ToolError(f"The symptoms {path} are not valid: each category needs one or more.")
    return symptoms


def _decoded(path: Path, kind: type[_Kind], what: str, are: str) -> _Kind:
    # Most commands read what was made ready of it, and no TOML.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), kind)
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolError(f"The {what} {path} could not be read: {why}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ToolError(f"The {what} {path} {are} not valid: {error}.") from None
