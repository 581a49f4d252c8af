"""What ran when, for a terminal: a stroke for each of the longest."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from compilescope.report.blocks import Bar, Timeline
from compilescope.report.render.spans import taken

_MOST_BARS = 40
"""The longest. Chosen: as many as in markdown."""


def drawn_timeline(block: Timeline, width: int) -> RenderableType:
    """The longest bars of each lane in order, each as a stroke on the same scale."""
    room = max(10, min(24, width // 4))
    grid = Grid.grid(padding=(0, 1), expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(width=room, no_wrap=True)
    for lane in block.lanes:
        grid.add_row(Text(lane.title, style="bold"))
        longest = sorted(lane.bars, key=lambda bar: -bar.duration_ns)[:_MOST_BARS]
        for bar in sorted(longest, key=lambda bar: (bar.start_ns, bar.depth)):
            name = Text("  " * (min(bar.depth, 8) + 1) + bar.label)
            grid.add_row(name, taken(bar.duration_ns), _stroke(bar, block.duration_ns, room))
        if len(lane.bars) > len(longest):
            rest = f"  and {len(lane.bars) - len(longest)} shorter ones"
            grid.add_row(Text(rest, style="dim"))
    return grid


def _stroke(bar: Bar, whole_ns: int, room: int) -> Text:
    start = min(room - 1, bar.start_ns * room // max(whole_ns, 1))
    length = max(1, min(room - start, round(bar.duration_ns * room / max(whole_ns, 1))))
    return Text(" " * start + "━" * length, style="cyan")
