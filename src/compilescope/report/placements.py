"""Ways to say what is compiled, side by side: what each loses, how much of the program runs
compiled, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.record.fix_search import Placement
from compilescope.report.blocks import Block, Span, Style, Table, Words, note, words
from compilescope.report.render.spans import duration

PLACEMENTS = "Where to compile"
VERDICT_STYLES: dict[str, Style] = {
    "verified": "good",
    "apart": "warn",
    "rejected": "bad",
    "unverified": "warn",
    "refused": "dim",
    "original": "dim",
}


def placement_blocks(placements: Sequence[Placement]) -> Iterator[Block]:
    """Nothing where there was no choice."""
    if len(placements) < 2:
        return
    timed = any(each.warm_s is not None for each in placements)
    built = any(each.compile_s is not None for each in placements)
    columns = ["compiled is", "breaks", "recomp.", "share"]
    columns += ["warm step"] * timed + ["compile", "peak"] * built + ["verdict"]
    rows = tuple(_row(each, timed=timed, built=built) for each in placements)
    yield Table(tuple(columns), rows, numeric=tuple(range(1, len(columns) - 1)))
    yield note("share: of the operators that run, those in graphs. *: what is offered.")


def _row(each: Placement, *, timed: bool, built: bool) -> tuple[Words, ...]:
    lost = each.losses
    cells = [
        words(Span(each.title, "strong"), " *" if each.chosen else ""),
        words(str(lost.breaks) if lost is not None else ""),
        words(str(lost.recompiles) if lost is not None else ""),
        words(f"{each.share:.0%}" if each.share is not None else ""),
    ]
    if timed:
        cells.append(words(duration(each.warm_s * 1e9) if each.warm_s is not None else ""))
    if built:
        cells.append(words(f"{each.compile_s:.1f} s" if each.compile_s is not None else ""))
        memory = each.memory_bytes
        cells.append(words(f"{memory / 1e6:.0f} MB" if memory is not None else ""))
    verdict = "" if each.verdict == "original" else each.verdict
    return (*cells, words(Span(verdict, VERDICT_STYLES[each.verdict])))
