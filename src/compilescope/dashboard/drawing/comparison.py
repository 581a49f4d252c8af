"""Two runs side by side: which ones, and what worker processes draw of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from compilescope.dashboard.addresses import Missing, compare_address
from compilescope.dashboard.runs.rows import RunRow
from compilescope.errors import ToolError
from compilescope.report.moments import moment
from compilescope.report.render.page import PageParts, page_parts
from compilescope.report.run_comparison import compare_runs, read_side, split_rank

# Chosen: programs that ran twice, the newest first, and letters of a run's name that anyone may
# send.
_MOST_PAIRS = 12
_LONGEST_NAME = 300


class Chosen(NamedTuple):
    """A run that was asked for, or one rank of it."""

    row: RunRow
    rank: int | None

    @property
    def name(self) -> str:
        return self.row.run if self.rank is None else f"{self.row.run}@{self.rank}"


class Pair(NamedTuple):
    """The two newest runs of a program."""

    program: str
    newest: str
    """When it was."""
    before: str
    after: str

    @property
    def address(self) -> str:
        return compare_address(self.before, self.after)


def draw_comparison(
    before: Path, before_rank: int | None, after: Path, after_rank: int | None
) -> PageParts:
    sides = read_side(before, before_rank), read_side(after, after_rank)
    return page_parts([compare_runs(*sides).document], headed=False)


def find_chosen(
    rows: Sequence[RunRow], name: str, named_by_start: Callable[[str], str | None]
) -> Chosen:
    """By its id or the start of it, as on the command line; `RUN@1` is a rank.

    `named_by_start` reads the ids inside the folders, which may have other names.
    """
    if len(name) > _LONGEST_NAME:
        raise ToolError("The id of a run is shorter than this.")
    exact = [row for row in rows if row.run == name]
    if exact:
        return Chosen(exact[0], None)
    run, rank = split_rank(name)
    found = [row for row in rows if row.run == run] or [r for r in rows if r.run.startswith(run)]
    if not found and (folder := named_by_start(run)) is not None:
        found = [row for row in rows if row.run == folder]
    if len(found) == 1:
        return Chosen(found[0], rank)
    if not found or not run:
        raise Missing(f"There is no run {name!r}.", hint="Choose one of the list.")
    names = ", ".join(row.run for row in found[:5])
    raise ToolError(f"{name!r} matches {len(found)} runs: {names}.")


def newest_pairs(rows: Sequence[RunRow]) -> list[Pair]:
    """Of each program that ran twice; rows come with the newest first."""
    found: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        found.setdefault((row.kind, row.program), []).append(row)
    return [
        Pair(of[0].program, moment(of[0].started), of[1].run, of[0].run)
        for of in found.values()
        if len(of) > 1
    ][:_MOST_PAIRS]
