"""`compilescope registry update`, `import` and `lint`: what other torches and other people know,
and what is amiss in the registry.
"""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.commands.registry.output import print_blocks, table_name
from compilescope.apps.cli.options import json_option, limit_option, print_json, write_whole
from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compilescope.knowledge.registry.history import RewordedBreak, TableDifference
    from compilescope.knowledge.registry.lint import Kind, NoteProblem, TableCompanions
    from compilescope.knowledge.registry.old_site import ImportedTable
    from compilescope.knowledge.registry.table import Entry, Registry
    from compilescope.knowledge.registry.torch_copy import RaisedBreaks
    from compilescope.report.blocks import Block


_PATH = click.Path(path_type=Path)
_FATES = {
    "imported": "imported",
    "updated": "updated: its page changed since the last import",
    "replaced": "replaced (--force)",
    "same": "already imported",
    "kept": "skipped: you have a different note (--force replaces it)",
    "empty": "skipped: nobody has added text to them",
    "unmarked": "skipped: no START and END markers",
    "unreadable": "skipped: too long, or not UTF-8 text",
    "unknown": "skipped: no torch we know has this ID",
}


@click.command("update", short_help="Get PyTorch's newest table, or compare with another torch's.")
@click.argument("source", type=_PATH, required=False)
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
@click.option(
    "--against",
    type=_PATH,
    metavar="SOURCE",
    help="Compare with this one instead. [default: the downloaded table, else the installed "
    "torch's]",
)
@click.option("--record", is_flag=True, help="Add its version to the history.")
@click.option(
    "--history", type=_PATH, metavar="FILE", help="The history file. [default: compilescope's own]"
)
@json_option
def update(
    source: Path | None,
    address: str | None,
    restore: bool,
    ca_file: Path | None,
    allow_fewer: bool,
    limit: float,
    against: Path | None,
    record: bool,
    history: Path | None,
    as_json: bool,
) -> None:
    """Show what was added, removed and reworded in another table of graph breaks: one that --from
    downloads, or the one in SOURCE: a wheel, a checkout, or a JSON file.

    A download is checked before it is used. `registry` commands and the dashboard then use it
    until --restore; the table before it is kept, and torch's own file is never changed. A SOURCE
    is only compared; nothing is installed or unpacked.
    """
    from compilescope.knowledge.registry.history import difference
    from compilescope.knowledge.registry.torch_copy import read_table

    if sum((source is not None, address is not None, restore)) != 1:
        raise ToolError("Pass exactly one of SOURCE, --from and --restore.")
    before = read_table(against) if against else _current(required=source is not None)
    after, kept = None, None
    if source is not None:
        after = read_table(source)
    elif address is not None:
        fewest = 0 if allow_fewer else _known_ids(before)
        after, kept = _downloaded(address, ca_file, limit, fewest)
    else:
        after = _restored()
    if before is None:
        before = after
    found = difference(before, after)
    recorded = _record(after, history) if record else None
    if as_json:
        value = _difference_value(found, before, after, recorded)
        print_json({**value, "kept": str(kept) if kept else None})
        return
    counts = f"{len(found.came)} added, {len(found.went)} removed, {len(found.reworded)} reworded"
    print_blocks(
        f"{table_name(before)} -> {table_name(after)}",
        f"{counts}, {found.same} unchanged",
        _difference_blocks(found),
    )
    if recorded:
        print(f"\nRecorded in {recorded}.")
    if kept:
        print(f"\nIn use from now on: {kept}")
        print("Go back with: compilescope registry update --restore")
    elif restore:
        print(f"\nIn use again: {after.path}")


def _current(*, required: bool) -> Registry | None:
    """The table in use. A download can do without one, and replaces one that can't be read."""
    from compilescope.knowledge.registry.downloads import current_registry

    try:
        return current_registry()
    except ToolError:
        if required:
            raise
        return None


def _known_ids(before: Registry | None) -> int:
    """How many ids a download is held against: of what it is compared with, or what it replaces."""
    return max(len(table) if table else 0 for table in (before, _current(required=False)))


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


def _record(table: Registry, history: Path | None) -> str:
    from compilescope.knowledge.registry.history import (
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


def _difference_value(
    found: TableDifference, before: Registry, after: Registry, recorded: str | None
) -> dict[str, Any]:
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
        "recorded": recorded,
    }


@click.command("import", short_help="Import the notes of PyTorch's public registry site.")
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option(
    "--notes",
    type=_PATH,
    metavar="DIR",
    help="Folder for notes. [default: yours, where the dashboard saves them]",
)
@click.option("--force", is_flag=True, help="Replace existing notes.")
@json_option
def import_notes(folder: Path, notes: Path | None, force: bool, as_json: bool) -> None:
    """Import what people wrote on the pages of PyTorch's public registry site, from a checkout of
    its repository (meta-pytorch/compile-graph-break-site) in DIR.

    The text between START and END becomes a note, byte for byte. A note of yours is never
    overwritten without --force; one that an earlier import wrote follows its page.
    """
    from compilescope.knowledge.registry.history import load_history
    from compilescope.knowledge.registry.notes import default_notes
    from compilescope.knowledge.registry.old_site import import_pages
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

    known = {gb_id for category in load_taxonomy() for gb_id in category.ids}
    ids = frozenset(known | set(load_history().titles) | _current_ids())
    target = notes or default_notes()
    done = import_pages(folder, target, ids, force=force)
    counts = Counter(page.fate for page in done)
    if as_json:
        print_json({"notes": str(target), "counts": counts, "pages": done})
        return
    _print_imported(done, counts, target, given=notes is not None)


def _current_ids() -> set[str]:
    return {entry.gb_id for entry in _current(required=False) or ()}


def _print_imported(
    done: list[ImportedTable], counts: Counter[Any], notes: Path, *, given: bool
) -> None:
    from compilescope.report.blocks import Facts, Span, words

    quiet = ("same", "empty", "unmarked")
    rows = [(page.gb_id, words(_FATES[page.fate])) for page in done if page.fate not in quiet]
    for fate in quiet:
        if counts[fate]:
            noun = "page" if counts[fate] == 1 else "pages"
            rows.append((f"{counts[fate]} {noun}", words(Span(_FATES[fate], "dim"))))
    brought = counts["imported"] + counts["updated"] + counts["replaced"]
    print_blocks(f"Imported {brought} of {len(done)} pages", str(notes), [Facts(tuple(rows))])
    taken = next((page.gb_id for page in done if page.note and page.fate != "kept"), None)
    if taken:
        option = f" --notes {shlex.quote(str(notes))}" if given else ""
        print(f"\nRead one:       compilescope registry show {taken}{option}")
        print(f"Build the site: compilescope registry build{option}")


_SHOWN = 10
"""Chosen: what is read at a glance; --all shows the rest."""


@click.command("lint", short_help="Find problems in the registry.")
@click.argument("source", type=_PATH, required=False)
@click.option("--only", multiple=True, metavar="KIND", help="Only this kind; repeatable.")
@click.option("--ignore", multiple=True, metavar="KIND", help="Skip this kind; repeatable.")
@click.option("--notes", type=_PATH, metavar="DIR", help="Your own notes.")
@click.option(
    "--all", "everything", is_flag=True, help=f"Show all problems, not just {_SHOWN} of each kind."
)
@json_option
def lint(
    source: Path | None,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
    notes: Path | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Find problems in the registry of the installed torch, or of SOURCE: IDs that torch no longer
    raises, types missing from the table, unfilled placeholders, types with several IDs, missing
    text, notes and examples without an ID.

    Exit status: 0 no problems, 1 problems found, 2 inconclusive.
    """
    from compilescope.knowledge.registry.lint import counted
    from compilescope.knowledge.registry.lint import lint as find_problems
    from compilescope.knowledge.registry.table import load_registry
    from compilescope.knowledge.registry.torch_copy import read_table

    kinds = _kinds(only, ignore)
    table = read_table(source) if source else load_registry()
    beside, untold = _beside(table, source, notes, kinds)
    problems = [each for each in find_problems(table, beside) if each.kind in kinds]
    code = 1 if problems else 2 if untold else 0
    counts = {kind: number for kind, number in counted(problems).items() if kind in kinds}
    if as_json:
        value = {"torch": table.torch, "file": table.path, "counts": counts}
        print_json({**value, "untold": untold, "problems": problems, "exit_code": code})
        return code
    _print_problems(table, problems, counts, everything=everything)
    for kind in untold:
        print(f"Could not check {kind}: there is no torch source next to the table.")
    return code


def _print_problems(
    table: Registry, problems: list[NoteProblem], counts: dict[Any, int], *, everything: bool
) -> None:
    from compilescope.knowledge.registry.lint import TITLES
    from compilescope.report.blocks import Facts, Heading, Span, words

    blocks: list[Block] = []
    for kind, number in counts.items():
        if not number:
            continue
        found = [each for each in problems if each.kind == kind]
        shown = found if everything else found[:_SHOWN]
        rows = [(each.subject, words(each.message)) for each in shown]
        if len(found) > len(shown):
            rows.append(("", words(Span(f"and {len(found) - len(shown)} more (--all)", "dim"))))
        blocks += [Heading(TITLES[kind], f"{kind}, {number}"), Facts(tuple(rows))]
    found_words = f"{len(problems)} problems" if problems else "no problems"
    print_blocks(f"Registry of {table_name(table)}", f"{len(table)} IDs, {found_words}", blocks)


def _kinds(only: tuple[str, ...], ignore: tuple[str, ...]) -> list[Kind]:
    """The kinds that were asked for."""
    from compilescope.knowledge.registry.lint import KINDS

    for name in (*only, *ignore):
        if name not in KINDS:
            raise ToolError(f"There is no kind {name}.", f"The kinds are: {', '.join(KINDS)}.")
    return [kind for kind in KINDS if (not only or kind in only) and kind not in ignore]


def _beside(
    table: Registry, source: Path | None, notes: Path | None, kinds: list[Kind]
) -> tuple[TableCompanions, list[Kind]]:
    """What to hold the table against, and the kinds of problems that cannot be told."""
    from compilescope.knowledge.registry.cases import load_examples, load_unreachable
    from compilescope.knowledge.registry.lint import NEED_SOURCE, TableCompanions
    from compilescope.knowledge.registry.notes import misnamed, read_notes
    from compilescope.knowledge.registry.taxonomy import load_taxonomy

    # Reading torch's source takes a second.
    raised = _raised(table, source) if set(kinds) & set(NEED_SOURCE) else None
    beside = TableCompanions(
        taxonomy=load_taxonomy(),
        raised=raised,
        notes=tuple(read_notes(notes)),
        misnamed_notes=tuple(misnamed(notes)),
        examples=tuple(sorted({*load_examples(), *load_unreachable()})),
    )
    return beside, [kind for kind in NEED_SOURCE if raised is None and kind in kinds]


def _raised(table: Registry, source: Path | None) -> RaisedBreaks | None:
    from compilescope.knowledge.registry.torch_copy import dynamo_sources, raised_types, torch_of

    place = torch_of(table) or source
    found = raised_types(dynamo_sources(place)) if place is not None else None
    return found if found is not None and found.calls else None
