"""`compilescope registry`: PyTorch's own table of graph breaks, sorted and searchable.

Reads files only; torch is never imported.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.commands.registry.examples import examples
from compilescope.apps.cli.commands.registry.output import (
    file_option,
    note_lines,
    print_blocks,
    wanted_table,
)
from compilescope.apps.cli.commands.registry.site import build, serve
from compilescope.apps.cli.commands.registry.update import update
from compilescope.apps.cli.options import SuggestingGroup, json_option, print_json
from compilescope.apps.cli.output import all_option
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.registry.notes import Note
    from compilescope.knowledge.registry.table import Entry, Registry
    from compilescope.knowledge.registry.taxonomy import Category, Taxonomy
    from compilescope.report.blocks import Block, Facts

GROUP = "Learn"

_MEANS = {
    "config": "a config flag",
    "rewrite": "a mechanical rewrite",
    "judgement": "a change that needs your judgment",
    "upgrade": "another version of torch or the backend",
}
_NOT_GIVEN = "PyTorch's table gives no explanation."


@click.group(
    "registry",
    cls=SuggestingGroup,
    short_help="Look up graph breaks in PyTorch's own table, or build a site of them.",
)
def COMMAND() -> None:
    """Look up graph breaks in PyTorch's own table, each with its category; build a site of them,
    and get the newest table."""


@COMMAND.command("show", short_help="Show graph breaks by ID or type.")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@file_option
@click.option(
    "--notes",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own notes (gb0124.md). [default: those written in the dashboard]",
)
@json_option
def show(
    ids: tuple[str, ...], file: Path | None, installed: bool, notes: Path | None, as_json: bool
) -> None:
    """Show graph breaks by ID (GB0124, gb124 or 124) or by type."""
    from compilescope.knowledge.registry.notes import default_notes, own_notes, read_notes
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

    table, taxonomy = wanted_table(file, installed), load_taxonomy()
    own = read_notes(notes) if notes is not None else own_notes(default_notes())
    added = {"own": own, "ours": read_notes()}
    places: dict[str, tuple[Entry, Registry]] = {}
    for wanted in ids:
        place = _holder(wanted, table)
        places |= {e.gb_id: (e, place) for e in _entries(wanted, place, taxonomy)}
    if as_json:
        found = [entry for entry, _ in places.values()]
        values = [{**_full(e, taxonomy), "notes": _notes(e.gb_id, added)} for e in found]
        print_json({**_origin(table), "entries": values})
        return
    for number, (entry, place) in enumerate(places.values()):
        if number:
            print()
        subtitle = f"graph break in {_name(place)}"
        blocks = [*_entry_blocks(entry, taxonomy), *_note_blocks(_notes(entry.gb_id, added))]
        print_blocks(f"{entry.gb_id} {entry.title}", subtitle, blocks)


@COMMAND.command("search", short_help="Search IDs, types, explanations and categories.")
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@all_option
@file_option
@json_option
def search(
    words: tuple[str, ...], everything: bool, file: Path | None, installed: bool, as_json: bool
) -> None:
    """Search IDs, types, explanations, hints and categories: entries that match all WORDS, best
    first."""
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

    table, taxonomy = wanted_table(file, installed), load_taxonomy()
    labels = {e.gb_id: f"{c.id} {c.title}" for e in table if (c := _category(e, taxonomy))}
    found = table.search(words, labels)
    if as_json:
        print_json({**_origin(table), "entries": [_brief(e, taxonomy) for e in found]})
        return
    asked = " ".join(words)
    if not found:
        print(f"Nothing in the table of {_name(table)} matches all of: {asked}", file=sys.stderr)
        return
    subtitle = f"{_count(len(found), 'entry', 'entries')} in {_name(table)}"
    rest = "" if everything else shlex.join(["compilescope", "registry", "search", "--all", *words])
    print_blocks(f"Search: {asked}", subtitle, [_rows(found, taxonomy)], rest)


@COMMAND.command("list", short_help="List graph breaks by category.")
@click.option("--category", metavar="C", help="Only this category (see `registry categories`).")
@all_option
@file_option
@json_option
def list_entries(
    category: str | None, everything: bool, file: Path | None, installed: bool, as_json: bool
) -> None:
    """List all graph breaks by category."""
    from compilescope.knowledge.registry.taxonomy import load_taxonomy
    from compilescope.report.blocks import Heading

    taxonomy = load_taxonomy()
    wanted = _category_named(category, taxonomy) if category else None
    table = wanted_table(file, installed)
    groups: dict[str, list[Entry]] = {c.id: [] for c in taxonomy} | {"": []}
    for entry in table:
        known = _category(entry, taxonomy)
        groups[known.id if known else ""].append(entry)
    if wanted:
        groups = {wanted.id: groups[wanted.id]}
    if as_json:
        entries = [e for group in groups.values() for e in group]
        print_json({**_origin(table), "entries": [_brief(e, taxonomy) for e in entries]})
        return
    blocks: list[Block] = []
    for name, group in groups.items():
        known = taxonomy.get(name)
        if group or wanted:
            title = known.title if known else "No category yet"
            blocks.append(Heading(title, ", ".join(filter(None, (name, str(len(group)))))))
            blocks.append(_rows(group))
    total = sum(map(len, groups.values()))
    rest = ["compilescope", "registry", "list", "--all"]
    rest += ["--category", wanted.id] if wanted else []
    print_blocks(
        "Graph breaks",
        f"{_count(total, 'ID', 'IDs')} in {_name(table)}",
        blocks,
        "" if everything else shlex.join(rest),
    )


@COMMAND.command("categories", short_help="List or show the categories.")
@click.argument("names", nargs=-1, metavar="[CATEGORY]...")
@file_option
@json_option
def categories(names: tuple[str, ...], file: Path | None, installed: bool, as_json: bool) -> None:
    """List the categories, or show some: why they break, and how to fix them."""
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

    taxonomy = load_taxonomy()
    chosen = [_category_named(name, taxonomy) for name in names] or list(taxonomy)
    counts, origin, name = _counts(file, installed, taxonomy)
    if as_json:
        print_json({**origin, "categories": [_category_json(c, counts[c.id]) for c in chosen]})
        return
    subtitle = f"{len(taxonomy.categories)} in total, with the IDs of {name}"
    if names:
        blocks = [block for c in chosen for block in _category_blocks(c, counts[c.id])]
        print_blocks("Categories of graph breaks", subtitle, blocks)
    else:
        print_blocks("Categories of graph breaks", subtitle, [_category_rows(chosen, counts)])


def _holder(wanted: str, table: Registry) -> Registry:
    """The table to look in. A program may meet an id that the downloaded table has no longer."""
    from compilescope.knowledge.registry.table import load_registry

    if table.name is None or table.get(wanted) or table.by_type(wanted):
        return table
    try:
        installed = load_registry()
    except ToolError:
        return table
    return installed if installed.get(wanted) or installed.by_type(wanted) else table


def _entries(wanted: str, table: Registry, taxonomy: Taxonomy) -> tuple[Entry, ...]:
    from compilescope.knowledge.registry.table import normal_id

    entry = table.get(wanted)
    found = (entry,) if entry else table.by_type(wanted)
    if found:
        return found
    name = normal_id(wanted) or wanted
    known = taxonomy.category_of(name)
    if known is not None:
        raise ToolError(
            f"{name} is not in the table of {_name(table)}.",
            f"It is in another version: {known.ids[name]} ({known.id}).",
        )
    titles = [title for e in table for title in e.titles]
    close = _close(wanted, [e.gb_id for e in table]) or _close(wanted, titles)
    raise ToolError(
        f"The table of {_name(table)} has no {wanted}{close}.",
        "" if close else "Search it with: compilescope registry search WORDS",
    )


def _category_named(name: str, taxonomy: Taxonomy) -> Category:
    found = taxonomy.get(name.casefold())
    if found is None:
        close = _close(name, [c.id for c in taxonomy])
        raise ToolError(
            f"There is no category {name}{close}.",
            "" if close else "List them with: compilescope registry categories",
        )
    return found


def _close(wanted: str, names: Iterable[str]) -> str:
    by_fold = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(wanted.casefold(), by_fold, n=3)
    return "; close: " + ", ".join(by_fold[name] for name in near) if near else ""


def _category(entry: Entry, taxonomy: Taxonomy) -> Category | None:
    return taxonomy.category_of(entry.gb_id, entry.title)


def _origin(table: Registry) -> dict[str, Any]:
    return {"torch": table.torch, "file": table.path}


def _name(table: Registry) -> str:
    return table.name or (f"torch {table.torch}" if table.torch else table.path)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _brief(entry: Entry, taxonomy: Taxonomy) -> dict[str, Any]:
    known = _category(entry, taxonomy)
    return {
        "gb_id": entry.gb_id,
        "title": entry.title,
        "titles": list(entry.titles),
        "category": known.id if known else None,
    }


def _full(entry: Entry, taxonomy: Taxonomy) -> dict[str, Any]:
    known = _category(entry, taxonomy)
    return {
        **_brief(entry, taxonomy),
        "explanations": list(entry.explanations),
        "hints": list(entry.hints),
        "contexts": list(entry.contexts),
        "why": known.why if known else None,
        "fix": known.fix if known else None,
        "means": list(known.means) if known else [],
    }


def _category_json(category: Category, ids: list[str]) -> dict[str, Any]:
    return {
        "id": category.id,
        "title": category.title,
        "why": category.why,
        "fix": category.fix,
        "means": list(category.means),
        "from_line": category.from_line,
        "ids": ids,
        "types": list(category.types),
    }


def _counts(
    file: Path | None, installed: bool, taxonomy: Taxonomy
) -> tuple[dict[str, list[str]], dict[str, Any], str]:
    """The ids of each category in the table, and the table's name; without one, those we know."""
    try:
        table = wanted_table(file, installed)
    except ToolError:
        if file is not None:
            raise
        return {c.id: list(c.ids) for c in taxonomy}, {"torch": None, "file": None}, "any torch"
    counts: dict[str, list[str]] = {c.id: [] for c in taxonomy}
    for entry in table:
        if known := _category(entry, taxonomy):
            counts[known.id].append(entry.gb_id)
    return counts, _origin(table), _name(table)


def _rows(entries: Iterable[Entry], taxonomy: Taxonomy | None = None) -> Facts:
    from compilescope.report.blocks import Facts, Span, words

    rows = []
    for entry in entries:
        known = _category(entry, taxonomy) if taxonomy else None
        tail = Span(f"  {known.id}", "dim") if known else ""
        rows.append((entry.gb_id, words(entry.title, tail)))
    return Facts(tuple(rows))


def _category_rows(chosen: list[Category], counts: dict[str, list[str]]) -> Facts:
    from compilescope.report.blocks import Facts, Span, words

    return Facts(
        tuple((c.id, words(c.title, Span(f"  {len(counts[c.id])}", "dim"))) for c in chosen)
    )


def _entry_blocks(entry: Entry, taxonomy: Taxonomy) -> list[Block]:
    from compilescope.report.blocks import Facts, Heading, Paragraph, words

    blocks: list[Block] = [Heading("What PyTorch says")]
    for text in entry.explanations or (_NOT_GIVEN,):
        blocks.append(Paragraph(words(text)))
    blocks += [Paragraph(words(hint), hanging="-") for hint in entry.hints]
    rows = [("also called", title) for title in entry.titles[1:]]
    rows += [("context", text) for text in entry.contexts]
    if rows:
        blocks.append(Facts(tuple((label, words(text)) for label, text in rows)))
    known = _category(entry, taxonomy)
    if known is None:
        return [
            *blocks,
            Heading("No category yet"),
            Paragraph(words("This ID is newer than this version of compilescope.")),
        ]
    return blocks + _category_blocks(known)


def _notes(gb_id: str, added: dict[str, dict[str, Note]]) -> list[dict[str, Any]]:
    """The user's own first."""
    found = ((name == "own", notes.get(gb_id)) for name, notes in added.items())
    return [
        {"own": own, "text": note.text, "path": str(note.path)}
        for own, note in found
        if note is not None
    ]


def _note_blocks(notes: list[dict[str, Any]]) -> list[Block]:
    from compilescope.report.blocks import Heading, Paragraph, prose, words

    blocks: list[Block] = []
    for note in notes:
        whose = "local note" if note["own"] else "comes with compilescope"
        blocks.append(Heading("Additional information", whose))
        for text in note_lines(note["text"]):
            blocks.append(Paragraph(prose(text) or words("")))
    return blocks


def _category_blocks(category: Category, ids: list[str] | None = None) -> list[Block]:
    from compilescope.report.blocks import Facts, Heading, Paragraph, words

    rows = [("fixed by", "; ".join(_MEANS[mean] for mean in category.means))]
    if category.from_line:
        rows.append(("decided by", "the ID, or what your line does"))
    if ids is not None:
        rows.append(("ids", " ".join(ids) or "none"))
    if ids is not None and category.types:
        rows.append(("no ID", "; ".join(category.types)))
    return [
        Heading(category.title, category.id),
        Paragraph(words(category.why), hanging="why"),
        Paragraph(words(category.fix), hanging="fix"),
        Facts(tuple((label, words(text)) for label, text in rows)),
    ]


for _command in (examples, build, serve, update):
    COMMAND.add_command(_command)
