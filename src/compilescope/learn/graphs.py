"""An FX graph as a drawing: boxes and arrows in a notebook, rails of text elsewhere."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from compilescope.learn.display import has_colour, show_html, width, write
from compilescope.model.graph import Graph
from compilescope.report.graph_drawing import draw_graph as draw_svg
from compilescope.report.rails import Row, rail_rows

_MOST = 60
"""Nodes that a lesson draws. Chosen: two screens or so."""
_CODES = {"bold": "1", "rails": "36", "dim": "2"}


def draw_graph(graph: Any, title: str = "") -> None:
    """Draw a GraphModule, an FX graph or an exported program: nodes and edges, inputs first."""
    portable = _portable(graph)
    if not show_html(draw_svg(portable, title)):
        rows, left = rail_rows(portable, _MOST)
        write(_text(title, rows, left))


def _portable(graph: Any) -> Graph:
    import torch

    from compilescope.torchapi.graphs.described import with_arguments
    from compilescope.torchapi.graphs.fx import portable

    module = getattr(graph, "graph_module", graph)  # An exported program has one.
    if isinstance(module, torch.fx.Graph):
        owner = module.owning_module
        module = torch.fx.GraphModule(torch.nn.Module() if owner is None else owner, module)
    return with_arguments(portable(module), module)


def _text(title: str, rows: list[Row], left: int) -> str:
    rails = max((len(row.rails) for row in rows), default=0)
    room = width() - rails - 5
    shapes = max((len(row.shape) for row in rows), default=0)
    most = max(min(max((cell_len(row.words) for row in rows), default=0), room - shapes - 2), 20)
    lines = ["", f"  {_styled(title, 'bold')}"] if title else [""]
    for row in rows:
        what = row.words if len(row.words) <= most else row.words[: most - 1] + "…"
        drawn = _styled(row.rails.ljust(rails), "rails")
        lines.append(f"  {drawn}  {what.ljust(most)}  {_styled(row.shape, 'dim')}".rstrip())
    if left:
        lines.append(f"  and {left} more nodes")
    return "\n".join([*lines, ""])


def _styled(text: str, style: str) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and has_colour() else text
