"""What the commands of `compilescope registry` share: how they print, and how they name a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.cli.telling import tell

if TYPE_CHECKING:
    from compilescope.registry.table import Registry
    from compilescope.report.blocks import Block


def print_blocks(title: str, subtitle: str, blocks: Iterable[Block], rest: str = "") -> None:
    """`rest` is the command that shows what two screens have no room for; without it, all."""
    from compilescope.report.blocks import Document, Part

    tell(Document(title, subtitle, (Part("registry", "", tuple(blocks)),)), rest)


def table_name(table: Registry) -> str:
    return f"torch {table.torch}" if table.torch else Path(table.path).name
