"""Several ranks that step together: what goes between them and us, and whole searches."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.processes.channel import Channel
from compilescope.change.fixes.patch import Patch
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.ranks import RankHub, joined
from compilescope.change.tune.search import tune
from compilescope.change.tune.step_place import loops_around, marked
from compilescope.change.tune.step_process import StepFailed, StepProcess, settle
from compilescope.instrument.recorder.target import Target
from waiting import until

_LIMIT_S = 120.0


def _turn(ms: float, **more: Any) -> dict[str, Any]:
    return {"kind": "turn", "ms": ms, "steps": 5, "memory": 10, **more}


def test_a_step_is_the_slowest_ranks() -> None:
    told = joined({0: _turn(3.0, memory=7), 1: _turn(4.0)})
    assert told == _turn(4.0, memory=10)


def test_a_program_is_settled_when_all_ranks_are() -> None:
    ready = {"kind": "ready", "steps": 5, "steady_ms": 2.0, "compile_s": 1.0}
    assert joined({0: ready, 1: {"kind": "settling"}}) is None
    assert joined({0: ready, 1: {**ready, "compile_s": 9.0}}) == {**ready, "compile_s": 9.0}


def test_it_has_ended_when_one_rank_has() -> None:
    assert joined({0: _turn(3.0), 1: {"kind": "ended"}}) == {"kind": "ended"}


def test_a_loop_of_one_rank_is_no_step_of_all() -> None:
    facts: list[dict[str, Any]] = [{"trains": True}, {"trains": False}]
    one = {"kind": "counted", "rounds": [[60, 2.0], [9, 1.0]], "facts": facts, "ended": False}
    other = {**one, "rounds": [[58, 3.0], [0, 0.0]], "ended": True}
    told = joined({1: other, 0: one})
    assert told is not None and told["ended"]
    assert told["rounds"] == [(58, 3.0), (0, 1.0)]
    assert told["facts"] == [{"trains": True, "ranks": 2}, {"trains": False, "ranks": 2}]


class _Rank:
    """Says what a rank says."""

    def __init__(self, folder: Path, rank: int) -> None:
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(folder / "ranks"))
        self.channel = Channel(line)
        self.say(rank=rank, ranks=2)

    def say(self, **news: Any) -> None:
        self.channel.send(json.dumps(news).encode())

    def hear(self) -> Any:
        """None where the hub has closed the line."""
        heard = self.channel.receive(_LIMIT_S)
        assert heard is not None, "nothing was heard in time"
        return json.loads(heard) if heard else None


@pytest.fixture
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Channel, Any]]:
    """Our end, and two ranks."""
    monkeypatch.chdir(tmp_path)  # The path of a socket has to be short.
    monkeypatch.setattr("atexit.register", lambda *given: None)
    ours, theirs = Channel.pair()
    RankHub(theirs, Path()).start()
    with ours:
        yield ours, [_Rank(Path(), rank) for rank in range(2)]


def _heard(ours: Channel) -> Any:
    heard = ours.receive(_LIMIT_S)
    assert heard is not None, "nothing was heard in time"
    return json.loads(heard) if heard else None


def test_ranks_settle_and_step_together(meeting: tuple[Channel, list[_Rank]]) -> None:
    ours, (one, other) = meeting
    one.say(kind="ready", steady_ms=2.0)
    other.say(kind="settling")
    assert one.hear() == other.hear() == {"steps": 0}
    one.say(kind="ready", steady_ms=2.0)
    other.say(kind="ready", steady_ms=3.0)
    assert _heard(ours) == {"kind": "ready", "steady_ms": 3.0}
    for slow in (4.0, 5.0):
        ours.send(b'{"steps": 7}')
        assert one.hear() == other.hear() == {"steps": 7}
        one.say(**_turn(1.0))
        other.say(**_turn(slow))
        assert _heard(ours)["ms"] == slow


def test_a_rank_that_is_gone_is_the_end_of_all(meeting: tuple[Channel, list[_Rank]]) -> None:
    ours, (one, other) = meeting
    one.say(kind="ready")
    other.channel.close()
    assert _heard(ours) is None and one.hear() is None


def test_one_that_has_come_to_its_end_is_waited_for(meeting: tuple[Channel, list[_Rank]]) -> None:
    ours, (one, other) = meeting
    one.say(kind="ended")
    one.channel.close()
    assert ours.receive(0.2) is None
    other.say(**_turn(1.0))
    assert _heard(ours) == {"kind": "ended"}
    assert other.hear() is None  # It waited for more.


def test_who_waits_within_a_step_is_asked_what_it_counted(
    meeting: tuple[Channel, list[_Rank]],
) -> None:
    ours, (one, other) = meeting
    told = {"kind": "counted", "rounds": [[40, 1.0]], "facts": [{}], "ended": False}
    one.say(**told)
    assert other.hear() == {}
    other.say(**told)
    assert _heard(ours)["rounds"] == [[40, 1.0]]


@pytest.mark.parametrize(
    ("words", "machines"),
    [
        (("train.py",), "1"),
        (("--nnodes", "1", "train.py"), "1"),
        (("--nnodes=1:1", "train.py"), "1"),
        (("--nnodes=2", "--node-rank", "0", "train.py"), "2"),
        (("--nnodes", "1:4", "train.py"), "4"),
        (("--standalone", "train.py", "--nnodes=2"), "1"),
    ],
)
def test_on_how_many_machines(
    words: tuple[str, ...], machines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PET_NNODES", raising=False)
    assert Target("torchrun", words).machines == machines
    assert Target("script", ("train.py", *words)).machines == "1"


# With real ranks.

_PROGRAM = """import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(16, 16)
        self.two = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.two(self.one(x).relu())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    Path(f"pid-{rank}").write_text(str(os.getpid()))
    torch.manual_seed(0)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager")
    torch.manual_seed(rank)
    for step in range(120):
        x = torch.randn(8, 16)
        if rank == 1:
            time.sleep(0.04)  # slow
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
"""
_TWO = ("--nproc-per-node", "2", "train.py")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM)
    return path


def _replacing(name: str, new: str, **kind: Any) -> TuneCandidate:
    def propose(tuned: TunedProgram) -> Patch:
        text = tuned.program.text(tuned.program.main)
        return Patch({tuned.program.main: text.replace("time.sleep(0.04)  # slow", new)})

    return TuneCandidate(id=name, title=name, price="", propose=propose, **kind)


# About 5 min.
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_ranks_step_is_everybodys(program: Path) -> None:
    """`test_judging` has the verdicts of times: a busy machine may hide that a step is faster."""
    candidates = (
        _replacing("quick", "pass"),
        _replacing("wrong", "x = x * 1.01"),
        _replacing("crash", "raise ValueError('planted')"),
        _replacing("starts", "time.sleep(0.04)", for_compile_time=True),
    )
    result = tune(Target("torchrun", _TWO), TuneOptions(jobs=3), candidates)
    found = {each.candidate: each for each in result.attempts}
    assert result.outcome.step == "train.py:31"
    assert any("2 ranks step together" in note for note in result.outcome.notes)
    assert result.outcome.before_ms is not None and result.outcome.before_ms > 40
    assert found["crash"].verdict == "rejected", found
    assert "rank 1" in found["crash"].reason and "planted" in found["crash"].reason
    assert found["wrong"].verdict != "verified" and found["wrong"].numbers in ("fail", "")
    if found["wrong"].numbers:
        assert "on rank" in found["wrong"].numbers_reason
    assert found["quick"].verdict in ("verified", "unverified"), found
    starts = found["starts"]
    assert starts.compile_speedup is not None or "slower" in starts.reason, starts
    if found["quick"].numbers:
        assert found["quick"].numbers == "pass" and "float64" in found["quick"].numbers_reason


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_versions_step_by_turns_and_nothing_goes_on(program: Path, tmp_path: Path) -> None:
    """Each has ranks of its own, which meet at a port of their own."""
    place = loops_around(str(program), _PROGRAM, 34)[0]
    text = marked(_PROGRAM, [place])
    # A process that the program starts has no line to us, and runs as it does by itself.
    child = "    subprocess.run([sys.executable, '-c', 'import torch'], check=True)\n"
    versions = [text, text.replace("    torch.manual_seed(0)\n", child, 1)]
    with TuneOptions().workbench(Target("torchrun", _TWO)) as bench:
        settled = []
        for number, version in enumerate(versions):
            folder = tmp_path / f"caches-{number}"
            folder.mkdir()
            texts = {str(program): version.replace("pid-", f"pid-{number}-")}
            settled.append(settle(StepProcess(bench, Version(texts), "turns", folder)))
        pids = [int(path.read_text()) for path in sorted(tmp_path.glob("pid-*"))]
        assert len(pids) == 4
        for _ in range(2):
            for each in settled:
                taken = each.take_turn(3)
                assert taken is not None and taken > 40
        assert sorted(each.name for each in (tmp_path / "caches-0").glob("rank-*/step-*.pt")) == [
            *["step-1.pt"] * 2,
            *["step-2.pt"] * 2,
        ]
        assert settled[0].take_turn(1000) is None and settled[0].over
        for each in settled:
            each.process.close()
    until(lambda: not any(_runs(pid) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("raise ValueError('planted')", "planted"),
        ("os.kill(os.getpid(), 9)", "Killed by SIGKILL"),
    ],
)
def test_a_rank_that_dies_is_named(program: Path, tmp_path: Path, change: str, words: str) -> None:
    place = loops_around(str(program), _PROGRAM, 34)[0]
    text = marked(_PROGRAM, [place]).replace("time.sleep(0.04)", f"if step > 3: {change}")
    with (
        TuneOptions().workbench(Target("torchrun", _TWO)) as bench,
        StepProcess(bench, Version({str(program): text}), "turns", tmp_path) as process,
        pytest.raises(StepFailed, match=f"^rank 1: .*{words}"),
    ):
        settle(process)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_goes_on_after_ctrl_c(program: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compilescope", "tune", "--dir", str(tmp_path / "runs")]
    command += ["--torchrun", *_TWO]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    until(lambda: (tmp_path / "pid-1").exists())
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    pids = [int(path.read_text()) for path in tmp_path.glob("pid-*")]
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert not any(_runs(pid) for pid in pids)
