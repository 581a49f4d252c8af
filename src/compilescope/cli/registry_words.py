"""What the commands of `compilescope registry` share: how they print, and how they name a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.cli.options import has_colour, report_width

if TYPE_CHECKING:
    from compilescope.registry.table import Registry
    from compilescope.report.blocks import Block


def print_blocks(title: str, subtitle: str, blocks: Iterable[Block]) -> None:
    from compilescope.report.blocks import Document, Part
    from compilescope.report.render.terminal import to_text

    document = Document(title, subtitle, (Part("registry", "", tuple(blocks)),))
    sys.stdout.write(to_text(document, width=report_width(), colour=has_colour(sys.stdout)))
    sys.stdout.flush()


def table_name(table: Registry) -> str:
    return f"torch {table.torch}" if table.torch else Path(table.path).name
