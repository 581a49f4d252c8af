"""Grad mode and autocast, as a graph's own nodes switch them while one goes through it in order."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch
from torch.fx import Node

_STATE = ("torch.random", "torch._C._autograd", "torch._C._profiler")
"""Functions there change the state of the program and compute nothing."""


class TracedModes:
    """The modes that hold at a node. At the end all is as it was before."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._grad = torch.is_grad_enabled()
        self._entered: list[tuple[Node, Any]] = []
        self._casting: dict[tuple[str, Any], Any] = {}

    def __enter__(self) -> TracedModes:
        # The program's own run will warn of what there is to warn of.
        self._undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # Inference mode hides what composite operators are made of. A device's kernels see it.
        self._undo.enter_context(torch.inference_mode(False))
        self._undo.enter_context(torch.set_grad_enabled(self._grad))
        # Weights that autocast has cast once would be found cast by the next node.
        caching = torch.is_autocast_cache_enabled()
        self._undo.callback(torch.set_autocast_cache_enabled, caching)
        torch.set_autocast_cache_enabled(False)
        return self

    def __exit__(self, *_: object) -> None:
        while self._entered:
            self._leave()
        self._undo.close()

    @property
    def key(self) -> tuple[Any, ...]:
        """Nodes that agree in it run in the same modes."""
        regions = (str(entered.args) for entered, _ in self._entered)
        return self._grad, *regions, *self._casting.items()

    def follow(self, node: Node) -> bool:
        """Do what a node does to the modes. True where that is all that it does."""
        target: Any = node.target
        name, home = getattr(target, "__name__", ""), getattr(target, "__module__", "") or ""
        if name == "_set_grad_enabled":
            self._grad = bool(node.args[0])
            torch.set_grad_enabled(self._grad)
        elif name == "_enter_inference_mode":
            region = torch.set_grad_enabled(not node.args[0])
            region.__enter__()
            self._entered.append((node, region))
        elif name == "_enter_autocast":
            self._entered.append((node, target(*node.args)))
        elif name in ("_exit_inference_mode", "_exit_autocast"):
            if any(entered is node.args[0] for entered, _ in self._entered):
                self._leave(node.args[0])
        elif name in ("set_autocast_enabled", "set_autocast_dtype") and len(node.args) == 2:
            self._set_autocast(name, *node.args)
        else:
            return "autocast" in name or home.startswith(_STATE)
        return True

    def _set_autocast(self, name: str, device: Any, value: Any) -> None:
        """An autocast region whose beginning and end were traced as the functions they are."""
        ask = torch.is_autocast_enabled if name.endswith("enabled") else torch.get_autocast_dtype
        self._undo.callback(getattr(torch, name), device, ask(device))
        getattr(torch, name)(device, value)
        self._casting = {**self._casting, (name, device): value}

    def _leave(self, wanted: Any = None) -> None:
        """Out of the innermost region, or out of all up to the wanted one."""
        entered, region = self._entered.pop()
        region.__exit__(None, None, None)
        if wanted is not None and entered is not wanted:
            self._leave(wanted)
