"""Numbers as bars on one scale: shares for a page, strokes for a terminal."""

from __future__ import annotations

from typing import Any

from compilescope.report.blocks import Measures
from compilescope.report.render.printable import printable

MEASURE_CELLS = 36
_MOST_LABEL = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"


def measure_values(block: Measures) -> dict[str, Any]:
    return {"rows": [(label, f"{100 * share:.2f}", text) for label, share, text in _shares(block)]}


def measure_rows(block: Measures) -> list[tuple[str, str, str]]:
    """Label, stroke and text of each; labels are padded to one width."""
    shares = _shares(block)
    labels = [_short(printable(label)) for label, _, _ in shares]
    width = max(map(len, labels), default=0)
    return [
        (label.ljust(width), _stroke(share), printable(text))
        for label, (_, share, text) in zip(labels, shares, strict=True)
    ]


def _shares(block: Measures) -> list[tuple[str, float, str]]:
    """Each amount as a share of the largest."""
    most = max((amount for _, amount, _ in block.rows), default=0.0)
    return [
        (label, max(amount, 0.0) / most if most > 0 else 0.0, text)
        for label, amount, text in block.rows
    ]


def _stroke(share: float) -> str:
    """To an eighth of a cell; what is there at all can be seen."""
    eighths = max(round(share * MEASURE_CELLS * 8), 1 if share else 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LABEL else text[: _MOST_LABEL - 1] + "…"
