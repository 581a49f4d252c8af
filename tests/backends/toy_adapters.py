"""Adapters for tests: they run their islands eagerly, and refuse what they are told to."""

from __future__ import annotations

import random
from typing import Any

import torch

from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.knowledge.rules.hardware.constraint import Constraint


class Emulator(AcceleratorAdapter):
    """Runs each island as it stands."""

    emulated = True

    def __init__(self, capabilities: Any = None, **settings: Any) -> None:
        super().__init__(capabilities=capabilities, **settings)
        self.seen: list[list[str]] = []

    def compile(self, gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.seen.append([str(n.target) for n in gm.graph.nodes if n.op.startswith("call_")])
        return lambda *args: gm(*args)


class Lottery(Constraint):
    """Refuses nodes by the throw of a die that falls the same way each time."""

    id = "lottery"

    def __init__(self, seed: int, chance: float) -> None:
        self.seed, self.chance = seed, chance

    def check_node(self, node: Any) -> Any:
        drawn = random.Random(f"{self.seed} {node.name}").random()
        if node.op.startswith("call_") and drawn < self.chance:
            return self.breach(node, found="a blank", allowed="luck")
        return None


def denying(*ops: str, **more: Any) -> AcceleratorCapabilities:
    return AcceleratorCapabilities("toy", unsupported_ops=ops, **more)


def lottery(seed: int, chance: float) -> AcceleratorCapabilities:
    return AcceleratorCapabilities("toy", custom_constraints=[Lottery(seed, chance)])
