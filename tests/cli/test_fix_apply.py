"""`fix --apply RUN`: the fix of an earlier search, without a new one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from stored_fixes import NEW, OLD, store_search


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "train.py"
    path.write_text(OLD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "runs"))
    return path


def _fix(*words: str) -> object:
    return group(["fix", *words], standalone_mode=False)


def test_it_changes_the_file_and_says_so(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = store_search(program.parent / "runs", program)
    assert _fix("--apply", run[:4]) == 0
    told = capsys.readouterr().out
    assert program.read_text() == NEW
    assert "Changed: train.py." in told
    assert "Verified: graph breaks 1 -> 0." in told
    assert "+    y = torch.where(y.sum() > 0, y * 2, y - 1)" in told
    assert _fix("--apply", run) == 0
    told = capsys.readouterr().out
    assert "This fix is already applied." in told and "torch.where(" not in told


def test_its_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = store_search(program.parent / "runs", program, environment={"FLAG": "1"})
    assert _fix("--apply", run, "--json") == 0
    value = json.loads(capsys.readouterr().out)
    assert value["run"] == run
    assert value["written"] == [str(program)]
    assert value["already"] is False
    assert value["environment"] == {"FLAG": "1"}
    assert value["diff"].startswith("--- a/train.py")
    assert "Start the program with FLAG=1." in value["notes"]


def test_a_changed_file_is_left_alone(program: Path) -> None:
    run = store_search(program.parent / "runs", program)
    program.write_text(OLD + "# edited\n")
    with pytest.raises(ToolError, match=r"train\.py changed since the fix was verified"):
        _fix("--apply", run, "--force")
    assert program.read_text() == OLD + "# edited\n"


def test_git_is_asked_unless_forced(program: Path) -> None:
    for words in (["init", "-q"], ["add", "train.py"]):
        subprocess.run(["git", *words], check=True)
    run = store_search(program.parent / "runs", program)
    with pytest.raises(ToolError, match="uncommitted changes"):
        _fix("--apply", run)
    assert program.read_text() == OLD
    assert _fix("--apply", run, "--force") == 0
    assert program.read_text() == NEW


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train.py",), "Give a program or --apply RUN"),
        (("--write",), "Use --apply or --write, not both"),
        (("--script",), "Use --apply or --script, not both"),
        (("--run", "x"), "Use --apply or --run, not both"),
    ],
)
def test_what_does_not_go_together(program: Path, words: tuple[str, ...], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        _fix("--apply", "f00d", *words)


def test_a_run_that_is_no_search(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import samples

    samples.store(samples.RUNS["full"], program.parent / "runs", "abcdef-full")
    with pytest.raises(ToolError, match="Run abcdef-full holds no fix to apply"):
        _fix("--apply", "abcdef")


@pytest.mark.slow
@pytest.mark.torch
def test_a_real_search_and_its_fix_later(program: Path) -> None:
    """Search, apply from the run alone, run the program: the break is gone, the output the same."""
    tool = [sys.executable, "-m", "compilescope"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*tool, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    before = run("run", "train.py").stdout
    found = json.loads(run("fix", "--no-time", "--json", "train.py").stdout)
    assert program.read_text() == OLD
    applied = json.loads(run("fix", "--apply", found["run"], "--json").stdout)
    assert applied["written"] == [str(program)]
    assert applied["diff"] == found["diff"]
    assert "torch.where" in program.read_text()
    assert run("run", "train.py").stdout == before
    shown = json.loads(run("show", "--json").stdout)
    assert shown["sites"] == [] and shown["graphs"] == 1
