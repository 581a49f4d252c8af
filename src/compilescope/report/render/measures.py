"""Numbers as bars on one scale, with whiskers: shares for a page, strokes for a terminal."""

from __future__ import annotations

from typing import Any, NamedTuple

from compilescope.report.blocks import Measures

# Chosen, in columns: a bar is about half of a line; a shorter one shows no difference.
MEASURE_CELLS = 36
_FEWEST_CELLS = 12
_LINE = 74
"""Columns that a row may take, of the eighty that a terminal has at least."""
_MOST_LABEL = 24
"""Letters. Chosen: the rest of such a line, with room for a figure."""
_EIGHTHS = " ▏▎▍▌▋▊▉"


class _MeasureRow(NamedTuple):
    label: str
    share: float
    """Of the largest that is drawn, intervals included."""
    text: str
    whisker: tuple[float, float] | None
    """From and to, as such shares."""


def measure_values(block: Measures) -> dict[str, Any]:
    return {
        "rows": [
            (
                row.label,
                f"{100 * row.share:.2f}",
                row.text,
                _placed(row.whisker),
                _is_idle(block, number),
            )
            for number, row in enumerate(_rows(block))
        ]
    }


def _is_idle(block: Measures, row: int) -> bool:
    return block.idle_from is not None and row >= block.idle_from


def measure_rows(block: Measures) -> list[tuple[str, str, str]]:
    """Label, stroke and text of each; labels are padded to one width."""
    rows = _rows(block)
    labels = [_short(row.label) for row in rows]
    texts = [row.text for row in rows]
    width = max(map(len, labels), default=0)
    cells = MEASURE_CELLS
    if block.intervals:
        # Their texts are longer, and a text that is cut says less than a shorter bar.
        room = _LINE - width - max(map(len, texts), default=0)
        cells = min(max(room, _FEWEST_CELLS), MEASURE_CELLS)
    return [
        (label.ljust(width), _stroke(row.share, row.whisker, cells), text)
        for label, row, text in zip(labels, rows, texts, strict=True)
    ]


def _rows(block: Measures) -> list[_MeasureRow]:
    intervals = block.intervals or (None,) * len(block.rows)
    ends = [high for interval in intervals if interval is not None for high in interval]
    most = max([amount for _, amount, _ in block.rows] + ends, default=0.0)

    def share(amount: float) -> float:
        return max(amount, 0.0) / most if most > 0 else 0.0

    return [
        _MeasureRow(
            label,
            share(amount),
            text,
            (share(interval[0]), share(interval[1])) if interval is not None else None,
        )
        for (label, amount, text), interval in zip(block.rows, intervals, strict=True)
    ]


def _placed(whisker: tuple[float, float] | None) -> tuple[str, str] | None:
    """Its left end and its width, in percent."""
    if whisker is None:
        return None
    low, high = whisker
    return f"{100 * low:.2f}", f"{100 * (high - low):.2f}"


def _stroke(share: float, whisker: tuple[float, float] | None, cells: int) -> str:
    """To an eighth of a cell; what is there at all can be seen. A whisker that is narrower than a
    cell has no room; the text beside it has the figures."""
    if whisker is not None:
        low, high = (min(int(end * cells), cells - 1) for end in whisker)
        if high > low:
            line = ["█"] * low + ["├"] + ["─"] * (high - low - 1) + ["┤"]
            if low < (at := int(share * cells)) < high:
                line[at] = "┼"
            return "".join(line)
    eighths = max(round(share * cells * 8), 1 if share else 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LABEL else text[: _MOST_LABEL - 1] + "…"
