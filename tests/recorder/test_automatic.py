"""A plain program with one of our backends leaves a run, and nothing else of it changes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from compilescope.base.settings import (  # noqa: E402
    Settings,
    fresh_environment,
    trial_environment,
)
from compilescope.instrument import automatic  # noqa: E402
from compilescope.instrument.automatic import (  # noqa: E402
    _LateJournal,
    _LateRecorder,
    _make_room,
    _RunFolder,
    leaves_runs,
)
from compilescope.instrument.recorder.process_end import UncaughtException  # noqa: E402
from compilescope.knowledge.analysis.run_status import status_of  # noqa: E402
from compilescope.record import bodies  # noqa: E402
from compilescope.record.header import RunHeader, read_header, write_header  # noqa: E402
from compilescope.record.home import list_runs  # noqa: E402
from compilescope.record.labels import FILE_NAME as LABELS  # noqa: E402
from compilescope.record.run import Run, read_run  # noqa: E402
from compilescope.report.document import report_document  # noqa: E402
from compilescope.report.render.terminal import to_text  # noqa: E402
from compilescope.report.section import Reading  # noqa: E402
from recorder.harness import environment  # noqa: E402

PROGRAM = """
import os, sys, torch
from compilescope import mock_backend

@torch.compile(backend=mock_backend(device="npu-a", strict=False))
def step(x):
    y = x.sin()
    print("between")
    return y.cos()

step(torch.ones(16, 16))
"""
ENDS = {
    "normal": "",
    "raise": "raise ValueError('late')",
    "exit": "sys.exit(3)",
    "_exit": "os._exit(7)",
    "fork": """
pid = os.fork()
if pid == 0:
    torch.compile(lambda x: x.tan(), backend=mock_backend)(torch.ones(3))
    sys.exit(0)
os.waitpid(pid, 0)
""",
}


def plain(folder: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`python train.py`, as a user starts it."""
    (folder / "train.py").write_text(text)
    return subprocess.run(
        [sys.executable, "train.py", "--lr", "1"],
        cwd=folder,
        env={**environment(), "COMPILESCOPE_AUTO_RUN": "1", **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def only_run(folder: Path) -> Run:
    runs, unreadable = list_runs(folder / ".compilescope")
    assert not unreadable
    ((path, _),) = runs
    return read_run(path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _RunFolder:
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "home"))
    monkeypatch.delenv("COMPILESCOPE_AUTO_FOLDER", raising=False)
    for name in ("RANK", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    return _RunFolder()


def test_a_program_that_fails_leaves_its_run_and_one_line(tmp_path: Path) -> None:
    done = plain(tmp_path, PROGRAM + ENDS["raise"])
    assert done.returncode == 1
    assert done.stdout == "between\n"
    ours = [line for line in done.stderr.splitlines() if line.startswith("compilescope:")]
    run = only_run(tmp_path)
    short = run.header.run.partition("-")[0]
    recorded = f"recorded {run.header.run}; see `compilescope show {short}`."
    assert ours == [f"compilescope: {recorded} COMPILESCOPE_AUTO_RUN=0 leaves no run."]
    assert run.header.run.endswith("-train")
    assert run.header.command == ("train.py", "--lr", "1")
    assert run.header.automatic
    assert run.count(bodies.GraphBreak)
    assert run.count(bodies.GraphCaptured) == 2
    assert status_of(run.header) == "exit 1"
    ((_, ended),) = run.of(bodies.ProcessEnded)
    assert (ended.error, ended.message) == ("ValueError", "late")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["normal", "exit", "_exit", "fork"])
def test_however_it_ends(tmp_path: Path, end: str) -> None:
    done = plain(tmp_path, PROGRAM + ENDS[end])
    assert done.returncode == {"exit": 3, "_exit": 7}.get(end, 0)
    run = only_run(tmp_path)
    assert run.count(bodies.GraphCaptured) == (3 if end == "fork" else 2)
    assert status_of(run.header) == ("cut short" if end == "_exit" else "ended")
    assert done.stderr.count("compilescope: recorded") == (0 if end == "_exit" else 1)


@pytest.mark.slow
def test_nobody_is_recorded_twice_or_against_their_will(tmp_path: Path) -> None:
    assert "compilescope:" not in plain(tmp_path, PROGRAM, COMPILESCOPE_AUTO_RUN="0").stderr
    assert not (tmp_path / ".compilescope").exists()
    nothing = "import torch\nfrom compilescope import mock_backend, MockAdapter\n"
    assert plain(tmp_path, nothing).stderr == ""
    assert not (tmp_path / ".compilescope").exists()
    captured = [sys.executable, "-m", "compilescope", "run", "-q", "train.py"]
    (tmp_path / "train.py").write_text(PROGRAM)
    env = {**environment(), "COMPILESCOPE_AUTO_RUN": "1"}
    subprocess.run(captured, cwd=tmp_path, env=env, check=True, capture_output=True)
    assert not only_run(tmp_path).header.automatic


@pytest.mark.slow
def test_what_was_compiled_before_is_said(tmp_path: Path) -> None:
    text = """
import torch
@torch.compile(backend="eager")
def early(x):
    return x.sin()
early(torch.ones(3))
torch.compile(lambda x: x.cos(), backend="compilescope_mock")(torch.ones(3))
"""
    plain(tmp_path, text)
    run = only_run(tmp_path)
    said = " ".join(to_text(report_document(Reading(run))).split())
    assert "`early` was compiled before the program imported a compilescope backend" in said


@pytest.mark.slow
def test_processes_and_ranks_share_one_run(tmp_path: Path) -> None:
    spawned = """
import multiprocessing, torch
from compilescope import mock_backend
def work(n):
    torch.compile(lambda x: x.sin() + n, backend=mock_backend)(torch.ones(4))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=work, args=(n,)) for n in range(2)]
    [each.start() for each in both]
    [each.join() for each in both]
"""
    plain(tmp_path, spawned)
    run = only_run(tmp_path)
    assert run.header.command == ("train.py", "--lr", "1")
    assert len({event.pid for event, _ in run.of(bodies.GraphCaptured)}) == 2


def test_nothing_is_made_until_something_compiles(place: _RunFolder) -> None:
    recorder = _LateRecorder(_LateJournal(place))
    recorder.emit(bodies.CompiledBefore(()))
    recorder.end()
    place.end(None)
    assert not place.folder.exists()
    recorder.emit(bodies.ToolFault("hook", "error", ""))
    recorder.end()
    place.end(None)
    run = read_run(place.folder)
    kinds = [type(event.body).__name__ for event in run.events]
    assert kinds == ["ProcessStarted", "CompiledBefore", "ToolFault", "ProcessEnded"]
    assert run.header.ended_ns is not None
    assert run.cut_short is None


def test_a_folder_that_cannot_be_made_costs_one_line(
    place: _RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    place.folder.parent.write_text("a file where the folder should be")
    recorder = _LateRecorder(_LateJournal(place))
    for _ in range(3):
        recorder.emit(bodies.ToolFault("hook", "error", ""))
    recorder.artifact("text", "py")
    recorder.end()
    place.end(None)
    said = capsys.readouterr().err
    assert said.startswith("compilescope: this run was not recorded: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("home", [".compilescope", "runs", "their/runs"])
def test_git_sees_nothing_of_it(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asked for the run: neither in a folder of ours nor among files of the user's."""

    def git(*words: str) -> str:
        asked = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run([*asked, *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    theirs = tmp_path / "their" / "runs"
    theirs.mkdir(parents=True)
    (theirs / "notes.txt").write_text("")
    git("add", ".")
    git("commit", "-q", "-m", "notes")
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / home))
    monkeypatch.delenv("COMPILESCOPE_AUTO_FOLDER", raising=False)
    made = _RunFolder()
    assert made.make() and (made.folder / "run.json").exists()
    made.end(None)
    assert git("status", "--short", "--untracked-files=all") == ""
    (theirs / "more.txt").write_text("")
    assert "more.txt" in git("status", "--short", "--untracked-files=all")


def test_what_reads_no_gitignore_sees_nothing_either(
    place: _RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".hg").mkdir()
    assert not place.make() and not place.folder.parent.exists()
    place.end(None)
    said = capsys.readouterr().err
    assert "not recorded" in said and "Mercurial" in said and "COMPILESCOPE_DIR" in said
    (tmp_path / ".git").mkdir()  # Both: Git's mirror of a repository has its own rules.
    assert place.make()


def test_ctrl_c_is_a_signal(place: _RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.make()
    place.end(UncaughtException("KeyboardInterrupt", "", ()))
    assert status_of(read_header(place.folder)) == "SIGINT"


def test_the_ranks_of_a_job_come_to_the_same_folder(
    place: _RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("MASTER_PORT", "29500")
    folders = set()
    for rank in "01":
        monkeypatch.setenv("LOCAL_RANK", rank)
        folders.add(_RunFolder().folder)
    assert len(folders) == 1
    assert place.folder not in folders


def test_old_ones_go_but_for_those_with_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic, "_MOST_RUNS", 2)
    now = time.time_ns()
    for number in range(6):
        folder = tmp_path / f"{number}-x"
        folder.mkdir()
        asked_for = number == 1
        header = RunHeader(
            run=folder.name, tool="1", started_ns=now + number, automatic=not asked_for
        )
        write_header(folder, header)
    (tmp_path / "0-x" / LABELS).write_text("{}")
    _make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-x", "1-x", "4-x", "5-x"]


@pytest.mark.parametrize(
    "name", ["COMPILESCOPE_RUN", "COMPILESCOPE_TRIAL", "PYTEST_VERSION", "PYTEST_CURRENT_TEST"]
)
def test_who_is_recorded_otherwise_leaves_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("PYTEST_VERSION", "PYTEST_CURRENT_TEST", "COMPILESCOPE_AUTO_RUN"):
        monkeypatch.delenv(each, raising=False)
    assert leaves_runs()
    monkeypatch.setenv(name, "x")
    assert not leaves_runs()


def test_our_own_processes_leave_none(tmp_path: Path) -> None:
    trial = trial_environment(Settings(), [tmp_path], tmp_path / "trial", 0, {})
    for env in (fresh_environment(), trial):
        assert env["COMPILESCOPE_AUTO_RUN"] == "0"


def test_a_repro_that_this_tool_wrote_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not automatic._is_repro()
    made = (
        "A graph.\n\nWritten by compilescope 0.1.0 on torch 2.13.0 and verified in a fresh process."
    )
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", made)
    assert automatic._is_repro()
