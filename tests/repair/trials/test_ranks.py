"""Jobs of several processes: what their ranks write, what one of them can do alone, and a fix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilescope.change.repair.trials.child.ranks import (
    note_collective,
    read_collective,
    read_stderr,
    read_stdout,
    separate_streams,
    why_a_rank_failed,
)
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

JOB = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(2, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        h = self.norm(self.hidden(x))
        if h.sum() > 0:
            h = h * 2
        else:
            h = h - 1
        return h


@torch.compile(backend="eager")
def share(x):
    y = x.sin()
    torch._dynamo.graph_break()
    dist.all_reduce(y)
    return y


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = torch.compile(DistributedDataParallel(Net()), backend="eager")
for step in range(3):
    x = torch.randn(5, 2) + rank
    loss = net(x).pow(2).mean()
    loss.backward()
    print(f"rank {rank} step {step} {loss.item():.4f} {share(x)[0, 0].item():.4f}")
dist.destroy_process_group()
"""
TWO = ("--standalone", "--nproc-per-node=2")


def test_streams_of_ranks_are_told_apart(tmp_path: Path) -> None:
    failed = b"Traceback (most recent call last)\nValueError: no\n"
    written = {0: b"waited for it\n", 1: failed, 2: failed.replace(b"no", b"later")}
    for rank, text in written.items():
        (tmp_path / f"rank-{rank:05}.stdout").write_bytes(b"%d\n" % rank)
        path = tmp_path / f"rank-{rank:05}.stderr"
        path.write_bytes(text)
        os.utime(path, ns=(rank, rank))
    assert read_stdout(tmp_path) == b"0\n1\n2\n"
    assert read_stderr(tmp_path).endswith(b"ValueError: no\n")
    separate_streams(tmp_path)  # This process is no rank: it keeps its own.
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize(
    ("status", "words"),
    [(1, "rank 1: Exited with status 1: ValueError: no"), (-9, "rank 1: Killed by SIGKILL.")],
)
def test_the_rank_that_failed_first_is_named(tmp_path: Path, status: int, words: str) -> None:
    (tmp_path / "rank-00001.stderr").write_bytes(
        b"Traceback (most recent call last):\n  File 'x'\nValueError: no\n"
    )
    said = f"""{"=" * 60}
Root Cause (first observed failure):
[0]:
  time      : 2025-01-01_00:00:00
  rank      : 1 (local_rank: 1)
  exitcode  : {status} (pid: 23)
"""
    assert why_a_rank_failed(tmp_path, said.encode()).rstrip(".") == words.rstrip(".")
    assert why_a_rank_failed(tmp_path, b"torchrun: no such option") == ""


def test_a_collective_is_noted(tmp_path: Path) -> None:
    assert read_collective(tmp_path) is None
    note_collective(tmp_path, 3)
    assert read_collective(tmp_path) == 3


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_rank_repeats_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(JOB)
    with Workbench(Target("torchrun", (*TWO, "job.py"))) as bench:
        probed = bench.probe(Version(), compiled=False)
        assert probed.exit_status == 0, probed.stderr
        assert {call["name"] for call in probed.calls} == {"DistributedDataParallel"}
        assert not any(call["left_out"] for call in probed.calls)
        assert probed.collective == ["share"]
        assert len(probed.record["trails"]["0"]) == len(probed.record["trails"]["1"]) == 3
        compiled = bench.probe(Version(), compiled=True, like=probed)
        assert compiled.exit_status == 0, compiled.stderr
        assert {r["mode"] for call in compiled.calls for r in call["replays"]} == {
            "eager",
            "compiled",
        }
        # The loss, as what is printed is rounded, is that of the undisturbed program.
        assert probed.stdout == compiled.stdout
        lines = probed.stdout.decode().splitlines()
        assert [line.split()[:4] for line in lines] == [
            ["rank", str(rank), "step", str(step)] for rank in (0, 1) for step in range(3)
        ]


# About 2 min.
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_recorded_job_is_fixed(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    _compilescope(tmp_path, "run", "-q", "--torchrun", *TWO, "job.py")
    run = json.loads(_compilescope(tmp_path, "list", "--json"))["runs"][0]["run"]
    told = json.loads(
        _compilescope(tmp_path, "fix", "--no-time", "--json", "--write", "--run", run)
    )
    assert told["verdict"] == "verified", told
    kept = {each["fix"] for each in told["fixes"] if each["kept"]}
    assert "where-for-if" in kept
    assert any("rank 0" in note for note in told["notes"])
    assert any("`share` works together with other ranks" in note for note in told["notes"])
    assert "torch.where(" in (tmp_path / "job.py").read_text()


def _compilescope(folder: Path, *words: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command: list[Any] = [sys.executable, "-m", "compilescope", words[0], "--dir", folder / "runs"]
    ended = subprocess.run(
        [*command, *words[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stdout
