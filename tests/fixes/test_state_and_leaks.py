"""What an operator of the graph would see late, and gradients that outlive the graph."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from capabilities import expected
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.statements.custom_operator import (
    is_changed,
    is_rebound,
    kind_of_global,
)
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from fixes.repertoire import subjects

SOURCE = """import math

LIMIT = 3
step = 0
seen = {}
history = []


def count(x):
    global step
    step += 1
    seen["x"] = x
    history.append(x)
    return LIMIT, step, seen, history, math.pi
"""


def _named(module: SourceModule, name: str) -> cst.Name:
    read = [each for each in module.walk() if isinstance(each, cst.Name) and each.value == name]
    return read[-1]


def test_globals_that_functions_change() -> None:
    module = SourceModule("program.py", SOURCE)
    names = ("LIMIT", "step", "seen", "history", "math")
    assert [is_rebound(module, _named(module, name)) for name in names] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert [is_changed(module, _named(module, name)) for name in names] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert kind_of_global(module, "step") == "int"
    assert kind_of_global(module, "seen") == ""


# With the flag on, so that the leak is what is left: with it off, torch 2.15 breaks at the gradient
# alone, where 2.13 reports both.
LEAKS = """import torch

torch._dynamo.config.trace_autograd_ops = True
layer = torch.nn.Linear(3, 1)


@torch.compile(backend="eager")
def penalty(x):
    point = (x * 2).requires_grad_(True)
    out = layer(point)
    (slope,) = torch.autograd.grad(out.sum(), point, create_graph=True)
    return slope.norm()


penalty(torch.ones(2, 3)).backward()
"""


@pytest.mark.torch
def test_a_leaf_that_the_result_needs_is_not_the_flags_matter(tmp_path: Path) -> None:
    fix = next(each for each in all_fixes() if each.id == "autograd-traced")
    leaked = [each for each in subjects(tmp_path, LEAKS) if "leaked" in each.finding.title]
    assert bool(leaked) == expected("break/GB8985")
    for subject in leaked:
        with pytest.raises(Refused, match="create_graph=True"):
            fix.propose(subject)
