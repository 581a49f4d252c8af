"""No command replaces a file that is not ours without --force; ours it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from samples import full_run, store

MINE = "mine, not compilescope's\n"
LOG = (
    "V0101 00:00:00.000000 1 torch/_dynamo/x.py:1] [0/0] [__graph_breaks] Graph break in user code"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    store(full_run(), tmp_path / "runs", "aaa111-full")
    (tmp_path / "train.log").write_text(f"{LOG} at /home/me/train.py:3\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_DIR", "runs")
    return tmp_path


def _call(*words: str) -> None:
    group(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("report", "aaa", "-o"), "r.html"),
        (("report", "aaa", "-o"), "r.md"),
        (("report", "aaa", "-o"), "r.json"),
        (("report", "aaa", "-o"), "r.sarif"),
        (("report", "aaa", "-o"), "r.txt"),
        (("report", "aaa", "--format", "trace", "-o"), "t.json"),
        (("check", "--run", "aaa", "--junit"), "j.xml"),
        (("check", "--run", "aaa", "--sarif"), "s.sarif"),
        (("logs", "train.log", "--report"), "l.md"),
    ],
)
def test_a_report_replaces_a_report_alone(folder: Path, words: tuple[str, ...], name: str) -> None:
    path = folder / name
    path.write_text(MINE)
    with pytest.raises(ToolError, match="compilescope did not write it"):
        _call(*words, name)
    assert path.read_text() == MINE
    _call(*words, name, "--force")
    assert path.read_text() != MINE
    _call(*words, name)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("minify", "train.py"), "repro.py"),
        (("minify", "train.py", "-o", "x.py"), "x.py"),
        (("minify", "--check", "true", "train.py"), "train.min.py"),
        (("fix", "--script", "train.py"), "train_fixed.py"),
        (("logs", "train.log", "--script", "train.py"), "train_fixed.py"),
        (("export", "aaa", "-o", "x.zip"), "x.zip"),
        (("agent-skill", "-o", "SKILL.md"), "SKILL.md"),
        (("learn", "1", "--exercise", "e.py"), "e.py"),
        (("check", "--run", "aaa", "--baseline", "b.json", "--update-baseline"), "b.json"),
    ],
)
def test_other_files_are_not_replaced(folder: Path, words: tuple[str, ...], name: str) -> None:
    (folder / name).write_text(MINE)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ToolError):
        _call(*words)
    assert (folder / name).read_text() == MINE
    assert sorted(path.name for path in folder.iterdir()) == before


def test_minify_never_writes_over_its_program(folder: Path) -> None:
    with pytest.raises(ToolError, match="is the program itself"):
        _call("minify", "train.py", "-o", "./train.py", "--force")


def test_runs_in_a_folder_of_the_users_leave_its_gitignore_alone(folder: Path) -> None:
    (folder / ".gitignore").write_text(MINE)
    _call("logs", "train.log", "--dir", ".")
    assert (folder / ".gitignore").read_text() == MINE
