"""What the commands of `compilescope registry` share: how they print, and how they name a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compilescope.apps.cli.output import tell
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.registry.table import Registry
    from compilescope.report.blocks import Block

F = TypeVar("F", bound=Callable[..., Any])


def print_blocks(title: str, subtitle: str, blocks: Iterable[Block], rest: str = "") -> None:
    """`rest` is the command that shows what two screens have no room for; without it, all."""
    from compilescope.report.blocks import Document, Part

    tell(Document(title, subtitle, (Part("registry", "", tuple(blocks)),)), rest)


def note_lines(note: str) -> list[str]:
    """A note for a terminal, which wraps lines itself: paragraphs are joined, the rest is kept."""
    lines: list[str] = []
    code = joins = False
    for line in note.strip().split("\n"):
        fence = line.lstrip().startswith("```")
        plain = not (code or fence or line[:1] in ("", "#", "|", "-", "*", ">", " "))
        if plain and joins:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        code, joins = code != fence, plain
    return lines


def table_name(table: Registry) -> str:
    if table.name:
        return table.name
    return f"torch {table.torch}" if table.torch else Path(table.path).name


def file_option(function: F) -> F:
    function = click.option(
        "--installed",
        is_flag=True,
        help="The installed torch's table, not the one that `registry update --from` downloaded.",
    )(function)
    return click.option(
        "--file",
        "file",
        type=click.Path(path_type=Path),
        help="Another torch's graph_break_registry.json. [default: the downloaded table, else the "
        "installed torch's]",
    )(function)


def wanted_table(file: Path | None, installed: bool) -> Registry:
    """What the two options ask for."""
    from compilescope.knowledge.registry.downloads import current_registry
    from compilescope.knowledge.registry.table import load_registry

    if file is not None and installed:
        raise ToolError("--file and --installed name different tables.", "Pass one of them.")
    return load_registry(file) if file is not None or installed else current_registry()
