"""Children that compile are recorded under their own pid; those that do not leave nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compilescope.record.bodies import CompileFailed, ProcessEnded, ProcessStarted
from compilescope.record.eventfile import event_files
from recorder.harness import PROGRAMS, functions_of, latest_folder, latest_run, run_captured, show

pytestmark = pytest.mark.torch


# One that multiprocessing spawns is a new interpreter, as any subprocess is.
@pytest.fixture(scope="module", params=["", pytest.param("spawn", marks=pytest.mark.slow)])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("family")
    # No GPU: Dynamo keeps the state of its random numbers, and CUDA does not work after a fork.
    # No warnings: since Python 3.12 a fork of a process with threads is one, and torch has threads.
    around = {"CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    ended = run_captured(home, "-q", "family.py", request.param, env=around)
    assert ended.status == 0, ended.stderr.decode()
    assert ended.stderr == b""
    return home, json.loads(ended.stdout)


def test_each_child_has_its_own_events(family) -> None:
    home, pids = family
    run = latest_run(home)
    # A list, not a set: an event that is counted twice must show.
    assert sorted(functions_of(run)) == sorted(
        (pid, name) for name, pid in pids["compiling"].items()
    )
    assert sorted(event.pid for event, _ in run.of(ProcessStarted)) == sorted(
        pids["compiling"].values()
    )
    ids = [event.id for event in run.events]
    assert len(ids) == len(set(ids))


def test_silent_children_leave_no_file(family) -> None:
    home, pids = family
    assert len(event_files(latest_folder(home))) == len(pids["compiling"])
    assert not {event.pid for event in latest_run(home).events} & set(pids["silent"])


def test_children_that_could_say_goodbye_did(family) -> None:
    home, pids = family
    ended = {event.pid for event, _ in latest_run(home).of(ProcessEnded)}
    without = {name for name, pid in pids["compiling"].items() if pid not in ended}
    # os._exit asks nobody.
    assert without <= {"in_fork"}
    seen = show(home)
    assert not seen["cut_short"], seen["cut_short_reason"]
    assert len(seen["processes"]) == len(pids["compiling"])


def test_torchrun(tmp_path: Path) -> None:
    # The agent imports torch as well; it runs nothing of the user's and must not pass for rank 0.
    words = ("--torchrun", "--nproc-per-node", "1", "ranks.py")
    ended = run_captured(tmp_path, "-q", *words, env={"OMP_NUM_THREADS": "1"})
    assert ended.status == 0, ended.stderr.decode()
    seen = show(tmp_path)
    assert [process["rank"] for process in seen["processes"]] == [0]
    assert [(site["function"], site["ranks"]) for site in seen["sites"]] == [("shared", [0])]
    assert not seen["cut_short"]


@pytest.mark.slow
def test_torchrun_with_two_ranks(tmp_path: Path) -> None:
    words = ("--torchrun", "--nproc-per-node", "2", "ranks.py")
    ended = run_captured(tmp_path, "-q", *words, env={"OMP_NUM_THREADS": "1"})
    assert ended.status == 0, ended.stderr.decode()
    seen = show(tmp_path)
    assert sorted(process["rank"] for process in seen["processes"]) == [0, 1]
    assert {site["function"]: site["ranks"] for site in seen["sites"]} == {
        "shared": [0, 1],
        "only_one": [1],
    }
    assert [site["events"] for site in seen["sites"] if site["function"] == "shared"] == [2]
    assert not seen["cut_short"]


@pytest.mark.slow
def test_torchrun_by_its_script(tmp_path: Path) -> None:
    torchrun = Path(sys.executable).parent / "torchrun"
    if not torchrun.exists():
        pytest.skip("no torchrun script beside this Python")
    words = (str(torchrun), "--nproc-per-node", "1", "ranks.py")
    ended = run_captured(tmp_path, "-q", *words)
    assert ended.status == 0, ended.stderr.decode()
    assert [process["rank"] for process in show(tmp_path)["processes"]] == [0]


@pytest.mark.slow
def test_without_torchs_extensions(tmp_path: Path) -> None:
    env = {
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "PYTHONPATH": str(PROGRAMS / "own_site"),
        "RANK": "1",
    }
    ended = run_captured(tmp_path, "-q", "ranks.py", env=env)
    assert ended.status == 0, ended.stderr.decode()
    assert ended.stderr.splitlines().count(b"my own sitecustomize") >= 1
    assert set(ended.stderr.splitlines()) == {b"my own sitecustomize"}
    assert {site["function"] for site in show(tmp_path)["sites"]} == {"shared", "only_one"}


@pytest.mark.slow
def test_what_happens_after_the_end_mark_is_recorded(tmp_path: Path) -> None:
    """By then torch has taken its operators down: the attempt fails, and the record has it."""
    ended = run_captured(tmp_path, "-q", "leaving.py")
    assert ended.status == 0, ended.stderr.decode()
    run = latest_run(tmp_path)
    assert [body.error for _, body in run.of(CompileFailed)] == ["TorchRuntimeError"]
    assert run.cut_short is None
