"""Layers that only one side of a branch calls, under `torch.cond`.

Both sides are part of the graph then: in training the layers of the side that was not taken get a
gradient of zeros, where they had none, and an optimizer with momentum or weight decay moves them.
Layers that keep count of what they see cannot be part of a side at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.patch import NeedsRun, Refused
from compilescope.fixes.source.graph_values import graph_values
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.own_files import own_modules
from compilescope.fixes.subject import Subject

_KEEPING = ("BatchNorm", "InstanceNorm", "SyncBatchNorm")


def check_layers(subject: Subject, sides: Sequence[Sequence[cst.CSTNode]]) -> None:
    """Raises `Refused` where a layer of one side makes the graph do something else."""
    called = [_called(subject.module, side) for side in sides]
    every: set[str] = set().union(*called)
    common = {name for name in every if all(name in each for each in called)}
    for name in sorted(every):
        made = _made_by(subject.module, name)
        if any(word in made for word in _KEEPING):
            raise Refused(f"the branch calls `{name}`, which keeps running statistics")
    if subject.program.facts.seen or common == every:
        return
    if graph_values(subject.program.run).computes_grad and _trains(subject):
        alone = sorted(every - common)
        raise NeedsRun(
            f"in training, `{alone[0]}` would get zero gradients instead of none when the side "
            "is not taken"
        )


def _called(module: SourceModule, nodes: Sequence[cst.CSTNode]) -> set[str]:
    """`self.head` of `self.head(x)`, and parameters that are read: `self.weight`."""
    return {
        module.code(each)
        for node in nodes
        for each in module.walk(node)
        if isinstance(each, cst.Attribute)
        and isinstance(each.value, cst.Name)
        and each.value.value == "self"
    }


def _made_by(module: SourceModule, name: str) -> str:
    """The code of all that the file assigns to an attribute of that name."""
    return " ".join(
        module.code(each.value)
        for each in module.walk()
        if isinstance(each, cst.Assign)
        and any(module.code(target.target) == name for target in each.targets)
    )


def _trains(subject: Subject) -> bool:
    """Somewhere the program asks for gradients."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in ("backward", "grad")
        for module in own_modules(subject.program)
        for node in module.walk()
    )
