"""The numbers of a table of runs: those that the run's own report counts."""

from __future__ import annotations

import pytest

import samples
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.analysis.run_status import program_of, status_of
from compilescope.record.header import RunHeader

KINDS = {
    "later": "fix",
    "logged": "log",
    "models": "benchmark",
    "bench-hostile": "benchmark",
    "swept": "sweep",
    "badswept": "sweep",
    "hostile": "fix",
}


@pytest.mark.parametrize("name", samples.RUNS)
def test_they_are_those_of_the_digest(name: str) -> None:
    run = samples.RUNS[name]
    found, seen = figures(run), digest(run)
    assert found.kind == KINDS.get(name, "run")
    assert found.torch == (seen.torch or "")
    assert found.violations >= 0
    counted = [*seen.jobs, *seen.benchmarks]
    assert found.breaks == len(seen.sites) + sum(each.breaks or 0 for each in counted)
    assert found.breaks_hidden == seen.hidden_breaks_possible
    again = sum(frame.avoidable for frame in seen.recompiles)
    assert found.recompiles == again + sum(each.recompiles or 0 for each in counted)
    assert found.graphs == seen.graphs + sum(row.graphs or 0 for row in seen.benchmarks)
    assert found.eager == len(seen.eager_frames) + sum(job.eager or 0 for job in seen.jobs)
    assert found.failures == len(seen.failures) + sum(job.failures or 0 for job in seen.jobs)
    rows = sum(row.compile_seconds or 0 for row in seen.benchmarks)
    assert found.compile_seconds == pytest.approx(seen.compile_seconds + rows, abs=1e-3)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (("examples/tour.py", "--x", "1"), "examples/tour.py"),
        (("train.py",), "gpt/train.py"),
        (("../other/./train.py",), "other/train.py"),
        (("/abs/deep/down/train.py", "a"), "down/train.py"),
        (("-m", "pkg.train", "--x"), "python -m pkg.train"),
        (("-c", "print(1)"), "python -c"),
        (("pytest", "tests/test_model.py", "-q"), "pytest test_model.py"),
        (("pytest", "-q", "tests"), "pytest"),
        (("torchrun", "--nproc-per-node", "2", "ranks.py"), "torchrun gpt/ranks.py"),
        (("compilescope", "logs", "a/train.log"), "logs train.log"),
        (("compilescope", "diff", "race.py:build", "--x", "1"), "diff race.py:build"),
        (
            ("compilescope", "diff", "--test-backend", "b.py:f", "/a/race.py:build"),
            "diff race.py:build",
        ),
        (("compilescope", "diff", "--dir", "x", "race.py:build", "--json"), "diff race.py:build"),
        (("bench", "--model", "a", "--model", "b"), "bench a, b"),
        (("compilescope", "bench", "--all"), "bench"),
        (("sweep", "progs", "--jobs", "3"), "sweep progs"),
        (("sweep", "progs/"), "sweep progs"),
        (("sweep", "."), "sweep gpt"),
        ((), "Python session"),
    ],
)
def test_a_program_has_one_name(command: tuple[str, ...], program: str) -> None:
    header = RunHeader(run="a", tool="0", command=command, cwd="/home/ada/gpt")
    assert program_of(header) == program


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"exit_status": 0}, "ok"),
        ({"exit_status": 3}, "exit 3"),
        ({"signal": 9}, "SIGKILL"),
        ({"ended_ns": 1}, "ok"),
        ({}, "open"),
        ({"launcher_pid": 1, "host": "elsewhere"}, "cut short"),
    ],
)
def test_a_status_in_a_word(more: dict[str, int | str], status: str) -> None:
    assert status_of(RunHeader(run="a", tool="0", **more)) == status  # type: ignore[arg-type]
