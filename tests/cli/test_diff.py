"""`compilescope diff`: its verdict, its JSON, and one sentence for whatever is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.record.bodies import TensorDiff
from compilescope.record.run import read_run

pytestmark = pytest.mark.torch
MODEL = """
import os
import torch

print("loading")

class Model(torch.nn.Linear):
    def forward(self, x, scale=1.0):
        print("running")
        return torch.sin(super().forward(x)) * scale

def build():
    return Model(4, 4), (torch.randn(2, 4),), {"scale": 2.0}

def alone():
    assert os.environ["COMPILESCOPE_CLEANER"]  # What it starts ends with the command.
    return torch.sin, torch.ones(2)

def wrong(graph, inputs):
    return lambda *args: [result + 1 for result in graph(*args)]

def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.5)

def rubbish():
    return 3

def raising():
    raise KeyError("weights.pt")

def leaving():
    raise SystemExit(3)

number = 7
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff")
    (path / "model.py").write_text(MODEL)
    (path / "leaves.py").write_text("import sys\nsys.exit(1)\n")
    (path / "broken.py").write_text("def build(:\n")
    return path


def diff(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compilescope", "diff", *words, "--dir", str(folder / "runs")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_a_pass_with_training_and_more_inputs(folder: Path) -> None:
    words = ("--test-backend", "aot_eager", "--train", "--optimizer", "model.py:sgd")
    done = diff(folder, "model.py:build", *words, "--inputs", "2", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"] == "pass" and told["inputs"] == 2
    assert "grad of weight" in told["gradients"] and "weight after the step" in told["gradients"]
    assert "loading" in done.stderr
    run = read_run(folder / "runs" / told["run"])
    assert "grad of weight" in [body.path for _, body in run.of(TensorDiff)]


def invoke(folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """In this process, which has torch already."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    command = ["diff", *words, "--dir", str(folder / "runs")]
    try:
        status: int = group.main(command, standalone_mode=False)
        return status
    finally:
        for name in ("model", "leaves", "broken"):
            sys.modules.pop(name, None)


def test_a_fail_names_the_value(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model.py:alone", "--test-backend", "model.py:wrong"]
    assert invoke(folder, words, monkeypatch) == 1
    told = capsys.readouterr()
    assert "FAIL  sin: wrong vs. eager" in told.out
    assert "compilescope report" in told.err
    words = ["check", "--run", told.err.split()[-1].rstrip("`"), "--dir", str(folder / "runs")]
    assert group.main(words, standalone_mode=False) == 1, "the gate judges its run, too"
    said = capsys.readouterr().out
    assert "FAIL: 1 value that differs, at most 0 allowed." in said and "--update" not in said


@pytest.mark.parametrize(
    "words, said",
    [
        (["nowhere.py:build"], "There is no file nowhere.py."),
        (["model.py:biuld"], "Did you mean build?"),
        (["model.py:number"], "is not callable (its type is int)"),
        (["model.py:rubbish"], "returned a int; it must return (model, args)"),
        (["model.py:raising"], "failed: KeyError: 'weights.pt'"),
        (["model.py:leaving"], "it calls sys.exit(3)"),
        (["leaves.py:build"], "it calls sys.exit(1)"),
        (["broken.py:build"], "cannot be loaded: SyntaxError"),
        (["model.py:alone", "--test-backend", "inducto"], "Did you mean inductor?"),
        (["model.py:alone", "--test-backend", "model.py:number"], "not a backend"),
        (["model.py:build", "--train", "--optimizer", "adamm"], "no optimizer named 'adamm'"),
        (["model.py:alone", "--atol", "-1"], "atol"),
    ],
)
def test_mistakes_get_one_sentence(
    folder: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError) as raised:
        invoke(folder, words, monkeypatch)
    assert said in f"{raised.value.message} {raised.value.hint}"
    assert raised.value.exit_code == 2
