"""The instruction file for coding agents says only what the commands do."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from compilescope.apps.cli.commands.agent_skill import KEYS, STATUSES, skill_text
from compilescope.apps.cli.main import group

TEXT = skill_text()
PROGRAM = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y + 1
        return y.relu()


def build():
    return Net(), (torch.ones(2, 4),)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Net()
    model.compile(backend="eager")
    for _ in range(2):
        model(torch.ones(2, 4))
"""

COUNTING = """import itertools
import torch
from torch import nn

COUNT = itertools.count()


class Net(nn.Module):
    def forward(self, x):
        print("a break")
        return x + next(COUNT)


model = Net()
model.compile(backend="eager")
for _ in range(2):
    model(torch.ones(2, 4))
"""
DIFFERING = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x * 2 if torch.compiler.is_compiling() else x


def build():
    return Net(), (torch.ones(2, 4),)
"""


def commands() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", TEXT, re.S)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_it_has_front_matter_and_is_short() -> None:
    head = TEXT.split("---\n")[1].splitlines()
    assert [line.partition(":")[0] for line in head] == ["name", "description"]
    assert len(TEXT.splitlines()) < 250


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_parses(words: list[str]) -> None:
    tool, name, *rest = words
    assert tool == "compilescope"
    context = click.Context(group)
    command = group.get_command(context, name)
    assert command is not None, name
    command.make_context(name, rest, parent=context)


def test_every_option_in_the_text_exists() -> None:
    context = click.Context(group)
    known = {"--help", "--steps"}  # The latter is the program's own.
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        known |= {word for each in command.params for word in (*each.opts, *each.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT)) <= known


def test_all_commands_are_listed() -> None:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        assert command.hidden or f"`compilescope {name}`: " in TEXT


def test_a_file_is_written_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    done = CliRunner().invoke(group, ["agent-skill", "--output", str(path)])
    assert done.exit_code == 0 and path.read_text() == TEXT
    again = CliRunner().invoke(group, ["agent-skill", "--output", str(path)])
    assert "already exists" in str(again.exception)
    done = CliRunner().invoke(group, ["agent-skill", "-o", str(path), "--force"])
    assert done.exit_code == 0
    missing = CliRunner().invoke(group, ["agent-skill", "-o", str(tmp_path / "no" / "a.md")])
    assert "there is no folder" in str(missing.exception)


def test_the_keys_of_a_run_are_in_its_digest() -> None:
    from compilescope.knowledge.analysis.digest import Digest
    from compilescope.knowledge.analysis.json_form import SITE_KEYS

    outer = {*Digest.__struct_fields__, "run", "command"}
    assert set(KEYS["run --json"]) <= outer
    assert set(KEYS["run --json, each of `sites`"]) <= set(SITE_KEYS)


# About 1 min.
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.torch
def test_keys_and_statuses_are_those_of_real_commands(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "counting.py").write_text(COUNTING)
    (tmp_path / "differing.py").write_text(DIFFERING)
    (tmp_path / "plain.py").write_text("import torch\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    seen: dict[str, set[int]] = {name: set() for name in STATUSES}

    def call(*words: str) -> Any:
        command = [sys.executable, "-m", "compilescope", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        seen[words[0]].add(done.returncode)
        text = done.stdout.strip()
        if words[0] in ("run", "check"):
            text = text.splitlines()[-1] if text else ""
        return json.loads(text) if text.startswith("{") else None

    run = call("run", "--json", "train.py")
    assert set(KEYS["run --json"]) <= set(run)
    assert set(KEYS["run --json, each of `sites`"]) <= set(run["sites"][0])
    assert set(run["sites"][0]["advice"][0]) >= {"fix", "status", "diff", "text"}
    fix = call("fix", "--json", "--no-time", "train.py")
    assert set(KEYS["fix --json"]) <= set(fix) and fix["verdict"] == "verified"
    call("fix", "--json", "--no-time", "--rule", "print-in-graph", "train.py")
    call("fix", "--json", "plain.py")
    # Nobody can put the count back, so no call of it can be replayed.
    assert call("fix", "--json", "--no-time", "counting.py")["verdict"] == "unverified"
    check = call("check", "--json", "train.py")
    assert set(KEYS["check --json"]) <= set(check) and check["outcome"] == "fail"
    call("check", "--json", "--max-breaks", "5", "train.py")
    call("check", "--json", "exits.py")
    minify = call("minify", "--json", "train.py")
    assert set(KEYS["minify --json"]) <= set(minify) and minify["repro"]
    call("minify", "--json", "plain.py")
    diff = call("diff", "--json", "--test-backend", "aot_eager", "train.py:build")
    assert set(KEYS["diff --json"]) <= set(diff) and diff["verdict"] == "pass"
    diff = call("diff", "--json", "--test-backend", "aot_eager", "differing.py:build")
    assert diff["verdict"] == "fail"
    call("diff", "--json", "--test-backend", "nothing_of_that_name", "train.py:build")
    for name, known in STATUSES.items():
        assert set(known) <= seen[name], name
