"""The functions that lessons import: to draw and to measure.

Everything that draws does so at once: in a notebook as HTML, elsewhere as text on stdout. Time and
memory are measured the way that lessons teach: repeated, interleaved, medians.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rich.cells import cell_len

from compilescope.apps.learn.display import (
    bars,
    beside,
    code,
    has_colour,
    missing,
    show,
    show_html,
    table,
    timeline,
    width,
    write,
)
from compilescope.apps.learn.verdict import judge
from compilescope.record.graph import Graph
from compilescope.report.graph_drawing import Row, rail_rows
from compilescope.report.graph_drawing import draw_graph as draw_svg

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

    from compilescope.instrument.torchapi.graphs.described_graph import with_arguments
    from compilescope.instrument.torchapi.graphs.fx import portable

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


_LEAST_S = 0.0005
"""A sample shorter than this would measure the clock. Chosen."""
# Chosen: a learner waits half a second for a comparison, unless its runs take longer.
_ENOUGH_S = 0.5
_MOST_RUNS = 100


def median_ms(functions: Mapping[str, Callable[[], Any]], runs: int = 15) -> dict[str, float]:
    """The median time of one call of each, in milliseconds.

    Each is called once first. Then they take turns, so that a machine that slows down for a moment
    slows all of them down: `runs` times at least, more often where that takes no time. A function
    that takes microseconds is called many times in a sample.
    """
    repeats = {name: _repeats(function) for name, function in functions.items()}
    samples: dict[str, list[float]] = {name: [] for name in functions}
    names, begun, done = list(functions), perf_counter(), 0
    while done < runs or (done < _MOST_RUNS and perf_counter() - begun < _ENOUGH_S):
        # Another one begins each round: what interrupts us in a rhythm meets each in turn.
        first = done % max(len(names), 1)
        for name in names[first:] + names[:first]:
            samples[name].append(_seconds(functions[name], repeats[name]) / repeats[name])
        done += 1
    return {name: 1000 * statistics.median(taken) for name, taken in samples.items()}


_ROUNDS = 6
"""The lowest and the highest of six hold the median with 1 - 2 / 2**6, which is 97 %."""
_AGAIN = "the same again"


@dataclass(frozen=True)
class Timings:
    """Functions beside the first of them, in several rounds."""

    rounds: Sequence[Mapping[str, float]]
    """Milliseconds of each; the first function is in it twice."""

    @property
    def ms(self) -> dict[str, float]:
        """The median over all rounds."""
        return {
            name: statistics.median(each[name] for each in self.rounds)
            for name in self.rounds[0]
            if name != _AGAIN
        }

    def share(self, name: str) -> tuple[float, float]:
        """How many times as long as the first it takes: at least, and at most."""
        base = next(iter(self.rounds[0]))
        shares = [each[name] / each[base] for each in self.rounds]
        return min(shares), max(shares)

    def differs(self, name: str) -> str:
        """`faster than`, `slower than`, `no different from`: a difference is one only beyond what
        one function differs from itself. Or `too noisy to tell from`."""
        low, high = self.share(name)
        least, most = self.share(_AGAIN)
        if high < min(1, least):
            return "faster than"
        if low > max(1, most):
            return "slower than"
        # As for a benchmark: an interval wider than the figure says nothing.
        noisy = most - least > 1 or high - low > low + (high - low) / 2
        return "too noisy to tell from" if noisy else "no different from"


def compare_ms(functions: Mapping[str, Callable[[], Any]], runs: int = 15) -> Timings:
    """Time all in six rounds, each a `median_ms`, with the first function twice: as far as those
    two differ, the machine is noisy."""
    first = next(iter(functions))
    every = {**functions, _AGAIN: functions[first]}
    return Timings([median_ms(every, runs) for _ in range(_ROUNDS)])


def first_call_seconds(function: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """How long one call takes, measured once: a first call can't be repeated."""
    return _seconds(lambda: function(*args, **kwargs), 1)


def fresh_cache() -> AbstractContextManager[None]:
    """Within this block nothing compiled before is found, in memory or on disk."""
    from compilescope.instrument.torchapi.compilation.fresh import fresh_cache as fresh

    return fresh()


def peak_bytes(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """The most memory in tensors at any moment of the call, beyond what was there before; what the
    call returns counts."""
    from compilescope.instrument.torchapi.allocations import peak_bytes as peak

    return peak(function, *args, **kwargs)


def _repeats(function: Callable[[], Any]) -> int:
    function()
    once = _seconds(function, 1)
    return max(1, round(_LEAST_S / once)) if once > 0 else 1000


def _seconds(function: Callable[[], Any], repeats: int) -> float:
    _synchronize()
    begin = perf_counter()
    for _ in range(repeats):
        function()
    _synchronize()
    return perf_counter() - begin


def _synchronize() -> None:
    """A GPU works on after a call has returned."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


__all__ = [
    "bars",
    "beside",
    "code",
    "compare_ms",
    "draw_graph",
    "first_call_seconds",
    "fresh_cache",
    "judge",
    "median_ms",
    "missing",
    "peak_bytes",
    "show",
    "table",
    "timeline",
]
