"""What `--time` adds to a call of compiled code, in nanoseconds.

Two copies of one function are compiled under a timed capture; then the clocks are taken off one of
them. Both are called in turns, batch by batch, so that whatever else the machine does hits both.
The figure is the median over the batches of (with - without), with the quartiles beside it, and the
difference of the fastest batches: on a busy machine the truer one, for noise only adds.

    python benchmarks/timing_overhead.py [--batches N] [--calls N] [--json]
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

import compilescope

ONE_GRAPH = """
def step(x):
    return x + 1
"""
MANY_GRAPHS = """
import torch
def step(x):
    x = x + 1
    torch._dynamo.graph_break()
    x = x + 1
    torch._dynamo.graph_break()
    x = x + 1
    torch._dynamo.graph_break()
    x = x + 1
    torch._dynamo.graph_break()
    return x + 1
"""


@dataclass
class Result:
    """One kind of call."""

    name: str
    graphs: int
    without_ns: float
    with_ns: float
    added_ns: float
    added_quartiles_ns: tuple[float, float]
    fastest_added_ns: float


def compiled(source: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    scope: dict[str, Any] = {}
    exec(compile(source, "<benchmark>", "exec"), scope)
    return torch.compile(scope["step"], backend="eager"), scope


def take_clocks_off(function: Callable[..., Any], scope: dict[str, Any]) -> None:
    for name, value in list(scope.items()):
        if hasattr(value, "_compilescope_home"):
            scope[name] = value.__wrapped__
    for cell in function.__closure__ or ():
        hooks = getattr(cell.cell_contents, "enter_exit_hooks", [])
        hooks[:] = [hook for hook in hooks if "compilescope" not in hook.__module__]


def batch(function: Callable[..., Any], x: torch.Tensor, calls: int) -> float:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function(x)
    return (time.perf_counter_ns() - begin) / calls


def measure(name: str, source: str, graphs: int, batches: int, calls: int) -> Result:
    x = torch.ones(1)
    with compilescope.capture(time=True) as run:
        timed, plain = compiled(source), compiled(source)
        for function, _ in (timed, plain):
            function(x)
        take_clocks_off(*plain)
        for function, _ in (timed, plain):
            batch(function, x, calls)
        pairs = []
        for number in range(batches):
            order = (plain, timed) if number % 2 else (timed, plain)
            seen = {id(which): batch(which[0], x, calls) for which in order}
            pairs.append((seen[id(plain)], seen[id(timed)]))
    assert not run.digest.faults, run.digest.faults
    added = [after - before for before, after in pairs]
    low, _, high = statistics.quantiles(added, n=4)
    return Result(
        name=name,
        graphs=graphs,
        without_ns=round(statistics.median(before for before, _ in pairs), 1),
        with_ns=round(statistics.median(after for _, after in pairs), 1),
        added_ns=round(statistics.median(added), 1),
        added_quartiles_ns=(round(low, 1), round(high, 1)),
        fastest_added_ns=round(min(b for _, b in pairs) - min(a for a, _ in pairs), 1),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=201)
    parser.add_argument("--calls", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    logging.getLogger("torch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    one = measure("a region with 1 graph", ONE_GRAPH, 1, args.batches, args.calls)
    torch._dynamo.reset()
    many = measure("a region with 5 graphs", MANY_GRAPHS, 5, args.batches, args.calls)
    each = (many.added_ns - one.added_ns) / (many.graphs - one.graphs)
    fastest = (many.fastest_added_ns - one.fastest_added_ns) / (many.graphs - one.graphs)
    if args.json:
        print(json.dumps({"results": [asdict(one), asdict(many)], "added_per_graph_ns": each}))
        return 0
    print(f"Python {platform.python_version()}, torch {torch.__version__}")
    print(f"{args.batches} batches of {args.calls} calls each way, in turns; medians [quartiles]")
    for result in (one, many):
        low, high = result.added_quartiles_ns
        print(
            f"{result.name}: {result.without_ns:.0f} ns without, {result.with_ns:.0f} ns with: "
            f"{result.added_ns:.0f} ns added [{low:.0f}, {high:.0f}], "
            f"{result.fastest_added_ns:.0f} ns by the fastest"
        )
    print(f"each further graph: {each:.0f} ns added, {fastest:.0f} ns by the fastest")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
