"""`compilescope registry update`: PyTorch's newest table, and what is new in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.commands.registry.output import print_blocks, table_name
from compilescope.apps.cli.options import json_option, limit_option, print_json
from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compilescope.knowledge.registry.history import RewordedBreak, TableDifference
    from compilescope.knowledge.registry.table import Entry, Registry
    from compilescope.report.blocks import Block


_PATH = click.Path(path_type=Path)


@click.command("update", short_help="Get PyTorch's newest table.")
@click.option(
    "--from",
    "address",
    metavar="URL|main",
    help="Download the table over https and use it from now on. main, release/2.14 and v2.14.0 are "
    "in PyTorch's repository.",
)
@click.option("--restore", is_flag=True, help="Go back to the table before the last download.")
@click.option(
    "--ca-file", type=_PATH, metavar="FILE", help="Trust these certificate authorities instead."
)
@click.option(
    "--allow-fewer", is_flag=True, help="Accept a download with far fewer IDs than before."
)
@limit_option("the download", 120.0, old_name="--timeout")
@json_option
def update(
    address: str | None,
    restore: bool,
    ca_file: Path | None,
    allow_fewer: bool,
    limit: float,
    as_json: bool,
) -> None:
    """Download another table of graph breaks, and show what was added, removed and reworded.

    A download is checked before it is used. `registry` commands and the dashboard then use it
    until --restore; the table before it is kept, and torch's own file is never changed.
    """
    from compilescope.knowledge.registry.history import difference

    if (address is not None) == restore:
        raise ToolError("Pass exactly one of --from and --restore.")
    before, kept = _current(), None
    if address is not None:
        fewest = 0 if allow_fewer or before is None else len(before)
        after, kept = _downloaded(address, ca_file, limit, fewest)
    else:
        after = _restored()
    if before is None:
        before = after
    found = difference(before, after)
    if as_json:
        value = _difference_value(found, before, after)
        print_json({**value, "kept": str(kept) if kept else None})
        return
    print_difference(found, before, after)
    if kept:
        print(f"\nIn use from now on: {kept}")
        print("Go back with: compilescope registry update --restore")
    else:
        print(f"\nIn use again: {after.path}")


def _current() -> Registry | None:
    """The table in use. A download can do without one, and replaces one that can't be read."""
    from compilescope.knowledge.registry.downloads import current_registry

    try:
        return current_registry()
    except ToolError:
        return None


def _downloaded(
    address: str, ca_file: Path | None, limit_s: float, before: int
) -> tuple[Registry, Path]:
    from datetime import datetime, timezone

    from compilescope.knowledge.registry.downloads import Origin, current_registry, keep
    from compilescope.knowledge.registry.table_download import checked_table, fetch, source_of

    source = source_of(address)
    with working("registry update", f"downloading from {source.host}"):
        data = fetch(source, ca_file=ca_file, limit_s=limit_s)
    table = checked_table(data, source, before)
    day = datetime.now(timezone.utc).date().isoformat()
    path = keep(data, Origin(source.shown, source.ref, day, len(table)))
    return current_registry(), path


def _restored() -> Registry:
    from compilescope.knowledge.registry.downloads import current_registry, restore

    restore()
    return current_registry()


def print_difference(found: TableDifference, before: Registry, after: Registry) -> None:
    counts = f"{len(found.came)} added, {len(found.went)} removed, {len(found.reworded)} reworded"
    print_blocks(
        f"{table_name(before)} -> {table_name(after)}",
        f"{counts}, {found.same} unchanged",
        _difference_blocks(found),
    )


def _difference_blocks(found: TableDifference) -> list[Block]:
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
    from compilescope.knowledge.registry.taxonomy import load_taxonomy
    from compilescope.report.blocks import Facts, Span, words

    taxonomy = load_taxonomy()
    rows = []
    for entry in entries:
        known = taxonomy.category_of(entry.gb_id, entry.title)
        label = known.id if known else "no category yet"
        rows.append((entry.gb_id, words(entry.title, Span(f"  {label}", "dim"))))
    return Facts(tuple(rows))


def _reworded_blocks(each: RewordedBreak) -> list[Block]:
    from compilescope.report.blocks import Facts, Paragraph, Span, words

    title = Paragraph(words(Span(each.gb_id, "strong"), f" {each.title}"))
    rows = []
    for name, (before, after) in each.changes.items():
        for label, text in ((f"{name} was", before), (f"{name} is", after)):
            rows.append((label, words(" ".join(text.split()) or "(nothing)")))
    rows = rows or [("", words("Only its earlier wordings changed."))]
    return [Paragraph(words("")), title, Facts(tuple(rows))]


def _difference_value(found: TableDifference, before: Registry, after: Registry) -> dict[str, Any]:
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

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
    }
