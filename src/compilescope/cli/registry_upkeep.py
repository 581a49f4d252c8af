"""`compilescope registry update` and `import`: what other torches and other people know."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import json_option, print_json
from compilescope.cli.registry_words import print_blocks, table_name
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compilescope.registry.difference import Difference, Reworded
    from compilescope.registry.importing import Imported
    from compilescope.registry.table import Entry, Registry
    from compilescope.report.blocks import Block

_PATH = click.Path(path_type=Path)
_FATES = {
    "imported": "imported",
    "replaced": "replaced (--force)",
    "same": "already imported",
    "kept": "kept: a different note exists (--force replaces it)",
    "empty": "nothing between the markers",
    "unmarked": "without markers",
    "unreadable": "unreadable: too long, or not UTF-8 text",
    "unknown": "unknown ID",
}


@click.command("update", short_help="Compare with the registry of another torch.")
@click.argument("source", type=_PATH)
@click.option(
    "--against",
    type=_PATH,
    metavar="SOURCE",
    help="Compare with this one instead. [default: the installed torch's]",
)
@click.option("--record", is_flag=True, help="Add its version to the history.")
@click.option(
    "--history", type=_PATH, metavar="FILE", help="The history file. [default: compilescope's own]"
)
@json_option
def update(
    source: Path, against: Path | None, record: bool, history: Path | None, as_json: bool
) -> None:
    """Read the registry of another torch from SOURCE: a wheel, a checkout, or a JSON file. Show
    what was added, removed and reworded. Nothing is installed or unpacked."""
    from compilescope.registry.difference import difference
    from compilescope.registry.table import load_registry
    from compilescope.registry.torch_copy import read_table

    before = read_table(against) if against else load_registry()
    after = read_table(source)
    found = difference(before, after)
    recorded = _record(after, history) if record else None
    if as_json:
        print_json(_difference_value(found, before, after, recorded))
        return
    blocks = _difference_blocks(found)
    subtitle = (
        f"{len(found.came)} added, {len(found.went)} removed, {len(found.reworded)} reworded, "
    )
    print_blocks(
        f"{table_name(before)} -> {table_name(after)}",
        f"{subtitle}{found.same} unchanged",
        blocks,
    )
    if recorded:
        print(f"\nRecorded in {recorded}.")


def _record(table: Registry, history: Path | None) -> str:
    from compilescope.registry.history import (
        HISTORY,
        History,
        history_text,
        load_history,
        release_of,
        with_table,
    )

    release = release_of(table.torch)
    if release is None:
        raise ToolError(
            f"{table.path} is not from a torch release ({table.torch or 'unknown version'}): "
            "only releases are recorded."
        )
    path = history or HISTORY
    known = load_history(path) if history is None or path.exists() else History()
    write_whole(path, history_text(with_table(known, table, release)))
    return str(path)


def _difference_blocks(found: Difference) -> list[Block]:
    from compilescope.report.blocks import Heading, Paragraph, words

    blocks: list[Block] = []
    for title, entries in (("Added", found.came), ("Removed", found.went)):
        if entries:
            blocks += [Heading(title, str(len(entries))), _rows(entries)]
    if found.reworded:
        blocks.append(Heading("Reworded", str(len(found.reworded))))
        for each in found.reworded:
            blocks += _reworded_blocks(each)
    if not blocks:
        blocks.append(Paragraph(words("No differences.")))
    return blocks


def _rows(entries: Iterable[Entry]) -> Block:
    from compilescope.registry.taxonomy import load_taxonomy
    from compilescope.report.blocks import Facts, Span, words

    taxonomy = load_taxonomy()
    rows = []
    for entry in entries:
        known = taxonomy.category_of(entry.gb_id, entry.title)
        label = known.id if known else "no category yet"
        rows.append((entry.gb_id, words(entry.title, Span(f"  {label}", "dim"))))
    return Facts(tuple(rows))


def _reworded_blocks(each: Reworded) -> list[Block]:
    from compilescope.report.blocks import Facts, Paragraph, Span, words

    title = Paragraph(words(Span(each.gb_id, "strong"), f" {each.title}"))
    rows = []
    for name, (before, after) in each.changes.items():
        for label, text in ((f"{name} was", before), (f"{name} is", after)):
            rows.append((label, words(" ".join(text.split()) or "(nothing)")))
    rows = rows or [("", words("Only its earlier wordings changed."))]
    return [Paragraph(words("")), title, Facts(tuple(rows))]


def _difference_value(
    found: Difference, before: Registry, after: Registry, recorded: str | None
) -> dict[str, Any]:
    from compilescope.registry.taxonomy import load_taxonomy

    taxonomy = load_taxonomy()

    def brief(entry: Entry) -> dict[str, Any]:
        known = taxonomy.category_of(entry.gb_id, entry.title)
        category = known.id if known else None
        return {"gb_id": entry.gb_id, "title": entry.title, "category": category}

    return {
        "before": {"torch": before.torch, "file": before.path, "ids": len(before)},
        "after": {"torch": after.torch, "file": after.path, "ids": len(after)},
        "came": [brief(entry) for entry in found.came],
        "went": [brief(entry) for entry in found.went],
        "reworded": [
            {
                "gb_id": each.gb_id,
                "title": each.title,
                "changes": {k: {"before": b, "after": a} for k, (b, a) in each.changes.items()},
            }
            for each in found.reworded
        ],
        "same": found.same,
        "recorded": recorded,
    }


@click.command("import", short_help="Import notes from pages of the original site.")
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option(
    "--notes", type=_PATH, metavar="DIR", help="Folder for notes. [default: compilescope's own]"
)
@click.option("--force", is_flag=True, help="Replace existing notes.")
@json_option
def import_notes(folder: Path, notes: Path | None, force: bool, as_json: bool) -> None:
    """Import what people wrote on pages of the original registry site, as notes: the text between
    START and END, byte for byte. DIR holds gb0124.md, or docs/gb does."""
    from compilescope.registry.history import load_history
    from compilescope.registry.importing import import_pages
    from compilescope.registry.notes import NOTES
    from compilescope.registry.taxonomy import load_taxonomy

    known = {gb_id for category in load_taxonomy() for gb_id in category.ids}
    ids = frozenset(known | set(load_history().titles) | _installed_ids())
    done = import_pages(folder, notes or NOTES, ids, force=force)
    counts = Counter(page.fate for page in done)
    if as_json:
        print_json({"notes": str(notes or NOTES), "counts": counts, "pages": done})
        return
    _print_imported(done, counts, notes or NOTES)


def _installed_ids() -> set[str]:
    from compilescope.registry.table import load_registry

    try:
        return {entry.gb_id for entry in load_registry()}
    except ToolError:
        return set()


def _print_imported(done: list[Imported], counts: Counter[Any], notes: Path) -> None:
    from compilescope.report.blocks import Facts, Span, words

    quiet = ("empty", "unmarked")
    rows = [(page.gb_id, words(_FATES[page.fate])) for page in done if page.fate not in quiet]
    for fate in quiet:
        if counts[fate]:
            rows.append((str(counts[fate]), words(Span(f"pages {_FATES[fate]}", "dim"))))
    brought = counts["imported"] + counts["replaced"]
    print_blocks(f"Imported {brought} of {len(done)} pages", str(notes), [Facts(tuple(rows))])
