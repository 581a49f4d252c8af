"""`compilescope registry lint`: what is amiss in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.commands.registry.output import print_blocks, table_name
from compilescope.cli.options import json_option, print_json
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.registry.lint import Kind, NoteProblem, TableCompanions
    from compilescope.registry.raised_breaks import RaisedBreaks
    from compilescope.registry.table import Registry
    from compilescope.report.blocks import Block

_PATH = click.Path(path_type=Path)
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
    from compilescope.registry.lint import counted
    from compilescope.registry.lint import lint as find_problems
    from compilescope.registry.table import load_registry
    from compilescope.registry.torch_copy import read_table

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
    from compilescope.registry.lint import TITLES
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
    from compilescope.registry.lint import KINDS

    for name in (*only, *ignore):
        if name not in KINDS:
            raise ToolError(f"There is no kind {name}.", f"The kinds are: {', '.join(KINDS)}.")
    return [kind for kind in KINDS if (not only or kind in only) and kind not in ignore]


def _beside(
    table: Registry, source: Path | None, notes: Path | None, kinds: list[Kind]
) -> tuple[TableCompanions, list[Kind]]:
    """What to hold the table against, and the kinds of problems that cannot be told."""
    from compilescope.registry.cases import load_examples, load_unreachable
    from compilescope.registry.lint import NEED_SOURCE, TableCompanions
    from compilescope.registry.notes import misnamed, read_notes
    from compilescope.registry.taxonomy import load_taxonomy

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
    from compilescope.registry.raised_breaks import raised_types
    from compilescope.registry.torch_copy import dynamo_sources, torch_of

    place = torch_of(table) or source
    found = raised_types(dynamo_sources(place)) if place is not None else None
    return found if found is not None and found.calls else None
