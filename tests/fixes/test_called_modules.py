"""Which modules a compiled function calls, and where each is compiled instead. Nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import run_of
from compilescope.change.fixes.breaks.compile_modules import modules_instead
from compilescope.change.fixes.subject import Program
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.trees import cst

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x
"""
HEADS = """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.head = nn.Linear(3, 3)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.act(self.head(self.stem(x)))
        for number, block in enumerate(self.blocks):
            x = block(x)
        for block in self.blocks:
            x = block(x)
        return self.kept(x)

    def kept(self, x):
        return x
"""


def made(folder: Path, text: str, name: str) -> str:
    file = folder / "program.py"
    file.write_text(text)
    run = run_of()
    program = Program(run, digest(run), str(file))
    module = program.module(str(file))
    *_, function = (
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == name
    )
    (text,) = modules_instead(program, module, function, {}).files.values()
    compile(text, "program.py", "exec")
    return text


def test_what_all_calls_hand_in(tmp_path: Path) -> None:
    text = f"""{NET}
@torch.compile(mode="reduce-overhead")
def step(net, x):
    return loss_of(net, x)

def loss_of(model, x):
    return model(x).sum()

def main(x):
    net = Net()
    net = net.to("cpu")
    step(net, x)
    step(x=x, net=net)
"""
    new = made(tmp_path, text, "step")
    assert 'net = net.to("cpu")\n    net.compile(mode="reduce-overhead")\n' in new
    assert "@torch.compile" not in new


def test_the_object_that_a_method_is_compiled_for(tmp_path: Path) -> None:
    text = f"""{NET}
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.step = torch.compile(self._step)

    def _step(self, x):
        loss = self.net(x).sum()
        self.optimizer.step()
        return loss
"""
    new = made(tmp_path, text, "_step")
    assert "self.step = self._step\n        self.net.compile()\n" in new
    assert "self.optimizer.compile" not in new


def test_the_children_of_a_module_as_they_can_be_compiled(tmp_path: Path) -> None:
    new = made(tmp_path, f"{HEADS}\nnet = torch.compile(Net(), dynamic=True)\n", "forward")
    assert "net = Net()\nnet.stem.forward = torch.compile(net.stem.forward, dynamic=True)\n" in new
    assert "for block_2 in net.blocks:\n    block_2.compile(dynamic=True)\n" in new
    assert "net.act" not in new and "net.head" not in new


@pytest.mark.parametrize(
    "end",
    [
        "@torch.compile\ndef step(x):\n    return x.sin()\n",
        "@torch.compile\ndef step(f, x):\n    return f(x)\n\nstep(torch.sin, 1)\n",
        "@torch.compile(**options)\ndef step(x):\n    return net(x)\n\nnet = Net()\n",
    ],
)
def test_what_is_no_module_is_left_alone(tmp_path: Path, end: str) -> None:
    with pytest.raises(Refused):
        made(tmp_path, f"{NET}\n{end}", "step")


def test_two_modules_for_one_parameter_are_not_told_apart(tmp_path: Path) -> None:
    end = "@torch.compile\ndef step(f, x):\n    return f(x)\n\none = Net()\ntwo = Net()\n"
    with pytest.raises(NotMeant):
        made(tmp_path, f"{NET}\n{end}step(one, 1)\nstep(two, 1)\n", "step")
