"""Keeps the original's run with what became of each candidate, so that a report can show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compilescope.model.bodies import Body
from compilescope.model.command_run import append_bodies
from compilescope.repair.search.stored_search import copy_run


def keep_tuning(folder: Path, home: Path, bodies: Sequence[Body]) -> Path | None:
    """Copy the run to the user's own; None where that cannot be written."""
    return copy_run(folder, home, lambda part: append_bodies(part, bodies))
