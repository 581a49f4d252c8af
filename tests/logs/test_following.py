"""Logs that still grow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.knowledge.analysis.digest import digest
from compilescope.logs import growing_logs
from compilescope.logs.growing_logs import Follower, is_written
from compilescope.record.run import read_run
from logs.traces import golden
from waiting import until


def test_each_look_reads_what_is_new(tmp_path: Path) -> None:
    data, log = golden("eager"), tmp_path / "trace.log"
    log.write_bytes(b"")
    follower = Follower([str(log)], tmp_path / "run")
    counts = []
    with log.open("ab", buffering=0) as file:
        for at in range(0, len(data), len(data) // 5 + 1):
            file.write(data[at : at + len(data) // 5 + 1])
            assert follower.poll()
            assert not follower.poll()
            run = read_run(tmp_path / "run")
            assert run.live
            counts.append(digest(run).graphs)
        assert not follower.ended()
    read = follower.finish()
    assert counts == sorted(counts)
    assert counts[0] < 8
    assert read.sources[0].unread == 0
    seen = digest(read_run(read.path))
    assert (seen.graphs, seen.live, seen.cut_short) == (8, False, False)


def test_files_that_come_later_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    follower = Follower([str(folder)], tmp_path / "run")
    assert not follower.poll()
    for rank in range(2):
        name = f"dedicated_log_torch_trace_rank_{rank}_x.log"
        (folder / name).write_bytes(golden("eager"))
        assert follower.poll()
    follower.finish()
    assert {p.rank for p in digest(read_run(tmp_path / "run")).processes} == {0, 1}


def test_it_ends_with_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_logs, "_QUIET_S", 0.0)
    log = tmp_path / "trace.log"
    with log.open("wb") as file:
        file.write(golden("eager"))
        file.flush()
        if is_written(str(log)) is None:
            pytest.skip("this machine does not tell who writes a file")
        follower = Follower([str(log)], tmp_path / "run")
        follower.poll()
        assert not follower.ended()
    assert follower.ended()
    follower.finish()


def _graphs(run: Path) -> int:
    return digest(read_run(run)).graphs if (run / "run.json").exists() else 0


def test_ctrl_c_leaves_a_whole_run(tmp_path: Path) -> None:
    log = tmp_path / "trace.log"
    log.write_bytes(golden("eager"))
    with log.open("ab"):
        command = [sys.executable, "-m", "compilescope", "logs", str(log), "--follow"]
        process = subprocess.Popen(
            [*command, "-o", str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: _graphs(tmp_path / "run") == 8 or process.poll() is not None)
        os.kill(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert "8 graphs" in out
    assert digest(read_run(tmp_path / "run")).graphs == 8
