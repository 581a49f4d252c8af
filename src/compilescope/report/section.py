"""What a section of a report is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilescope.report.blocks import Block
from compilescope.rules.digest import Digest


@dataclass(frozen=True)
class Section:
    """A part of the report. An empty list of blocks leaves it out."""

    id: str
    order: int
    build: Callable[[Digest], list[Block]]
