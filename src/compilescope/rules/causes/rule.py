"""What a rule about graph breaks, or about recompiles, is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import msgspec

from compilescope.findings.breaks import BreakFinding
from compilescope.findings.recompiles import RecompileFinding
from compilescope.findings.remedy import Remedy
from compilescope.source.examples import Example, example_folder, read_examples
from compilescope.source.spots import SourceSpot

_LONGEST = 90
"""Letters of a text of the user's in a sentence. Chosen: the sentence stays about a line."""
_RULES = Path(__file__).parent.parent


class BreakCase(msgspec.Struct, frozen=True, dict=True):
    """A graph break and the source around it: what a rule looks at."""

    finding: BreakFinding
    look: Callable[[], SourceSpot]
    """Finds the spot. It may have to parse a file, and many rules need no look at it."""

    @functools.cached_property
    def spot(self) -> SourceSpot:
        return self.look()

    @functools.cached_property
    def text(self) -> str:
        """The offending expression, on one line, cut where it grows too long to read."""
        text = " ".join(self.spot.text.split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    @property
    def function(self) -> str:
        return self.finding.function

    def says(self, *parts: str) -> bool:
        """Does PyTorch's own type, context or explanation speak of any of these?"""
        told = self.finding
        return _says(told.gb_type, told.context, told.explanation, parts)


@functools.lru_cache(1 << 12)
def _says(gb_type: str, context: str, explanation: str, parts: tuple[str, ...]) -> bool:
    """Every rule asks, of every break, and of thousands torch says the same."""
    words = f"{gb_type}\n{context}\n{explanation}"
    return any(part in words for part in parts)


class BreakRule(msgspec.Struct, frozen=True, dict=True):
    """A pattern of graph breaks. The first rule that applies, by `order`, explains a site."""

    id: str
    category: str
    """A category of the registry's taxonomy."""
    order: int
    """Special patterns come before general ones."""
    applies: Callable[[BreakCase], bool]
    """By what torch says (`says`), by `in_torch` and by the spot, and by nothing else."""
    why: Callable[[BreakCase], str]
    remedies: Callable[[BreakCase], list[Remedy]]
    echo: bool = False
    """True where the break is what an earlier break left behind."""

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        return read_examples(example_folder(_RULES / "breaks", self.id))


class RecompileCase(msgspec.Struct, frozen=True):
    """A guard that failed and the source that made Dynamo install it: what a rule looks at."""

    finding: RecompileFinding
    spot: SourceSpot


class GuardRule(msgspec.Struct, frozen=True, dict=True):
    """A pattern of failed guards. The first rule that applies, by `order`, explains a recompile."""

    id: str
    order: int
    applies: Callable[[RecompileCase], bool]
    why: Callable[[RecompileCase], str]
    remedies: Callable[[RecompileCase], list[Remedy]]

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        """`bad` recompiles, and this rule explains it; `good` compiles once."""
        return read_examples(example_folder(_RULES / "recompiles", self.id))
