"""Flags are set for as little as can be: one function, else the whole program, which is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.compilation.settings import with_flag
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import subjects

pytestmark = pytest.mark.torch

PATCH = "torch._dynamo.config.patch(capture_scalar_outputs=True)"
FUNCTION = """def f(x):
    total = x.sum().item()
    return x * total
"""
NET = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()


"""
SCOPED = {
    "decorated": (
        "import torch\n\n\n# Fast.\n@torch.compile(backend='eager')\n"
        f"{FUNCTION}\n\nf(torch.ones(3))\n",
        f"# Fast.\n@{PATCH}\n@torch.compile(backend='eager')\ndef f(x):\n",
    ),
    "called": (
        f"import torch\n\n\n{FUNCTION}\n\n"
        "g = torch.compile(f, backend='eager')  # once\ng(torch.ones(3))\n",
        f"g = {PATCH}(\n    torch.compile(f, backend='eager')\n)  # once\n",
    ),
    "partial": (
        "import functools\nimport torch\n\n\n@functools.partial(torch.compile, backend='eager')\n"
        f"{FUNCTION}\n\nf(torch.ones(3))\n",
        f"@{PATCH}\n@functools.partial(torch.compile, backend='eager')\n",
    ),
    "called by another": (
        f"import torch\n\n\n{FUNCTION}\n\n@torch.compile(backend='eager')\ndef step(x):\n"
        "    return f(x) + 1\n\n\nstep(torch.ones(3))\n",
        f"@{PATCH}\n@torch.compile(backend='eager')\ndef step(x):\n",
    ),
    "patched already": (
        "import torch\n\n\n@torch._dynamo.config.patch(verbose=True)\n"
        "@torch.compile(backend='eager')\n"
        f"{FUNCTION}\n\nf(torch.ones(3))\n",
        "@torch._dynamo.config.patch(verbose=True, capture_scalar_outputs=True)\n@torch.compile(",
    ),
    "method": (
        NET.replace("    def", "    @torch.compile(backend='eager')\n    def")
        + "Net()(torch.ones(3))\n",
        f"    @{PATCH}\n    @torch.compile(backend='eager')\n    def forward",
    ),
    "bound": (
        f"{NET}net = Net()\n"
        "run = torch.compile(net.forward, backend='eager')\nrun(torch.ones(3))\n",
        f"run = {PATCH}(\n    torch.compile(net.forward, backend='eager')\n)\n",
    ),
}
WHOLE = """'''Trains.'''
from torch import nn, ones
import torch
from os import path

LIMIT = 3


class Net(nn.Module):
    def forward(self, x):
        return x * x.sum().item()


net = torch.compile(Net(), backend="eager")
net(ones(3))
"""


SLOW = {"partial", "called by another", "patched already", "bound"}


def read_number(folder: Path, text: str) -> Subject:
    """The number that is read out of a tensor."""
    (found,) = [each for each in subjects(folder, text) if each.rule == "scalar-extraction"]
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SCOPED]
)
def test_it_holds_for_one_function(name: str, tmp_path: Path) -> None:
    program, expected = SCOPED[name]
    subject = read_number(tmp_path, program)
    patch = with_flag(subject, "capture_scalar_outputs", True)
    (text,) = patch.files.values()
    assert expected in text
    assert patch.safe and "torch._dynamo.config." not in patch.states
    left = [each for each in subjects(tmp_path, text) if each.rule == "scalar-extraction"]
    assert not left


def test_a_module_keeps_its_attributes_so_the_flag_holds_for_all(tmp_path: Path) -> None:
    subject = read_number(tmp_path, WHOLE)
    patch = with_flag(subject, "capture_scalar_outputs", True)
    (text,) = patch.files.values()
    line = "torch._dynamo.config.capture_scalar_outputs = True\n"
    assert text == WHOLE.replace("from os import path\n", f"from os import path\n\n{line}")
    assert patch.states.endswith("to the whole program.")
    assert not subjects(tmp_path, text)


def test_sets_grow_and_a_flag_is_set_once(tmp_path: Path) -> None:
    program, _ = SCOPED["called"]
    subject = read_number(tmp_path, program)
    (once,) = with_flag(subject, "reorderable_logging_functions", "{print}").files.values()
    subject = read_number(tmp_path, once)
    (twice,) = with_flag(subject, "reorderable_logging_functions", "{repr}").files.values()
    assert "reorderable_logging_functions={print, repr})(" in twice
    subject = read_number(tmp_path, twice)
    with pytest.raises(Refused, match="already"):
        with_flag(subject, "reorderable_logging_functions", "{print}")
