"""How often graph breaks are met: counted once over models and programs, kept in met.json.

`benchmarks/registry_counts.py` makes the file; it says what was counted. Nothing is sent or
gathered from users.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

MET = Path(__file__).with_name("met.json")


class BreakCount(msgspec.Struct, frozen=True):
    """Where one id was met."""

    models: int = 0
    """Model classes of transformers that met it."""
    programs: int = 0
    """Programs of the zoo and the examples that met it."""
    named: tuple[str, ...] = ()
    """Some of the models."""


class BreakCounts(msgspec.Struct, frozen=True):
    """The counts, and what they were taken over."""

    torch: str = ""
    transformers: str = ""
    models: int = 0
    """How many model classes compiled."""
    programs: int = 0
    ids: dict[str, BreakCount] = {}

    def rank(self, gb_id: str) -> tuple[int, int]:
        """What sorts ids: those that most models met first, then those of most programs."""
        found = self.ids.get(gb_id, BreakCount())
        return -found.models, -found.programs


@lru_cache(maxsize=1)
def load_break_counts() -> BreakCounts:
    return msgspec.json.decode(MET.read_bytes(), type=BreakCounts)
