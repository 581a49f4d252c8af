"""What a rule about graph breaks, or about recompiles, is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilescope.rules.causes.remedy import Remedy
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.sites import Site
from compilescope.rules.source import Spot

_LONGEST = 90


@dataclass(frozen=True)
class Example:
    """A program that a rule fires on, and the same program after what the rule says to do."""

    bad: str
    good: str = ""
    """After a remedy of kind `source`: silent, and it prints what `bad` prints."""
    changes: str = ""
    """Where the remedy gives something up, and the two print different things: what it is."""


@dataclass(frozen=True)
class Cause:
    """One break site and the source around it: what a rule looks at."""

    site: Site
    spot: Spot

    @property
    def text(self) -> str:
        """The offending expression, on one line, cut where it grows too long to read."""
        text = " ".join(self.spot.text.split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    @property
    def function(self) -> str:
        return self.site.function

    def says(self, *parts: str) -> bool:
        """Does PyTorch's own type, context or explanation speak of any of these?"""
        words = f"{self.site.gb_type}\n{self.site.context}\n{self.site.explanation}"
        return any(part in words for part in parts)


@dataclass(frozen=True)
class BreakRule:
    """A pattern of graph breaks. The first rule that applies, by `order`, explains a site."""

    id: str
    category: str
    """A category of the registry's taxonomy."""
    order: int
    """Special patterns come before general ones."""
    applies: Callable[[Cause], bool]
    why: Callable[[Cause], str]
    remedies: Callable[[Cause], list[Remedy]]
    examples: tuple[Example, ...]
    echo: bool = False
    """True where the break is what an earlier break left behind."""


@dataclass(frozen=True)
class Miss:
    """One guard that failed, in the function that was compiled again because of it."""

    cause: RecompileCause
    frame: RecompiledFrame
    spot: Spot
    """The user's line that made Dynamo install the guard."""


@dataclass(frozen=True)
class GuardRule:
    """A pattern of failed guards. The first rule that applies, by `order`, explains a recompile."""

    id: str
    order: int
    applies: Callable[[Miss], bool]
    why: Callable[[Miss], str]
    remedies: Callable[[Miss], list[Remedy]]
    examples: tuple[Example, ...]
    """`bad` recompiles, and this rule explains it; `good` compiles once."""
