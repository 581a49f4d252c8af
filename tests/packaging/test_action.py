"""The GitHub Action and the pre-commit hook: well formed, and their steps run as a runner would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BIN = Path(sys.executable).parent
BROKEN = """
import sys
import torch

@torch.compile(backend="eager")
def f(x):
    print("in the graph")
    return x + 1

f(torch.ones(3))
print("words:", sys.argv[1:])
"""


class Runner:
    """What GitHub's runner does with a composite action's own steps: expressions, environment,
    outputs. Steps that use other actions are left out."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.summary = folder / "summary.md"
        self.inputs = {name: str(each.get("default", "")) for name, each in INPUTS.items()} | inputs
        self.outputs: dict[str, dict[str, str]] = {}
        self.said = ""

    def run(self) -> int:
        for step in ACTION["runs"]["steps"]:
            if "run" in step and (status := self._run(step)):
                return status
        return 0

    def _run(self, step: dict[str, Any]) -> int:
        told = self.folder / "outputs.txt"
        told.write_text("")
        variables = {name: self.value(text) for name, text in step.get("env", {}).items()}
        # As https://docs.github.com/actions/reference/workflow-syntax says of `shell: bash`.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / self.value(step.get("working-directory", ".")),
            env={
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "GITHUB_ACTIONS": "true",
                "GITHUB_OUTPUT": str(told),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.said += done.stdout + done.stderr
        lines = [line.partition("=") for line in told.read_text().splitlines()]
        self.outputs[step.get("id", "")] = {name: value for name, _, value in lines}
        return done.returncode

    def value(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: self._look_up(match[1]), text)

    def _look_up(self, name: str) -> str:
        head, _, rest = name.partition(".")
        if head == "steps":
            step, _, output = rest.split(".")
            return self.outputs.get(step, {}).get(output, "")
        known = {"runner.temp": str(self.temp), "github.action_path": str(ROOT)}
        return self.inputs[rest] if head == "inputs" else known[name]


INPUTS: dict[str, dict[str, Any]] = ACTION["inputs"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(BROKEN)
    (tmp_path / "good.py").write_text(BROKEN.replace('print("in the graph")', "pass"))
    return tmp_path


def test_the_action_is_well_formed() -> None:
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    named = set()
    for step in ACTION["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step), step
        assert "run" not in step or step["shell"] == "bash", step
        # Inputs reach a script as variables only: as text of it they could be commands.
        assert "${{" not in step.get("run", ""), step
        named |= set(re.findall(r"inputs\.([\w-]+)", yaml.safe_dump(step)))
    assert named == set(INPUTS)
    steps = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    for output in ACTION["outputs"].values():
        assert re.findall(r"steps\.(\w+)\.", output["value"])[0] in steps


@pytest.mark.torch
def test_a_graph_break_fails_the_job_and_is_reported(folder: Path) -> None:
    program = "train.py --name 'two words' '$(touch hacked)' -n"
    runner = Runner(folder, version="installed", program=program)
    assert runner.run() == 1, runner.said
    assert "words: ['--name', 'two words', '$(touch hacked)', '-n']" in runner.said
    assert not (folder / "hacked").exists()
    assert runner.outputs["check"] == {"status": "1"}
    assert "::error" in runner.said and "train.py" in runner.said
    page = Path(runner.outputs["report"]["page"])
    assert "GB0059" in page.read_text() and (page.parent / "check.sarif").is_file()
    assert "GB0059" in runner.summary.read_text()


@pytest.mark.slow
@pytest.mark.torch
def test_what_is_allowed_passes(folder: Path) -> None:
    inputs = {"program": "train.py", "options": "--max-breaks 1", "python": sys.executable}
    runner = Runner(folder, version="installed", **inputs)
    assert runner.run() == 0, runner.said


def test_a_program_that_is_not_there_is_inconclusive(folder: Path) -> None:
    runner = Runner(folder, version="installed", program="nowhere.py")
    assert runner.run() == 2, runner.said
    assert "There is no file nowhere.py." in runner.said
    assert runner.summary.read_text().strip() == (
        "compilescope check ended with status 2 and left no run."
    )


def test_the_hook_is_well_formed() -> None:
    assert {"id", "name", "entry", "language"} <= set(HOOK)
    assert HOOK["language"] == "python" and HOOK["pass_filenames"] is False


@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "status"),
    [("train.py", 1), pytest.param("good.py", 0, marks=pytest.mark.slow)],
)
def test_the_hook_runs_the_check(folder: Path, program: str, status: int) -> None:
    words = [*HOOK["entry"].split(), "--python", sys.executable, program]
    done = subprocess.run(
        [BIN / words[0], *words[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
