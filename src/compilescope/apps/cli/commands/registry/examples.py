"""`compilescope registry examples`: the examples of graph breaks, listed and shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.commands.registry.output import print_blocks
from compilescope.apps.cli.options import json_option, print_json
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.registry.cases import ExampleFile, Unreachable
    from compilescope.knowledge.registry.table import Registry
    from compilescope.report.blocks import Block


@click.command("examples", short_help="List the examples of graph breaks, or show some.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@json_option
def examples(ids: tuple[str, ...], as_json: bool) -> None:
    """List the examples of graph breaks, or show those of IDs (GB0124, gb124 or 124)."""
    from compilescope.knowledge.registry.cases import load_examples, load_unreachable
    from compilescope.knowledge.registry.table import load_registry

    table, known, out = load_registry(), load_examples(), load_unreachable()
    chosen = [_asked(each, table) for each in ids]
    if as_json:
        entries = [_entry(each, known, out) for each in chosen or [e.gb_id for e in table]]
        print_json({"torch": table.torch, "file": table.path, "examples": entries})
    elif chosen:
        _show(chosen, table)
    else:
        _list(table, known, out)


def _asked(text: str, table: Registry) -> str:
    entry = table.get(text)
    if entry is None:
        raise ToolError(
            f"This torch's table has no {text}.",
            "Search it with: compilescope registry search WORDS",
        )
    return entry.gb_id


def _entry(
    gb_id: str, known: dict[str, ExampleFile], out: dict[str, Unreachable]
) -> dict[str, Any]:
    example, reason = known.get(gb_id), out.get(gb_id)
    return {
        "gb_id": gb_id,
        "state": "example" if example else "unreachable" if reason else "none",
        "description": example.description if example else None,
        "source": example.source if example else None,
        "break_line": example.break_line if example else None,
        "has_fixed": bool(example and example.has_fixed),
        "kind": reason.kind if reason else None,
        "reason": reason.reason if reason else None,
    }


def _list(table: Registry, known: dict[str, ExampleFile], out: dict[str, Unreachable]) -> None:
    from compilescope.report.blocks import Facts, Heading, Span, words

    groups: dict[str, list[tuple[str, Any]]] = {"": [], "unreachable": [], "none": []}
    for entry in table:
        example, reason = known.get(entry.gb_id), out.get(entry.gb_id)
        mark = Span("  fixed" if example and example.has_fixed else "", "good")
        told = words(entry.title, mark) if not reason else words(f"{reason.kind}: {reason.reason}")
        groups["" if example else "unreachable" if reason else "none"].append((entry.gb_id, told))
    titles = {
        "": "With an example",
        "unreachable": "Can't be triggered here",
        "none": "No example yet",
    }
    blocks: list[Block] = []
    for name, rows in groups.items():
        blocks += [Heading(titles[name], str(len(rows))), Facts(tuple(rows))]
    fixed = sum(known[e.gb_id].has_fixed for e in table if e.gb_id in known)
    subtitle = f"{len(groups[''])} of {len(table)} IDs have one, {fixed} with a fixed form"
    print_blocks("Examples of graph breaks", subtitle, blocks)


def _show(ids: list[str], table: Registry) -> None:
    from compilescope.knowledge.registry.cases import load_examples, load_unreachable

    for number, gb_id in enumerate(ids):
        if number:
            print()
        entry, example = table.get(gb_id), load_examples().get(gb_id)
        reason = load_unreachable().get(gb_id)
        print(f"# {gb_id} {entry.title if entry else ''}")
        if example is not None:
            sys.stdout.write(example.source)
        elif reason is not None:
            print(f"# Can't be triggered here ({reason.kind}): {reason.reason}")
        else:
            print("# No example yet.")
