"""A shell completes commands, options, files and the ids of runs; a misspelt command is guessed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.record.header import RunHeader
from compilescope.record.home import create_run

COMMAND = str(Path(sys.executable).with_name("compilescope"))


def completed(words: str, home: Path, **more: str) -> list[str]:
    count = len(words.split()) - (not words.endswith(" "))
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(count), "COMPILESCOPE_DIR": str(home)}
    done = subprocess.run(
        [COMMAND],
        env={**os.environ, **variables, "_COMPILESCOPE_COMPLETE": "bash_complete", **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("a1b2c3-train", "a1ffff-tour", "bbbbbb-train"):
        command = (f"{name[7:]}.py",)
        create_run(tmp_path, RunHeader(run=name, tool="1", command=command, started_ns=1))
    return tmp_path


@pytest.mark.parametrize(
    "before", ["show", "explain", "report", "compare bbbbbb", "check --run", "runs tag", "tag"]
)
def test_runs_are_completed_by_their_ids(home: Path, before: str) -> None:
    found = completed(f"compilescope {before} a1", home)
    assert sorted(found) == ["plain,a1b2c3-train", "plain,a1ffff-tour"]


def test_commands_of_a_group_are_completed(home: Path) -> None:
    names = ["list", "tag", "export", "import", "clean"]
    assert completed("compilescope runs ", home) == [f"plain,{name}" for name in names]
    assert completed("compilescope ex", home) == ["plain,explain"]
    assert completed("compilescope runs --artifacts --js", home) == ["plain,--json"]


def test_runs_of_another_folder(home: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert completed("compilescope show a1", nowhere) == []
    assert len(completed(f"compilescope show --dir {home} a1", nowhere)) == 2


def test_the_program_is_a_file(home: Path) -> None:
    assert completed("compilescope run tr", home) == ["file,tr"]
    assert completed("compilescope run --comp", home) == ["plain,--compile-all", "plain,--compile"]
    # Nothing is started to complete what follows.
    assert completed("compilescope run --python nowhere tr", home) == ["file,tr"]


def test_bash_completes_with_what_is_printed(home: Path) -> None:
    """The line of the documentation, in a real bash."""
    script = f"""
    PATH={Path(COMMAND).parent}:$PATH
    eval "$(_COMPILESCOPE_COMPLETE=bash_source compilescope)"
    COMP_WORDS=(compilescope show bbb) COMP_CWORD=2
    _compilescope_completion compilescope
    echo "${{COMPREPLY[*]}}"
    """
    env = {**os.environ, "COMPILESCOPE_DIR": str(home)}
    done = subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "bbbbbb-train", done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rnu",), "No such command 'rnu'. Did you mean run?"),
        (("registry", "serch"), "No such command 'serch'. Did you mean search or serve?"),
        (("xyzzy",), "No such command 'xyzzy'."),
    ],
)
def test_a_misspelt_command_is_guessed(words: tuple[str, ...], said: str) -> None:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"Error: {said}"
