"""`--isolated`: a copy of the working folder, real names in what comes of it, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from compilescope.apps.cli import isolation
from compilescope.apps.cli.isolation import Copy, isolated
from compilescope.base.errors import ToolError


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    for name in (".hg/00", "venv/pyvenv.cfg", ".compilescope/run/x", "data/in.txt", "prog.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    (work / "inside").symlink_to(work / "data")
    (work / "outside").symlink_to("/etc")
    (tmp_path / "beside").mkdir()
    (work / "up").symlink_to("../beside")
    os.mkfifo(work / "pipe")
    (work / "prog.py").chmod(0o750)
    monkeypatch.chdir(work)
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere:{work}/data")
    return work


def test_the_program_finds_all_but_what_no_program_needs(work: Path) -> None:
    with isolated(work / ".compilescope", "prog.py") as copy:
        here = Path.cwd()
        assert str(here) == copy.folder and here != work and here.name == work.name
        names = sorted(path.name for path in here.iterdir())
        assert names == ["data", "inside", "outside", "prog.py", "up"]
        assert (here / "prog.py").stat().st_mode & 0o777 == 0o750
        (here / "inside" / "in.txt").write_text("changed")
        assert os.readlink("outside") == "/etc"
        assert os.environ["PYTHONPATH"] == f"/elsewhere:{here}/data"
    assert (work / "data" / "in.txt").read_text() == "data/in.txt"
    assert Path.cwd() == work and os.environ["PYTHONPATH"] == f"/elsewhere:{work}/data"
    assert not here.exists() and not here.parent.exists()


def test_paths_beside_the_folder_lead_where_they_did(work: Path) -> None:
    with isolated(work / ".compilescope") as copy:
        assert Path("up").samefile(work / "up") and Path("../beside").samefile(work / "../beside")
        assert Path("../work/prog.py").samefile("prog.py")
        assert copy.back(f"{copy.place}/beside/m.py") == str(work.parent / "beside" / "m.py")
        assert copy.back(Path("prog.py").absolute()) == work / "prog.py"
    assert (work.parent / "beside").is_dir()


def test_words_and_variables_that_name_the_folder_lead_into_the_copy(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = work.parent / "alias"
    alias.symlink_to(work)
    monkeypatch.setenv("DATA", str(work / "data"))
    monkeypatch.setenv("COMPILESCOPE_DIR", str(work / "data"))
    with isolated(work / ".compilescope") as copy:
        inside = f"{copy.folder}/data/new.csv"
        for word in (f"{work}/data/new.csv", f"{alias}/data/new.csv"):
            assert copy.into(word) == inside
            assert copy.into(f"--out={word}") == f"--out={inside}"
        for word in ("--lr=1", "data", "/etc", "a=b", "", f"{work}/venv/pyvenv.cfg"):
            assert copy.into(word) == word
        assert os.environ["DATA"] == f"{copy.folder}/data"
        assert os.environ["COMPILESCOPE_DIR"] == f"{work}/data"
    assert os.environ["DATA"] == f"{work}/data"


def test_a_repository_is_read_and_not_written(work: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        return subprocess.check_output(("git", *who, *words), text=True).strip()

    git("init", "-q")
    git("add", "prog.py")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD")
    with isolated(work / ".compilescope"):
        assert git("show", "HEAD:prog.py") == "prog.py"
        git("add", "data")
        git("commit", "-qm", "second")
        second = git("rev-parse", "HEAD")
    assert git("rev-parse", "HEAD") == first != second
    assert git("fsck", "--full") == ""


def test_errors_name_the_real_files(work: Path) -> None:
    with pytest.raises(ToolError) as error, isolated(work / ".compilescope"):
        raise ToolError(f"Cannot read {Path.cwd()}/prog.py.", hint=f"See {Path.cwd()}.")
    assert error.value.message == f"Cannot read {work}/prog.py."
    assert error.value.hint == f"See {work}."


def test_a_program_elsewhere_cannot_be_isolated(work: Path) -> None:
    with pytest.raises(ToolError, match="is not in it"), isolated(work, "../other.py"):
        pass


def test_too_large_a_folder_is_one_sentence(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_MOST_BYTES", 10)
    monkeypatch.setattr(isolation, "_clone", lambda source, target: False)
    words = r"too large for --isolated: 0\.0 GB"
    with pytest.raises(ToolError, match=words) as error, isolated(work / ".compilescope"):
        pass
    assert "without --isolated" in error.value.hint and Path.cwd() == work


@dataclass(frozen=True)
class _Found:
    files: dict[str, str]
    notes: tuple[str, ...]


class _Cause(msgspec.Struct, frozen=True):
    file: str
    line: int = 3


def test_real_paths_come_back_from_everything() -> None:
    copy = Copy("/home/me/work", "/tmp/x/work")
    found = _Found({"/tmp/x/work/a.py": "text"}, ("in /tmp/x/work/a.py",))
    assert copy.back(found) == _Found({"/home/me/work/a.py": "text"}, ("in /home/me/work/a.py",))
    assert copy.back([_Cause("/tmp/x/work/a.py"), 7, None]) == [
        _Cause("/home/me/work/a.py"),
        7,
        None,
    ]
    assert copy.into("/home/me/work/a.py") == "/tmp/x/work/a.py"
    assert copy.into("/home/me/works/a.py") == "/home/me/works/a.py"


def test_a_recorded_run_names_the_real_paths(tmp_path: Path) -> None:
    copy = Copy('/home/m"e/wörk', "/tmp/x/work")
    (tmp_path / "events-0.jsonl").write_text('{"file": "/tmp/x/work/a.py"}\n')
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "0a.txt").write_text("# File: /tmp/x/work/a.py:3")
    copy.rename_in(tmp_path)
    assert json.loads((tmp_path / "events-0.jsonl").read_text())["file"] == '/home/m"e/wörk/a.py'
    assert (tmp_path / "artifacts" / "0a.txt").read_text() == '# File: /home/m"e/wörk/a.py:3'


PROGRAM = """import pathlib
import torch

open("here.txt", "a").write("x")
pathlib.Path(__file__).with_name("beside.txt").write_text("x")


@torch.compile(backend="eager")
def f(x):
    x = x + 1
    print("hello")
    return x * 2


print(f(torch.ones(3)))
"""


@pytest.mark.slow
@pytest.mark.torch
def test_only_results_get_to_the_real_folder(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    tool = [sys.executable, "-m", "compilescope"]
    words = ["fix", "--isolated", "--write", "--force", "--no-time", "--json", "prog.py"]
    done = subprocess.run([*tool, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "many times" in done.stderr.splitlines()[0]
    told = json.loads(done.stdout)
    assert str(tmp_path / "prog.py") in done.stdout and "isolated-" not in done.stdout
    assert told["written"] == [str(tmp_path / "prog.py")]
    assert "reorderable_logging_functions" in (tmp_path / "prog.py").read_text()
    (run,) = (path for path in (tmp_path / ".compilescope").iterdir() if path.is_dir())
    texts = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert not any(b"isolated-" in text for text in texts)
    again = subprocess.run([*tool, "minify", "--isolated", "prog.py"], cwd=tmp_path, text=True)
    assert again.returncode == 2, "nothing is left to show"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".compilescope", "prog.py"]
