"""What a version compiles elsewhere is put back where the original does, for a replay."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from compilescope.repair.trials.child.moved_regions import moved_regions, put_back

OLD = """
import torch

class Net(torch.nn.Module):
    @torch.compile(backend="eager", dynamic=True)
    def forward(self, x):
        y = x.sin() + 1
        print("seen")
        return y.cos() * 2

@torch.compile
def other(x):
    return x + 1
"""
NEW = """
import torch

class Net(torch.nn.Module):
    @torch.compile(backend="eager", dynamic=True)
    def _y(self, x):
        return x.sin() + 1

    @torch.compile(backend="eager", dynamic=True)
    def _rest_of_forward(self, y):
        return y.cos() * 2

    def forward(self, x):
        y = self._y(x)
        print("seen")
        return self._rest_of_forward(y)

@torch.compile
def other(x):
    return x + 1
"""


def test_the_function_and_its_parts_are_told_apart() -> None:
    assert moved_regions(OLD, NEW) == {
        "Net.forward": ["torch.compile(backend='eager', dynamic=True)"]
    }
    assert moved_regions(OLD, OLD) == {}
    assert moved_regions(OLD, NEW.replace("class Net", "class Other")) == {}
    assert moved_regions(OLD, "def broken(:") == {}


def test_the_lines_are_those_of_the_new_text() -> None:
    tree = put_back(NEW, "net.py", moved_regions(OLD, NEW))
    plain = ast.parse(NEW)
    found = [each.lineno for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    assert found == [each.lineno for each in ast.walk(plain) if isinstance(each, ast.FunctionDef)]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("moved", "compiled"),
    [(True, ["forward"]), (False, ["_y", "_rest_of_forward"])],
)
def test_it_begins_where_the_original_began_and_compiles_the_parts(
    moved: bool, compiled: list[str]
) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    space: dict[str, Any] = {"__name__": "net"}
    found = moved_regions(OLD, NEW) if moved else {}
    exec(compile(put_back(NEW, "net.py", found), "net.py", "exec"), space)
    net = space["Net"]()
    net(torch.ones(2))
    names = ("_y", "_rest_of_forward", "forward")
    shown = [
        each for each in names if hasattr(getattr(type(net), each), "_torchdynamo_orig_callable")
    ]
    assert shown == compiled
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
