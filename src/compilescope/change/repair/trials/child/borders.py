"""Where two sides of a comparison become equal, found by calling what compares them."""

from __future__ import annotations

import math
from collections.abc import Callable

_SECANTS = 4
"""Chosen: what is compared mostly is linear in the inputs, and one step then is enough."""
_AT_BORDER = 1e-3
"""Of what was left to it at first. Chosen: nearer than the inputs beside it are."""
_BESIDE = 0.03
"""Relative. Chosen: less than limits differ by that somebody chose."""


def solve_border(
    margin: Callable[[float], float | None], points: list[tuple[float, float]]
) -> tuple[float, float] | None:
    """The amount at which next to nothing is left to the border, by secants, and what is left; None
    where none was found. `points`: two amounts with what is left there; `margin`: what is left at
    another one, None where it is not compared."""
    first = abs(points[0][1])
    for _ in range(_SECANTS):
        (before, was), (now, left) = points[-2:]
        step = left * (now - before) / (left - was) if left != was else 0.0
        if not step or not math.isfinite(step):
            break
        found = margin(now - step)
        points.append((now - step, left if found is None else found))
    best = min(points, key=lambda point: abs(point[1]))
    return best if abs(best[1]) <= _AT_BORDER * first else None


def beside(border: float) -> list[float]:
    """A little more, and a little less."""
    step = _BESIDE * (abs(border) or 1.0)
    return [border + step, border - step]
