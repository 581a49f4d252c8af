"""The rows of what `fix` tells: attempts that come to the same edit are one row."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from compilescope.report.fixing import FixCause, FixLine
from compilescope.report.places import place

if TYPE_CHECKING:
    from compilescope.repair.search.outcome import Attempt

_MOST_PLACE = 20
_MOST_REASON = 140


def fix_lines(attempts: Iterable[Attempt], root: str) -> list[FixLine]:
    """In the order of the attempts; each names all the causes that it was tried on."""
    rows: dict[object, list[Attempt]] = {}
    for each in attempts:
        rows.setdefault(_sameness(each), []).append(each)
    return [_line(same, root) for same in rows.values()]


def _sameness(attempt: Attempt) -> object:
    common = (attempt.fix, attempt.verdict, attempt.kept, attempt.round)
    if attempt.fix:
        return (*common, attempt.diff)
    # Nothing fits: told once for all causes of a kind that it is told of in the same words.
    return (*common, attempt.rule, clause(attempt.reason))


def _line(same: list[Attempt], root: str) -> FixLine:
    first = same[0]
    return FixLine(
        causes=tuple(_cause(each, root) for each in same),
        fix=first.title or first.fix,
        verdict=first.verdict,
        kept=first.kept,
        tried=bool(first.fix) or not first.reason.startswith("not tried"),
        ending=_ending(first),
        reason="" if first.reason == first.states else clause(first.reason),
        states=first.states,
        breaks=(first.breaks_before, first.breaks_after),
        recompiles=(first.recompiles_before, first.recompiles_after),
        warm_call=_warm_call(first),
        others=tuple((name, clause(why)) for name, why in first.refused),
    )


def _cause(attempt: Attempt, root: str) -> FixCause:
    return FixCause(
        name=attempt.rule or attempt.cause,
        place=place(attempt.file, attempt.line, root),
        short_place=_short(f"{os.path.basename(attempt.file)}:{attempt.line}"),
        function=attempt.function,
        source=attempt.source,
    )


def _ending(attempt: Attempt) -> str:
    """In a word, how that version ended where the original does not."""
    for check in attempt.checks:
        if check.name == "exit" and check.verdict == "fail":
            if check.words.startswith("it crashes"):
                return "crashes"
            return "times out" if "did not finish" in check.words else "exits differently"
    return ""


def clause(reason: str) -> str:
    """The first thing that matters; --json has all of it."""
    words = " ".join(reason.split())
    first = words.partition("; ")[0]
    if len(first) <= _MOST_REASON:
        return first
    cut = first[:_MOST_REASON].rpartition(" ")[0] or first[:_MOST_REASON]
    return cut.rstrip(",:") + " …"


def _warm_call(attempt: Attempt) -> tuple[float, float] | None:
    """Seconds before and after."""
    times = attempt.times
    if times is None or times.before.steady is None or times.after.steady is None:
        return None
    return times.before.steady.median, times.after.steady.median


def _short(at: str) -> str:
    return at if len(at) <= _MOST_PLACE else "…" + at[1 - _MOST_PLACE :]
