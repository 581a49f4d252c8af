"""From a program or a model to the smallest script that shows what is wrong with its graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Several fresh processes each: on a busy machine that takes long.
pytestmark = [pytest.mark.torch, pytest.mark.timeout(1500)]

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import compilescope  # noqa: E402
from compilescope.apps.cli.main import main  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.base.settings import fresh_environment  # noqa: E402
from compilescope.change.minify.graph.minifier import WARM, Minified  # noqa: E402
from compilescope.change.minify.graph.search import (  # noqa: E402
    Search,
    catch_graphs,
    find_record,
    minify_program,
)
from compilescope.change.minify.sandbox import Sandbox  # noqa: E402

HEAD = """
import ctypes
import os
import torch
from torch import nn

FIXED = "FIXED" in os.environ

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return torch.tanh(x).sum(-1)

def named(node):
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
"""
PROGRAMS = {
    "failure": """
class NoKernel(Exception):
    pass

def refuse(node):
    raise NoKernel(f"no kernel for {node.name}")

def backend(gm, inputs):
    for node in gm.graph.nodes:
        if named(node) == "tanh" and not FIXED:
            refuse(node)
    return gm.forward
""",
    "run": """
def backend(gm, inputs):
    guilty = any(named(node) == "tanh" for node in gm.graph.nodes)
    def run(*args):
        if guilty and not FIXED:
            raise RuntimeError(f"launch failed for {len(args)} arguments")
        return gm.forward(*args)
    return run
""",
    "signal": """
def backend(gm, inputs):
    guilty = any(named(node) == "tanh" for node in gm.graph.nodes)
    def run(*args):
        if guilty and not FIXED:
            ctypes.string_at(0)
        return gm.forward(*args)
    return run
""",
    "values": """
def backend(gm, inputs):
    for node in gm.graph.nodes:
        if named(node) == "gelu" and not FIXED:
            node.kwargs = {**node.kwargs, "approximate": "tanh"}
    gm.recompile()
    return gm.forward
""",
    "nan": """
def backend(gm, inputs):
    for node in list(gm.graph.nodes):
        if named(node) == "tanh" and not FIXED:
            with gm.graph.inserting_after(node):
                wrong = gm.graph.call_function(torch.div, (0.0, 0.0))
                wrong = gm.graph.call_function(torch.add, (node, float("nan")))
            node.replace_all_uses_with(wrong, lambda user: user is not wrong)
    gm.recompile()
    return gm.forward
""",
}
TAIL = """
torch.manual_seed(0)
torch.compile(Net(), backend=backend)(torch.randn(4, 8))
"""
PREDICATES = {
    "failure": "crash",
    "run": "crash",
    "signal": "crash",
    "values": "diff",
    "nan": "diff",
}


def program(folder: Path, body: str) -> Path:
    path = folder / "program.py"
    path.write_text(HEAD + body + TAIL)
    return path


def status(script: Path, **environment: str) -> int:
    """In a fresh process, in another folder."""
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**fresh_environment(), **environment},
        capture_output=True,
        cwd="/",
    )
    return done.returncode


def minified(folder: Path, body: str, search: Search) -> Minified:
    return minify_program(
        program(folder, body), [], search, folder / "repro.py", folder=folder / "work"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_becomes_one_operation(name: str, tmp_path: Path) -> None:
    done = minified(tmp_path, PROGRAMS[name], Search(PREDICATES[name]))
    assert done.repro.path == tmp_path / "repro.py", done.repro.reason
    assert len(done.reduction.best.graph.ops) == 1
    text = done.repro.path.read_text()
    assert "compilescope" not in text.split('"""')[2]
    assert "Exit status: 1 while the bug is present" in text
    assert f"torch {torch.__version__}" in text
    assert "program.py:" in text
    assert status(done.repro.path) == 1
    # With the bug gone from the backend, the script says so.
    assert status(done.repro.path, FIXED="1") == 0


@pytest.mark.slow
def test_numbers_that_matter_go_along(tmp_path: Path) -> None:
    """Wrong for large numbers only: neither seeds nor ones show it."""
    body = """
def backend(gm, inputs):
    def run(*args):
        results = gm.forward(*args)
        largest = max(float(each.abs().max()) for each in args)
        return tuple(each + 1 if largest > 1000 else each for each in results)
    return run
"""
    tail = """
torch.compile(lambda x: torch.sin(x).cos(), backend=backend)(torch.randn(40, 8) + 2000)
"""
    path = tmp_path / "program.py"
    path.write_text(HEAD + body + tail)
    done = minify_program(
        path, [], Search("diff"), tmp_path / "out" / "repro.py", folder=tmp_path / "work"
    )
    assert done.repro.path is not None
    (given,) = done.reduction.best.graph.inputs
    assert given.fill == "saved"
    assert given.tensor is not None
    assert given.tensor.shape == (1, 1)
    assert "saved=[[" in done.repro.path.read_text()
    assert status(done.repro.path) == 1


@pytest.mark.slow
def test_numbers_that_are_many_lie_beside_the_script(tmp_path: Path) -> None:
    body = """
def backend(gm, inputs):
    def run(*args):
        results = gm.forward(*args)
        guilty = args[0].numel() > 200 and float(args[0].min()) > 1000
        return tuple(each + 1 if guilty else each for each in results)
    return run
"""
    tail = "\ntorch.compile(torch.sin, backend=backend)(torch.rand(400) + 2000)\n"
    path = tmp_path / "program.py"
    path.write_text(HEAD + body + tail)
    done = minify_program(path, [], Search("diff"), tmp_path / "repro.py", folder=tmp_path / "work")
    assert done.repro.path is not None, done.repro.reason
    assert (tmp_path / "repro.safetensors").stat().st_size < 2000
    assert status(done.repro.path) == 1


@pytest.mark.slow
def test_a_violation_keeps_its_rule_and_operator(tmp_path: Path) -> None:
    tail = """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(32, 50), nn.Linear(50, 16)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).softmax(-1)

torch.compile(Odd(), backend="eager")(torch.randn(16, 32))
"""
    path = tmp_path / "program.py"
    path.write_text(HEAD + tail)
    search = Search("violation", device="npu-a")
    done = minify_program(path, [], search, tmp_path / "repro.py", folder=tmp_path / "work")
    assert done.repro.path is not None, done.repro.reason
    assert len(done.reduction.best.graph.ops) == 1
    assert "('shape', 'aten.addmm.default')" in done.repro.path.read_text()
    assert status(done.repro.path) == 1


@pytest.mark.slow
def test_a_sound_program_has_no_repro(tmp_path: Path) -> None:
    path = program(tmp_path, "\ndef backend(gm, inputs):\n    return gm.forward\n")
    search = Search("diff")
    assert catch_graphs(path, [], search, tmp_path / "work") == 0
    with Sandbox(120, warm=WARM) as sandbox, pytest.raises(ToolError) as error:
        find_record(tmp_path / "work", search, 0, sandbox)
    assert "None of the 1 captured graphs" in error.value.message
    with Sandbox(120, warm=WARM) as sandbox, pytest.raises(ToolError):
        find_record(tmp_path / "work", Search("crash", file="program.py", line=1), 0, sandbox)


def lying(gm: Any, inputs: Any) -> Any:
    def run(*args: Any) -> Any:
        return tuple(each * 1.01 for each in gm.forward(*args))

    return run


def kind(gm: Any, inputs: Any) -> Any:
    return gm.forward


class Counting(nn.Module):
    """A forward that changes its own state."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.seen = 0

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(x))


@pytest.mark.slow
def test_save_repro_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    model, x = Counting(), torch.randn(6, 4, requires_grad=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    path = compilescope.save_repro(model, (x,), path=tmp_path / "r.py", backend=lying)
    assert path == tmp_path / "r.py"
    assert torch.equal(state, torch.get_rng_state())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert x.grad is None
    assert "from minify.test_graph_repros import lying" in path.read_text() or (
        "import lying" in path.read_text()
    )
    assert status(path) == 1


@pytest.mark.slow
def test_save_repro_says_that_nothing_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="gives different results"):
        compilescope.save_repro(
            Counting(), (torch.randn(6, 4),), path=tmp_path / "r.py", backend=kind
        )
    assert not (tmp_path / "r.py").exists()


@pytest.mark.slow
def test_run_with_repro_shows_it_in_the_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, PROGRAMS["failure"])
    home = tmp_path / "runs"
    monkeypatch.setattr(
        sys, "argv", ["compilescope", "run", "--repro", "--dir", str(home), str(path)]
    )
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    (run,) = (each for each in home.iterdir() if (each / "run.json").exists())
    (script,) = (run / "repros").glob("*.py")
    said = capfd.readouterr()
    assert "NoKernel" in said.err
    assert f"repros/{script.name}" in said.err.replace("\n", "")
    assert not (run / "failures").exists()
    assert status(script) == 1
    (failure,) = compilescope.load(run).failures
    assert failure.repro == f"repros/{script.name}"


@pytest.mark.slow
def test_run_with_repro_says_why_there_is_none(tmp_path: Path) -> None:
    body = """
@torch._dynamo.allow_in_graph
def hidden(x):
    return x.sin()

def backend(gm, inputs):
    raise RuntimeError("never")
"""
    path = tmp_path / "program.py"
    path.write_text(
        HEAD + body + "\ntorch.compile(lambda x: hidden(x), backend=backend)(torch.ones(2))\n"
    )
    command = [sys.executable, "-m", "compilescope", "run", "--repro"]
    command += ["--dir", str(tmp_path / "r")]
    done = subprocess.run(
        [*command, str(path)], env=fresh_environment(), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "No repro: the graph calls hidden" in " ".join(done.stderr.split())
