"""A program that does one thing over and over: `storm.py KIND COUNT [BACKEND]`.

Recompiles, by what fails: a `counter` on a module, `shapes` of an argument, the keys of `dicts`,
the `callables` that a function is called with, one of several numbers (`mixed`), a counter beside
many parameters (`wide`, and `deep` where modules nest), one of many `attributes`, the length of
`lists` of inputs and their sizes, the grad `modes` beside a counter, a counter in `functions` that
take turns and in `frames` that one break leaves. And storms that are none of recompiles: graph
`breaks`, `skips` of frames, small `graphs`.

It knows nothing of compilescope. Where the variable BENCHMARK_OUT names a file, it leaves there
the CPU seconds it had used when torch's compiler was `loaded`, and when all was `done`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Call = Callable[[int], Any]


class Counting(nn.Module):
    """Its counter is a constant of the graph."""

    def __init__(self, layers: int = 1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x + self.calls


def counter(backend: str, layers: int = 1) -> Call:
    model = Counting(layers)
    compiled = torch.compile(model, backend=backend)

    def call(number: int) -> Any:
        model.calls = number
        return compiled(torch.ones(2, 4))

    return call


def wide(backend: str) -> Call:
    return counter(backend, layers=24)


def deep(backend: str) -> Call:
    """50 modules, one within the other: 200 parameters. Plain Dynamo ends in RecursionError where
    some 70 nest (torch 2.13, Python 3.11, with and without capture alike)."""

    class Nested(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.other = nn.Linear(2, 2)
            self.inner = Nested(depth - 1) if depth else None

        def forward(self, x: Tensor) -> Tensor:
            x = self.other(self.layer(x))
            return x if self.inner is None else self.inner(x)

    class Counted(nn.Module):
        calls = 0

        def __init__(self) -> None:
            super().__init__()
            self.nested = Nested(49)

        def forward(self, x: Tensor) -> Tensor:
            return self.nested(x) + self.calls

    model = Counted()
    compiled = torch.compile(model, backend=backend)

    def call(number: int) -> Any:
        model.calls = number
        return compiled(torch.ones(2, 2))

    return call


def attributes(backend: str) -> Call:
    """40 numbers of an object, of which another one changes each time."""

    class Settings:
        pass

    settings = Settings()
    names = [f"setting_{number}" for number in range(40)]
    for name in names:
        setattr(settings, name, "a")

    def total(x: Tensor) -> Tensor:
        for name in names:
            x = x + len(getattr(settings, name))
        return x

    compiled = torch.compile(total, backend=backend)

    def call(number: int) -> Any:
        setattr(settings, names[number % 40], f"b{number}")
        return compiled(torch.ones(2))

    return call


def lists(backend: str) -> Call:
    compiled = torch.compile(
        lambda inputs: sum((each * 2).sum() for each in inputs), backend=backend, dynamic=False
    )
    return lambda number: compiled([torch.ones(2 + number // 6)] * (number % 6 + 1))


def modes(backend: str) -> Call:
    counted = counter(backend)

    def call(number: int) -> Any:
        with (
            torch.set_grad_enabled(number % 2 == 0),
            torch.autocast("cpu", enabled=number % 3 == 0),
        ):
            return counted(number)

    return call


def shapes(backend: str) -> Call:
    compiled = torch.compile(lambda x: (x * 2).sum(), backend=backend, dynamic=False)
    return lambda number: compiled(torch.ones(number + 2))


def dicts(backend: str) -> Call:
    def total(values: dict[str, Tensor]) -> Tensor:
        return sum((value * 2 for value in values.values()), torch.zeros(2))

    compiled = torch.compile(total, backend=backend)
    return lambda number: compiled({f"key {number}": torch.ones(2), "always": torch.ones(2)})


def callables(backend: str) -> Call:
    def apply(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return function(x) + 1

    compiled = torch.compile(apply, backend=backend)
    kept: list[Any] = []

    def call(number: int) -> Any:
        scope: dict[str, Any] = {}
        exec("def double(x):\n    return x * 2\n", scope)
        kept.append(scope["double"])
        return compiled(kept[-1], torch.ones(2, 4))

    return call


def mixed(backend: str) -> Call:
    """Each entry fails by another one of its guards, or by several."""

    def add(x: Tensor, names: tuple[str, ...], scale: float, flag: bool) -> Tensor:
        x = x * scale + len(names[0]) + len(names[1])
        return x + 1 if flag else x - 1

    compiled = torch.compile(add, backend=backend, dynamic=False)

    def call(number: int) -> Any:
        names = (f"a{number % 7}", f"b{number // 7 % 11}")
        return compiled(torch.ones(2 + number // 154), names, 2.0, bool(number // 77 % 2))

    return call


def _copies(backend: str, count: int) -> list[tuple[dict[str, Any], Callable[[Tensor], Tensor]]]:
    """Functions with a global of their own, and code of their own."""
    found = []
    for number in range(count):
        scope: dict[str, Any] = {"calls": 0}
        source = f"def step_{number}(x):\n    return x * 2 + calls\n"
        exec(compile(source, f"<step {number}>", "exec"), scope)
        found.append((scope, torch.compile(scope[f"step_{number}"], backend=backend)))
    return found


def functions(backend: str) -> Call:
    copies = _copies(backend, 8)

    def call(number: int) -> Any:
        scope, step = copies[number % 8]
        scope["calls"] = number
        return step(torch.ones(3))

    return call


def frames(backend: str) -> Call:
    class Broken(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            x = x + self.calls
            torch._dynamo.graph_break()
            x = x * self.calls
            torch._dynamo.graph_break()
            return x - self.calls

    model = Broken()
    compiled = torch.compile(model, backend=backend)

    def call(number: int) -> Any:
        model.calls = number
        return compiled(torch.ones(2, 4))

    return call


def _exec(source: str, number: int, backend: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(source, f"<made {number}>", "exec"), scope)
    return torch.compile(scope["made"], backend=backend)


def breaks(backend: str) -> Call:
    source = "def made(x):\n    x = x + 1\n    torch._dynamo.graph_break()\n    return x * 2\n"
    return lambda number: _exec(source, number, backend)(torch.ones(2))


def skips(backend: str) -> Call:
    source = (
        "def made(x):\n    x = x + 1\n    for _ in range(2):\n"
        "        with torch.no_grad():\n            torch._dynamo.graph_break()\n    return x\n"
    )
    return lambda number: _exec(source, number, backend)(torch.ones(2))


def graphs(backend: str) -> Call:
    source = "def made(x):\n    return x * 2 + 1\n"
    return lambda number: _exec(source, number, backend)(torch.ones(2))


KINDS: dict[str, Callable[[str], Call]] = {
    made.__name__: made
    for made in (
        counter,
        wide,
        deep,
        attributes,
        lists,
        modes,
        shapes,
        dicts,
        callables,
        mixed,
        functions,
        frames,
        breaks,
        skips,
        graphs,
    )
}


def raise_limits() -> None:
    config = torch._dynamo.config
    config.recompile_limit = config.accumulated_recompile_limit = 1_000_000


def main(kind: str, count: str, backend: str = "eager") -> None:
    torch.set_num_threads(1)
    raise_limits()
    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(8))
    call = KINDS[kind](backend)
    loaded = time.process_time()
    for number in range(int(count) + 1):
        call(number)
    done = time.process_time()
    out = os.environ.get("BENCHMARK_OUT")
    if out:
        with open(out, "w") as file:
            json.dump({"loaded": loaded, "done": done}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
