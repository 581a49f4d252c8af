"""A timeline in plain HTML: bars placed by percent, so that it fits any width and can be stretched.

No library, and no script is needed to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compilescope.report.blocks import Bar, Lane, Timeline
from compilescope.report.render.spans import duration, taken

_ROW_PX = 19
_KINDS = ("frame", "attempt", "phase", "backend", "cache", "break", "failed", "instant")
_TICKS = 10


def draw_timeline(block: Timeline, clean: Callable[[str], str]) -> str:
    whole = max(block.duration_ns, 1)
    ticks = "".join(
        f'<span style="left:{100 * part / _TICKS:g}%">{duration(whole * part / _TICKS)}</span>'
        for part in range(_TICKS)
    )
    lanes = "".join(_lane(lane, whole, clean) for lane in block.lanes)
    return (
        '<figure class="timeline"><div class="wide" tabindex="0" role="group" '
        'aria-label="Timeline"><div class="track">'
        f'<div class="ticks">{ticks}</div>{lanes}</div></div>'
        f"<figcaption>{_legend(block.lanes)}</figcaption></figure>"
    )


def _lane(lane: Lane, whole: int, clean: Callable[[str], str]) -> str:
    deepest = max((bar.depth for bar in lane.bars), default=0)
    bars = "".join(_bar(bar, whole, clean) for bar in lane.bars)
    height = (deepest + 1) * _ROW_PX
    return (
        f'<div class="lane"><div class="title">{clean(lane.title)}</div>'
        f'<div class="bars" style="height:{height}px">{bars}</div></div>'
    )


def _bar(bar: Bar, whole: int, clean: Callable[[str], str]) -> str:
    left = 100 * min(max(bar.start_ns, 0) / whole, 1)
    width = 100 * min(bar.duration_ns / whole, 1)
    kind = bar.kind if bar.kind in _KINDS else "phase"
    detail = f"\n{bar.detail}" if bar.detail else ""
    title = clean(f"{bar.label}: {taken(bar.duration_ns)}{detail}")
    style = f"left:{left:.2f}%;width:{width:.2f}%;top:{bar.depth * _ROW_PX}px"
    return f'<div class="bar {kind}" style="{style}" title="{title}">{clean(bar.label)}</div>'


def _legend(lanes: Iterable[Lane]) -> str:
    seen = {bar.kind for lane in lanes for bar in lane.bars}
    return " ".join(f'<span class="key {kind}">{kind}</span>' for kind in _KINDS if kind in seen)
