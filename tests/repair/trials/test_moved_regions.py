"""What a version compiles elsewhere is put back where the original does, for a replay."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from compilescope.change.repair.trials.child.moved_regions import moved_regions, put_back
from compilescope.instrument.torchapi import regions

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


STEP = """
import torch

def loss_of(model, x):
    return model(x).sum()

class Trainer:
    def __init__(self, net):
        self.net = net
        self.step = torch.compile(self._step, backend="eager")

    def _step(self, x):
        return self.net(x)

net = torch.nn.Linear(2, 2)
net.compile(backend="eager")
"""
STEP_MOVED = STEP.replace(
    'self.step = torch.compile(self._step, backend="eager")',
    'self.step = self._step\n        self.net.compile(backend="eager")',
).replace("\nnet.compile(", "\nnet.weight.compile(")


def test_the_function_and_its_parts_are_told_apart() -> None:
    assert moved_regions(OLD, NEW) == [["def", "Net.forward"]]
    assert moved_regions(OLD, OLD) == []
    assert moved_regions(OLD, NEW.replace("class Net", "class Other")) == []
    assert moved_regions(OLD, "def broken(:") == []


def test_what_a_call_compiled_is_found_by_its_line() -> None:
    moved = moved_regions(STEP, STEP_MOVED)
    assert moved == [
        ["call", "Trainer.__init__.", "self.step = self._step"],
        ["method", "", "net"],
    ]
    text = ast.unparse(put_back(STEP_MOVED, "step.py", moved))
    assert ".keep_region(self._step)\n" in text
    assert ".keep_region(net)\nnet.weight.compile(" in text


def test_the_lines_are_those_of_the_new_text() -> None:
    for old, new in ((OLD, NEW), (STEP, STEP_MOVED)):
        tree = put_back(new, "net.py", moved_regions(old, new))
        found, wanted = (
            [each.lineno for each in ast.walk(one) if isinstance(each, ast.FunctionDef)]
            for one in (tree, ast.parse(new))
        )
        assert found == wanted


@pytest.mark.torch
@pytest.mark.parametrize("moved", [True, False])
def test_it_begins_where_the_original_began_and_compiles_the_parts(
    moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []

    def keep(function: Any) -> Any:
        kept.append(function.__name__)
        return function

    monkeypatch.setattr(regions, "_keepers", [keep])
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    space: dict[str, Any] = {"__name__": "net"}
    found = moved_regions(OLD, NEW) if moved else []
    exec(compile(put_back(NEW, "net.py", found), "net.py", "exec"), space)
    net = space["Net"]()
    net(torch.ones(2))
    assert kept == (["forward"] if moved else [])
    for part in (net._y, net._rest_of_forward):
        assert hasattr(part, "_torchdynamo_orig_callable")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2


@pytest.mark.parametrize("changed", ["mode='default'", "backend='eager', dynamic=True", ""])
def test_a_module_that_is_compiled_otherwise_has_not_moved(changed: str) -> None:
    old = "for block in blocks:\n    block.compile(backend='eager')\n"
    old += "for block in blocks:\n    x = block(x)\n"
    assert moved_regions(old, old.replace("backend='eager'", changed)) == []
    assert moved_regions(old, old.replace("block.compile(backend='eager')", "pass")) == [
        ["method", "", "block"]
    ]
