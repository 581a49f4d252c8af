"""The script of `logs --script`: verified where the program runs here, and honest where not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.commands.logs.script import program_of
from compilescope.base.errors import ToolError
from compilescope.change.repair.delivery.script import (
    LOG_MARK,
    ScriptRecipe,
    is_ours,
    make_script,
    original_of,
)

NETS = """\
import functools
from torch import nn
from .util import scale


def timed(function):
    @functools.wraps(function)
    def call(self, *args):
        return function(self, *args)

    return call


class Layer(nn.Module):
    def __init__(this, size):
        super().__init__()
        this.fc = nn.Linear(size, size)
        this.calls = 3

    @timed
    def body(this, x):
        def inner(y):
            print("inner", this.calls, tuple(y.shape))
            return y + 1

        return inner(this.fc(x))

    def forward(this, x):
        return scale(this.body(x))
"""
UTIL = """\
def scale(x):
    if x.sum() > 0:
        return x * 2
    return x - 1
"""
TRAIN = """\
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib/site-packages"))
import torch
import torch_xla
from nets.layer import Layer
{more}
torch.manual_seed(0)
net = Layer(4).to("xla")
net.compile(backend="openxla")
print(net(torch.randn(2, 4, device=torch_xla.device())).sum() > -1e9)
torch_xla.sync()
"""
LOG = """\
V1116 10:00:00.000000 1 torch/_dynamo/output_graph.py:1] [0/0] Step 2: calling compiler function openxla
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] Graph break in user code at {file}:{line}
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] Graph Break Reason: Data-dependent branching
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks]   Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing dynamic control flow.
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] User code traceback:
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks]   File "{file}", line {line}, in scale
V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks]     if x.sum() > 0:
"""  # noqa: E501


def recipe(folder: Path, **more: object) -> ScriptRecipe:
    main = folder / "train.py"
    main.write_text("print(1)\n")
    fields: dict[str, object] = {
        "main": str(main), "text": "print(2)\n", "files": {}, "originals": {},
        "output": str(folder / "train_fixed.py"), "environment": {}, **more,
    }  # fmt: skip
    return ScriptRecipe(**fields)  # type: ignore[arg-type]


def test_the_head_lists_what_is_verified_apart_from_what_is_not(tmp_path: Path) -> None:
    made = make_script(
        recipe(
            tmp_path,
            fixes=("a",),
            unverified=("b",),
            left=("c",),
            mark=LOG_MARK,
            where="here on plain torch",
            why_unverified="it needs a device",
        )
    )
    assert made.text.startswith(
        f"{LOG_MARK} from train.py: the same program with its fixes.\n"
        "# Fixes, verified here on plain torch:\n#   a\n"
        "# Unverified fixes, because it needs a device:\n#   b\n"
        "# To do by hand:\n#   c\n# Digest of the lines below: "
    )


def test_a_script_of_ours_knows_its_original_until_it_is_edited(tmp_path: Path) -> None:
    script = tmp_path / "train_fixed.py"
    for mark in (LOG_MARK, ScriptRecipe.mark):
        script.write_text(make_script(recipe(tmp_path, mark=mark)).text)
        assert is_ours(script) and original_of(script) == tmp_path / "train.py"
    script.write_text(script.read_text() + "print(3)\n")
    assert is_ours(script) and original_of(script) is None
    assert original_of(tmp_path / "train.py") is None
    assert original_of(tmp_path) is None


def test_a_program_may_come_with_its_arguments(tmp_path: Path) -> None:
    odd = tmp_path / "my train.py"
    odd.write_text("")
    assert program_of(str(odd)).words == (str(odd),)
    assert program_of("train.py --steps 'a b'").words == ("train.py", "--steps", "a b")
    with pytest.raises(ToolError, match="quotes"):
        program_of("train.py 'a")


def project(folder: Path, more: str = "") -> Path:
    package = folder / "lib" / "site-packages" / "nets"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("layer", NETS), ("util", UTIL)):
        (package / f"{name}.py").write_text(text)
    (folder / "train.py").write_text(TRAIN.format(more=more))
    file = package / "util.py"
    (folder / "log.txt").write_text(LOG.format(file=file, line=2))
    return folder


def compilescope(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compilescope", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


# About 1 min.
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_third_party_code_of_a_device_program_is_fixed_and_fix_takes_the_script(
    tmp_path: Path,
) -> None:
    folder = project(tmp_path)
    done = compilescope(folder, "logs", "log.txt", "--script", "train.py", "--json")
    fixed = json.loads(done.stdout)["fixed"]
    assert fixed["verified"] and not fixed["unverified"], done.stderr
    assert any(each.startswith("util.py:2 GB0170: return one") for each in fixed["done"])
    text = (folder / "train_fixed.py").read_text()
    assert "# Fixes, verified here on plain torch:" in text
    assert '_fixes.file("nets/util.py")' in text and "this: torch.Tensor" not in text
    done = compilescope(folder, "fix", "--script", "--no-time", "--json", "train_fixed.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["script"] == str(folder / "train_fixed.py")
    assert "was made from train.py" in done.stderr


@pytest.mark.torch
@pytest.mark.slow
def test_a_program_that_cannot_run_here_gets_an_unverified_script(tmp_path: Path) -> None:
    folder = project(tmp_path, more='data = open("missing.bin")')
    done = compilescope(folder, "logs", "log.txt", "--script", "train.py", "--json")
    fixed = json.loads(done.stdout)["fixed"]
    assert not fixed["verified"] and not fixed["done"]
    assert [each.split(":")[0] for each in fixed["unverified"]] == ["util.py"]
    assert "missing.bin" in fixed["reason"] and "Unverified: util.py:2" in done.stderr
    assert (
        "# Unverified fixes, because the program could not be run here:"
        in (folder / "train_fixed.py").read_text()
    )
    shown = " ".join(compilescope(folder, "show", "--all").stdout.split())
    assert "unverified, kept Why: the program could not be run here: " in shown
    assert "source of train.py is not available" not in shown


READING = """\
import torch
import torch_xla
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        scale = x.abs().max().item()
        return x / scale


net = Net().to("xla")
net.compile(backend="openxla")
print(net(torch.ones(2, 4, device=torch_xla.device())).sum())
"""
HOST_READ = """\
Compilation Analysis: Compilation Cause
Compilation Analysis:   most likely user code trying to access tensor value before torch_xla.sync
Compilation Analysis: Graph Info:
Compilation Analysis:   Graph Hash: 5f14932a25c8bedfbd9b699df711147e
Compilation Analysis:   Number of Graph Inputs: 1
Compilation Analysis:   Number of Graph Outputs: 1
Compilation Analysis: Python Frame Triggered Execution:
Compilation Analysis:   forward (/elsewhere/train.py:8)
Compilation Analysis:   <module> (/elsewhere/train.py:14)
Compilation Analysis: ----------
Compilation Analysis: ==========
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_host_read_that_a_fix_removes_is_not_left_to_do(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(READING)
    (tmp_path / "log.txt").write_text(HOST_READ)
    done = compilescope(tmp_path, "logs", "log.txt", "--script", "train.py", "--json")
    fixed = json.loads(done.stdout)["fixed"]
    assert [each.split(":")[1].split()[0] for each in fixed["done"]] == ["8"], done.stderr
    assert fixed["left"] == [] and fixed["unverified"] == []
    shown = " ".join(compilescope(tmp_path, "show").stdout.split())
    assert "Verified: " in shown and "verified by running the program here" in shown
    assert "unverified" not in shown
