"""Folds lines of code that few readers want, such as the inputs of a graph, into one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from compilescope.report.blocks import CodeLine


def folded(lines: Iterable[CodeLine]) -> Iterable[tuple[str, Sequence[CodeLine]]]:
    """What to say instead, empty for nothing, and the lines themselves."""
    for fold, members in groupby(lines, key=lambda line: line.fold):
        run = list(members)
        yield (f"{len(run)} {fold}" if fold else ""), run


def shortened(lines: Iterable[CodeLine]) -> list[CodeLine]:
    """With one line for each fold, for readers who cannot open it."""
    shown: list[CodeLine] = []
    for label, run in folded(lines):
        lead = run[0].text[: len(run[0].text) - len(run[0].text.lstrip())]
        shown += [CodeLine(f"{lead}# {label}")] if label else run
    return shown
