"""What is amiss in PyTorch's table, and in what we keep beside it.

Each check yields problems; none of them changes anything. What needs torch's source says so where
there is none, instead of passing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click
import msgspec

from compilescope.apps.cli.commands.registry.output import print_blocks, table_name
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.cases import load_examples, load_unreachable
from compilescope.knowledge.registry.notes import NOTES, id_of, note_name, read_notes
from compilescope.knowledge.registry.table import (
    Entry,
    RawVariant,
    Registry,
    is_code,
    load_registry,
)
from compilescope.knowledge.registry.taxonomy import Taxonomy, load_taxonomy
from compilescope.knowledge.registry.torch_copy import (
    RaisedBreaks,
    dynamo_sources,
    raised_types,
    read_table,
    same_type,
    torch_of,
)
from compilescope.report.blocks import Block, Facts, Heading, words
from upkeep.old_site import IMPORTED

Kind = Literal[
    "not-raised",
    "not-registered",
    "type-at-run-time",
    "placeholder",
    "duplicated-type",
    "no-explanation",
    "no-hints",
    "no-category",
    "stray-note",
    "stray-example",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: dict[Kind, str] = {
    "not-raised": "In the table, no longer raised by torch",
    "not-registered": "Raised by torch, missing from the table",
    "type-at-run-time": "The type is known only at run time",
    "placeholder": "Texts with unfilled placeholders",
    "duplicated-type": "One type, several ids",
    "no-explanation": "No explanation",
    "no-hints": "No hints",
    "no-category": "No category",
    "stray-note": "Notes for ids that are not in the table",
    "stray-example": "Examples for ids that are not in the table",
}
NEED_SOURCE: tuple[Kind, ...] = ("not-raised", "not-registered", "type-at-run-time")
"""Kinds that only torch's own source can tell."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class NoteProblem(msgspec.Struct, frozen=True):
    """One thing that is amiss."""

    kind: Kind
    subject: str
    """An id, a type or a file."""
    message: str


@dataclass(frozen=True)
class TableCompanions:
    """What is kept beside the table, by us and in torch's source."""

    taxonomy: Taxonomy
    raised: RaisedBreaks | None
    """None where there is no source to look into."""
    notes: tuple[str, ...] = ()
    """Ids that have one."""
    misnamed_notes: tuple[Path, ...] = ()
    examples: tuple[str, ...] = ()
    """Ids that have an example, or that are listed as out of reach."""


def lint(table: Registry, beside: TableCompanions) -> list[NoteProblem]:
    """All problems, in the order of the kinds."""
    found = [problem for check in _CHECKS for problem in check(table, beside)]
    return sorted(found, key=lambda problem: KINDS.index(problem.kind))


def _not_raised(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    if beside.raised is None:
        return
    for entry in table:
        if not any(map(beside.raised.raises, entry.titles)):
            yield NoteProblem("not-raised", entry.gb_id, entry.title)


def _not_registered(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    if beside.raised is None:
        return
    exact = {title for entry in table for title in entry.titles}
    open_ended = [title for title in exact if "{" in title]
    for call in beside.raised.calls:
        known = call.gb_type in exact or any(same_type(call.gb_type, t) for t in open_ended)
        if not known and "{" in call.gb_type:
            known = any(same_type(call.gb_type, title) for title in exact)
        if not known:
            yield NoteProblem("not-registered", call.gb_type, f"{call.file}:{call.line}")
    for call in beside.raised.untold:
        yield NoteProblem("type-at-run-time", f"{call.file}:{call.line}", call.gb_type)


def _placeholders(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    for entry in table:
        fields = [field for raw in _raw(entry) for field in _open_fields(raw)]
        if fields:
            yield NoteProblem("placeholder", entry.gb_id, ", ".join(dict.fromkeys(fields)))


def _open_fields(raw: RawVariant) -> list[str]:
    texts = {
        "type": [raw.gb_type],
        "context": [raw.context],
        "explanation": [raw.explanation],
        "hints": list(raw.hints),
    }
    found = [name for name, parts in texts.items() if any(map(_PLACEHOLDER.search, parts))]
    # The name of a variable stands for words that nobody filled in either.
    return found + ["type"] * is_code(raw.gb_type.strip())


def _duplicates(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    owners: dict[str, list[str]] = {}
    for entry in table:
        for title in entry.titles:
            owners.setdefault(title, []).append(entry.gb_id)
    for title, ids in owners.items():
        if len(ids) > 1:
            yield NoteProblem("duplicated-type", " ".join(ids), title)


def _missing_words(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    for entry in table:
        if not entry.explanations:
            yield NoteProblem("no-explanation", entry.gb_id, entry.title)
        if not entry.hints:
            yield NoteProblem("no-hints", entry.gb_id, entry.title)
        if beside.taxonomy.category_of(entry.gb_id, entry.title) is None:
            yield NoteProblem("no-category", entry.gb_id, entry.title)


def _strays(table: Registry, beside: TableCompanions) -> Iterator[NoteProblem]:
    ids = {entry.gb_id for entry in table}
    for gb_id in beside.notes:
        if gb_id not in ids:
            yield NoteProblem("stray-note", gb_id, "not in the table")
    for path in beside.misnamed_notes:
        yield NoteProblem("stray-note", path.name, "not named after an id, like gb0124.md")
    for gb_id in beside.examples:
        if gb_id not in ids:
            yield NoteProblem("stray-example", gb_id, "not in the table")


def _raw(entry: Entry) -> Iterable[RawVariant]:
    return (variant.raw for variant in entry.variants)


def counted(problems: Iterable[NoteProblem]) -> dict[Kind, int]:
    """How many of each kind; every kind is named."""
    counts = Counter(problem.kind for problem in problems)
    return {kind: counts[kind] for kind in KINDS}


_CHECKS: tuple[Callable[[Registry, TableCompanions], Iterator[NoteProblem]], ...] = (
    _not_raised,
    _not_registered,
    _placeholders,
    _duplicates,
    _missing_words,
    _strays,
)


def misnamed(folder: Path) -> list[Path]:
    """Files among the notes that no page would show."""
    aside = ("README.md", "__init__.py", "__pycache__", IMPORTED)
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name not in aside and path.name != note_name(id_of(path) or "")
    ]


@click.command("lint", short_help="Find problems in the registry.")
@click.argument("source", type=click.Path(path_type=Path), required=False)
@click.option("--only", multiple=True, metavar="KIND", help="Only this kind; repeatable.")
@click.option("--notes", type=click.Path(path_type=Path), metavar="DIR", help="Other notes.")
def COMMAND(source: Path | None, only: tuple[str, ...], notes: Path | None) -> int:
    """Find problems in the registry of the installed torch, or of SOURCE (a wheel, a checkout, a
    JSON file): IDs that torch no longer raises, types missing from the table, unfilled
    placeholders, types with several IDs, missing text, notes and examples without an ID.

    Exit status: 0 no problems, 1 problems found, 2 inconclusive.
    """
    for name in only:
        if name not in KINDS:
            raise ToolError(f"There is no kind {name}.", f"The kinds are: {', '.join(KINDS)}.")
    kinds = [kind for kind in KINDS if not only or kind in only]
    table = read_table(source) if source else load_registry()
    place = torch_of(table) or source
    raised = raised_types(dynamo_sources(place)) if place is not None else None
    beside = TableCompanions(
        taxonomy=load_taxonomy(),
        raised=raised if raised is not None and raised.calls else None,
        notes=tuple(read_notes(notes)),
        misnamed_notes=tuple(misnamed(notes or NOTES)),
        examples=tuple(sorted({*load_examples(), *load_unreachable()})),
    )
    problems = [each for each in lint(table, beside) if each.kind in kinds]
    blocks: list[Block] = []
    for kind, number in counted(problems).items():
        if number:
            rows = [(each.subject, words(each.message)) for each in problems if each.kind == kind]
            blocks += [Heading(TITLES[kind], f"{kind}, {number}"), Facts(tuple(rows))]
    told = f"{len(problems)} problems" if problems else "no problems"
    print_blocks(f"Registry of {table_name(table)}", f"{len(table)} IDs, {told}", blocks)
    untold = [] if beside.raised else [kind for kind in NEED_SOURCE if kind in kinds]
    for kind in untold:
        print(f"Could not check {kind}: there is no torch source next to the table.")
    return 1 if problems else 2 if untold else 0
