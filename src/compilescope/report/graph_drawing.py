"""A graph drawn: as SVG, and as lines of text.

The SVG has the inputs above, each node below what it needs, and edges between them. Bounded: a
graph with more nodes than can be looked at is cut off, and the drawing says so. All words come from
a program and are escaped.

In text, left of each node stand rails that carry values down. A rail begins at the node that makes
a value and ends at the last node that needs it, so every edge can be followed with a finger:

    ●    x
    │ ●  y
    ● │  sin(x)
    │ ●  cos(y)
    ●─╯  add(sin, cos)
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from compilescope.base.texts import visible
from compilescope.knowledge.rules.hardware.constraint import shown_op
from compilescope.record.graph import Graph, Node
from compilescope.record.graphs.flops import op_name
from compilescope.record.stack import place_of

# Chosen, in pixels: a node holds two lines of small type; arrows between rows can be told apart.
_WIDTH, _HEIGHT = 196, 50
_GAP_Y = 34
_STEP = _WIDTH + 18
_MARGIN, _TITLE = 16, 34
# Chosen: what fits a page's width, and a node's.
_MOST_IN_ROW = 8
_MOST_LETTERS = 27
_KINDS = {"placeholder": "input", "get_attr": "input", "output": "output"}
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1d2330 }
.title { font-size: 14px; font-weight: 600 }
.op { font-weight: 600 }
.small { font-size: 10.5px; fill: #5a6472 }
rect { fill: #fff; stroke: #8893a5; rx: 5px }
.input rect { fill: #eaf3ec; stroke: #7fae8b }
.output rect { fill: #efeaf6; stroke: #a08fc4 }
.marked rect { fill: #fdecea; stroke: #c4483b; stroke-width: 2 }
path { fill: none; stroke: #a9b2c0 }
svg { background: #fbfbfc }
"""


class _NodeBox(NamedTuple):
    x: float
    y: float


def draw_graph(
    graph: Graph, title: str = "", marks: Mapping[str, str] | None = None, *, most: int = 600
) -> str:
    """`marks` are nodes to show in red, with what to say of each."""
    nodes = graph.nodes[:most]
    boxes = _boxes(nodes)
    height = max((box.y for box in boxes.values()), default=0.0) + _HEIGHT + _MARGIN
    width = max((box.x for box in boxes.values()), default=0.0) + _WIDTH + _MARGIN
    left = len(graph.nodes) - len(nodes)
    words = f"{title} ({len(nodes)} of {len(graph.nodes)} nodes)" if left else title
    width = max(width, 2 * _MARGIN + 9 * len(words))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{_safe(words)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="{_MARGIN}" y="22">{_safe(words)}</text>',
        *_edges(nodes, boxes),
        *(_node(node, boxes[node.name], (marks or {}).get(node.name)) for node in nodes),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _boxes(nodes: tuple[Node, ...]) -> dict[str, _NodeBox]:
    """Rows of nodes; in a row each stands near what it needs."""
    boxes: dict[str, _NodeBox] = {}
    y = float(_MARGIN + _TITLE)
    for level in _levels(nodes):
        ordered = sorted(level, key=lambda node: _middle(node, boxes))
        for start in range(0, len(ordered), _MOST_IN_ROW):
            row = ordered[start : start + _MOST_IN_ROW]
            left = float(_MARGIN)
            for column, node in enumerate(row):
                # As far to the right as it wishes, with room left for those after it.
                most = _MARGIN + (_MOST_IN_ROW - len(row) + column) * _STEP
                x = max(left, min(_middle(node, boxes), most))
                boxes[node.name] = _NodeBox(x, y)
                left = x + _STEP
            y += _HEIGHT + _GAP_Y
    return boxes


def _middle(node: Node, boxes: Mapping[str, _NodeBox]) -> float:
    above = [boxes[name].x for name in node.inputs if name in boxes]
    return sum(above) / len(above) if above else 0.0


def _levels(nodes: tuple[Node, ...]) -> list[list[Node]]:
    """A node stands below all that it needs, an input right above what first needs it."""
    depth: dict[str, int] = {}
    for node in nodes:
        below = [depth[name] for name in node.inputs if name in depth]
        depth[node.name] = 1 + max(below, default=0)
    first_use: dict[str, int] = {}
    for node in nodes:
        for name in node.inputs:
            first_use[name] = min(first_use.get(name, depth[node.name]), depth[node.name])
    for node in nodes:
        if node.op in ("placeholder", "get_attr"):
            depth[node.name] = max(first_use.get(node.name, 1) - 1, 0)
    levels: dict[int, list[Node]] = {}
    for node in nodes:
        levels.setdefault(depth[node.name], []).append(node)
    return [levels[number] for number in sorted(levels)]


def _edges(nodes: tuple[Node, ...], boxes: Mapping[str, _NodeBox]) -> Iterable[str]:
    for node in nodes:
        end = boxes[node.name]
        above = sorted(boxes[name] for name in set(node.inputs) if name in boxes)
        for number, start in enumerate(above, 1):
            x1, y1 = start.x + _WIDTH / 2, start.y + _HEIGHT
            x2, y2 = end.x + _WIDTH * number / (len(above) + 1), end.y
            bend = max(_GAP_Y * 0.8, (y2 - y1) * 0.4)
            yield (
                f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} '
                f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"/>'
            )


def _node(node: Node, box: _NodeBox, mark: str | None) -> str:
    kind = _KINDS.get(node.op, "call")
    marked = " marked" if mark is not None else ""
    op = {"call": op_name, "input": shown_op}.get(kind, lambda _: node.op)(node)
    x, y = box
    lines = [("op", 16, op), ("small", 30, node.name), ("small", 43, _shape(node))]
    words = (
        f'<text class="{style}" x="{x + 8:.0f}" y="{y + down:.0f}">{_safe(_short(text))}</text>'
        for style, down, text in lines
    )
    return (
        f'<g class="{kind}{marked}"><title>{_safe(_about(node, mark))}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}"/>'
        f"{''.join(words)}</g>"
    )


def _shape(node: Node) -> str:
    return ", ".join(f"{value.dtype}[{', '.join(map(str, value.shape))}]" for value in node.outputs)


def _about(node: Node, mark: str | None) -> str:
    """What a pointer over the node shows."""
    lines = [f"{node.name}: {node.target}", _shape(node), mark or ""]
    if node.frame is not None:
        lines.append(f"{place_of(node.frame.file, node.frame.line)} in {node.frame.function}")
        lines.append(node.frame.source.strip())
    return "\n".join(line for line in lines if line)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _safe(text: str) -> str:
    return html.escape(visible(text))


_INPUTS = ("placeholder", "get_attr")
_MOST_RAILS = 12
"""More can't be told apart by eye: the rest of a row is left out. Chosen."""


class Row(NamedTuple):
    """A node: its rails, what it does, what it gives."""

    rails: str
    words: str
    shape: str


def rail_rows(graph: Graph, most: int = 60) -> tuple[list[Row], int]:
    """The rows of the first `most` nodes, and how many nodes are left out."""
    nodes = _ordered(graph.nodes)
    last = {name: at for at, node in enumerate(nodes) for name in node.inputs}
    rails: list[str | None] = []
    rows = []
    for at, node in enumerate(nodes[:most]):
        drawn = _step(rails, node, {name for name in node.inputs if last[name] == at})
        rows.append(
            Row(drawn, visible(_words(node)), visible("" if node.op == "output" else _shape(node)))
        )
        if node.name not in last:
            rails[rails.index(node.name)] = None  # Nothing needs it.
        while rails and rails[-1] is None:
            rails.pop()
    return rows, max(len(nodes) - most, 0)


def _ordered(nodes: Iterable[Node]) -> list[Node]:
    """In order of execution, but each input right before what first needs it."""
    waiting = {node.name: node for node in nodes if node.op in _INPUTS}
    ordered: list[Node] = []
    for node in nodes:
        if node.op in _INPUTS:
            continue
        ordered += [waiting.pop(name) for name in node.inputs if name in waiting]
        if node.op == "output":
            ordered += waiting.values()
            waiting.clear()
        ordered.append(node)
    return [*ordered, *waiting.values()]


def _step(rails: list[str | None], node: Node, ending: set[str]) -> str:
    """Draw a node's row, and leave in `rails` what runs on below it."""
    used = [at for at, name in enumerate(rails) if name in node.inputs]
    ends = [at for at in used if rails[at] in ending]
    place = ends[0] if ends else _free(rails)
    before = list(rails)
    for at in ends:
        rails[at] = None
    rails[place] = node.name
    span = range(min([*used, place]), max([*used, place]) + 1)
    marks = [_mark(at, before, rails, place, used, span) for at in range(len(rails))]
    text = "".join(mark + ("─" if at in span[:-1] else " ") for at, mark in enumerate(marks))
    wide = 2 * _MOST_RAILS
    return text.rstrip() if len(text) <= wide else text[: wide - 1] + "…"


def _free(rails: list[str | None]) -> int:
    if None not in rails:
        rails.append(None)
    return rails.index(None)


def _mark(
    at: int,
    before: list[str | None],
    after: list[str | None],
    place: int,
    used: list[int],
    span: range,
) -> str:
    if at == place:
        return "●"
    if at in used:
        goes_on = after[at] is not None
        if at == span[0]:
            return "├" if goes_on else "╰"
        if at == span[-1]:
            return "┤" if goes_on else "╯"
        return "┼" if goes_on else "┴"
    alive = at < len(before) and before[at] is not None
    if at in span:
        return "│" if alive else "─"
    return "│" if alive else " "


def _words(node: Node) -> str:
    if node.op in _INPUTS:
        return shown_op(node) if node.source else node.name
    if node.op == "output":
        return f"output({', '.join(node.inputs)})"
    name = node.target if node.op == "call_module" else op_name(node)
    given = node.arguments or ", ".join(node.inputs)
    return f"{node.name} = {name}({given})"
