"""Backends that get something wrong, each in one way, and those that only look so."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Outputs = list[Any]


def changing(change: Callable[[Outputs], Outputs]) -> Callable[..., Any]:
    """Runs the graph as it is and changes what it gives."""

    def backend(graph: Any, inputs: Any) -> Callable[..., Any]:
        return lambda *args: change(list(graph(*args)))

    return backend


def replacing(old: Any, new: Any) -> Callable[..., Any]:
    """Calls another function wherever the graph calls this one."""

    def backend(graph: Any, inputs: Any) -> Callable[..., Any]:
        for node in graph.graph.nodes:
            if node.target == old:
                node.target = new
        graph.recompile()
        return graph.forward

    return backend


def forgetful(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Writes into copies of what it is given."""

    def run(*args: Any) -> Any:
        return graph(*(arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args))

    return run


def baking(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Keeps the value that a buffer of one number had at the first call."""
    kept: dict[int, torch.Tensor] = {}

    def run(*args: Any) -> Any:
        given = list(args)
        for number, arg in enumerate(args):
            if isinstance(arg, torch.Tensor) and tuple(arg.shape) == (1,):
                given[number] = kept.setdefault(number, arg.clone()).clone()
                results = graph(*given)
                arg.add_(1)
                return results
        return graph(*given)

    return run


def racing(graph: Any, inputs: Any) -> Callable[..., Any]:
    chance = random.SystemRandom()
    return lambda *args: [result + chance.random() for result in graph(*args)]


def racing_far_off(graph: Any, inputs: Any) -> Callable[..., Any]:
    chance = random.SystemRandom()
    return lambda *args: [result + 3 + 1e-3 * chance.random() for result in graph(*args)]


def drawing_more(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Draws numbers of its own first, as a device with its own generator does."""

    def run(*args: Any) -> Any:
        torch.rand(7)
        return graph(*args)

    return run


def dropping_no_value(graph: Any, inputs: Any) -> Callable[..., Any]:
    for node in graph.graph.nodes:
        if node.target is F.dropout:
            node.args = (node.args[0], 0.5, False, False)
    graph.recompile()
    return graph.forward


def refusing(graph: Any, inputs: Any) -> Callable[..., Any]:
    raise ValueError("this chip has no sine")


def breaking(graph: Any, inputs: Any) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        raise ArithmeticError("the chip caught fire")

    return run
