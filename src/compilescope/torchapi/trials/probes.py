"""Small functions that tell what this torch's Dynamo does, by plain torch alone."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compilescope.processes.interruptions import let_through


@dataclass(frozen=True)
class TracingProbe:
    """A question, and how to find out."""

    name: str
    use: str
    """What is so where the answer is yes."""
    found: Callable[[], bool]


class _Counting:
    """`torch.compile` of a function that counts its graphs, with nothing compiled before."""

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False) -> None:
        torch._dynamo.reset()
        self.graphs = 0
        self.error = ""
        self.stack: list[Any] = []
        self._compiled = torch.compile(function, backend=self._backend, fullgraph=fullgraph)

    def __call__(self, *args: Any) -> None:
        try:
            self._compiled(*args)
        except Exception as error:
            # Whatever a torch raises: that is the answer.
            let_through(error)
            self.error = str(error) or type(error).__name__
            self.stack = list(getattr(error, "real_stack", None) or ())

    def _backend(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        return graph.forward


def _is_whole(function: Callable[[torch.Tensor], Any]) -> bool:
    counting = _Counting(function, fullgraph=True)
    counting(torch.ones(2))
    return not counting.error


def _kept(x: torch.Tensor) -> torch.Tensor:
    return x * len(list(itertools.takewhile(lambda n: n < 3, [1, 2, 3])))


def _enters_json() -> bool:
    counting = _Counting(lambda x: x * len(json.dumps({"a": 1})), fullgraph=True)
    counting(torch.ones(2))
    return "marked as skipped" not in counting.error


def _resumes_in_hooks() -> bool:
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: torch._dynamo.graph_break())
    counting = _Counting(lambda x: layer(x + 1).relu())
    counting(torch.ones(1, 2))
    return counting.graphs == 3


def _breaks_at_symbols() -> bool:
    from torch._dynamo import config

    factors: Any = [1, 2, 3, 4]
    counting = _Counting(lambda x: x * factors[x.sum().item()])
    with config.patch(capture_scalar_outputs=True):
        counting(torch.tensor([1, 2]))
    return not counting.error


class _Quiet(TorchDispatchMode):  # type: ignore[misc]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _compiles_after_modes() -> bool:
    counting = _Counting(lambda x: x * 2)
    with _Quiet():
        counting(torch.ones(2))
    counting(torch.ones(2))
    return counting.graphs == 1


def _broken(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * 2


def _keeps_columns() -> bool:
    counting = _Counting(_broken, fullgraph=True)
    counting(torch.ones(2))
    return any(getattr(each, "colno", None) is not None for each in counting.stack)


PROBES = (
    TracingProbe(
        "random",
        "`random.random()` is part of the graph",
        lambda: _is_whole(lambda x: x * random.random()),
    ),
    TracingProbe(
        "itertools-predicates",
        "functions given to `itertools` are traced",
        lambda: _is_whole(_kept),
    ),
    TracingProbe("json", "`json.dumps` is entered before it breaks the graph", _enters_json),
    TracingProbe(
        "resumed-hooks",
        "after a break in a forward hook, the rest of the module is compiled",
        _resumes_in_hooks,
    ),
    TracingProbe(
        "symbol-index-breaks",
        "a list indexed by a captured number breaks the graph instead of raising",
        _breaks_at_symbols,
    ),
    TracingProbe(
        "compiled-after-modes",
        "a function first called under a dispatch mode is compiled in later calls",
        _compiles_after_modes,
    ),
    TracingProbe(
        "quantized",
        "quantised tensors are made in the graph",
        lambda: _is_whole(lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
    ),
    TracingProbe(
        "stack-columns",
        "the stacks of graph breaks have columns, in traces too",
        _keeps_columns,
    ),
)
