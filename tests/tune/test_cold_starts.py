"""What is meant for compile time: starts with empty caches, and the lines that are handed out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builders import run_of
from compilescope.change.fixes.diffs import unified_diff
from compilescope.change.fixes.subject import Program
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.candidate import StepFacts, TunedProgram, all_candidates
from compilescope.change.tune.candidates.mega_cache import MEGA_CACHE, VARIABLE
from compilescope.change.tune.judge import judge_compile_time
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import TuneTrial
from compilescope.change.tune.search import tune
from compilescope.change.tune.step_place import loops_around
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.digest import digest

_CANDIDATE = next(each for each in all_candidates() if each.id == MEGA_CACHE)


@pytest.mark.parametrize(
    ("own", "verdict", "words"),
    [
        ([1.0, 1.1, 1.0, 1.05], "apart", "the file it loads has 2 MB"),
        ([9.9, 10.1, 10.0, 10.2], "rejected", "instead of 10.0 s"),
        ([2.0, 20.0, 7.0, 9.0], "unverified", "too noisy"),
        ([1.0, 1.1], "unverified", "too seldom"),
    ],
)
def test_the_interval_decides(own: list[float], verdict: str, words: str, tmp_path: Path) -> None:
    trial = TuneTrial((_CANDIDATE,), Version(), tmp_path, artifact_bytes=2_000_000)
    trial.own_starts_s, trial.base_starts_s = own, [10.0] * len(own)
    trial.compile_s, trial.base_compile_s = sorted(own)[len(own) // 2], 10.0
    judge_compile_time(trial)
    assert trial.verdict == verdict and words in trial.reason


_PROGRAM = """import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model)
for step in range(40):
    x = torch.randn(4, 8)
    loss = compiled(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
from torch._dynamo.utils import counters
print(counters["inductor"]["fxgraph_cache_miss"], counters["inductor"]["fxgraph_cache_hit"])
"""


@pytest.mark.torch
@pytest.mark.slow
def test_the_diff_is_applied_and_run(cxx: None, tmp_path: Path) -> None:
    """Each run begins with empty caches; the second finds what the first has saved."""
    if shutil.which("patch") is None:
        pytest.skip("there is no patch")
    file = tmp_path / "train.py"
    file.write_text(_PROGRAM)
    run = run_of()
    place = loops_around(str(file), _PROGRAM, 9)[0]
    facts = StepFacts(cache_artifacts=True)
    made = _CANDIDATE.propose(TunedProgram(Program(run, digest(run), str(file)), facts, place))
    diff = unified_diff({str(file): _PROGRAM}, dict(made.files), str(tmp_path))
    applied = subprocess.run(["patch", "-p1"], input=diff, text=True, cwd=tmp_path)
    assert applied.returncode == 0 and file.read_text() == made.files[str(file)]

    def ran(number: int) -> list[int]:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"caches-{number}")}
        env.pop(VARIABLE, None)
        command = [sys.executable, str(file)]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [int(each) for each in done.stdout.split()]

    missed, found = ran(1)
    assert missed and not found
    assert (tmp_path / "train.artifacts").stat().st_size
    assert ran(2) == [0, missed]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_whole_search(cxx: None, tmp_path: Path) -> None:
    """How much it saves is up to the machine; that it was measured, and of what, is not."""
    file = tmp_path / "train.py"
    file.write_text(_PROGRAM)
    options = TuneOptions(only=frozenset({MEGA_CACHE}))
    result = tune(Target("script", (str(file),)), options)
    (seen,) = result.attempts
    assert seen.verdict in ("apart", "rejected", "unverified")
    assert seen.numbers == "pass" and "instead of" in seen.reason
    assert seen.artifact_bytes and seen.compile_speedup and seen.compile_speedup_ci
    assert "+    torch.compiler.load_cache_artifacts(" in seen.diff
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]
