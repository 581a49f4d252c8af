"""The command `tune` on outcomes made by hand: what it says, what it writes, how it ends."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.change.tune import search
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import TuneResult
from compilescope.change.tune.search import tune as _tune
from compilescope.instrument.recorder.target import Target
from compilescope.record.outcomes import TuneAttempt, TuneOutcome

OLD = "import torch\n\nmodel = torch.compile(torch.nn.Linear(2, 2))\n"
NEW = OLD.replace("2))", '2), mode="reduce-overhead")')
_KEYS = ["step", "before_ms", "after_ms", "speedup", "speedup_ci", "candidates"]
_KEYS += ["placements", "notes", "diff"]
_CANDIDATE_KEYS = ["id", "verdict", "speedup", "speedup_ci", "numbers", "memory_bytes"]
_CANDIDATE_KEYS += [
    "compile_seconds",
    "compile_speedup",
    "compile_speedup_ci",
    "artifact_bytes",
    "needs_seconds",
    "diff",
    "reason",
]


class _Tune:
    """Stands in for the search: it is slow, and tested by itself."""

    def __init__(self) -> None:
        self.result = TuneResult(
            TuneOutcome("train.py:5", "unverified", "no candidate applies"), ()
        )
        self.asked: list[tuple[Any, TuneOptions]] = []

    def __call__(self, target: Any, options: TuneOptions) -> TuneResult:
        self.asked.append((target, options))
        return self.result


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> _Tune:
    made = _Tune()
    monkeypatch.setattr(search, "tune", made)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OLD)
    return tmp_path


def _run(*words: str) -> object:
    return group(["tune", *words], standalone_mode=False)


def _faster(folder: Path, **fields: Any) -> TuneResult:
    file = str(folder / "train.py")
    outcome = TuneOutcome(
        "train.py:5",
        "verified",
        before_ms=17.0,
        after_ms=9.4,
        speedup=1.8,
        speedup_ci=(1.75, 1.86),
        memory_bytes=2_100_000_000,
        compile_seconds=40.0,
        pays_after=5263,
        diff="-old\n+new\n",
    )
    attempts = (
        TuneAttempt(
            "reduce-overhead", "graphs", "verified", speedup=1.8, numbers="pass", kept=True
        ),
        TuneAttempt("freezing", "constants", "refused", "the step trains"),
    )
    return TuneResult(outcome, attempts, {file: NEW}, {file: OLD}, **fields)


def test_json_has_exactly_the_keys_that_are_documented(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found.result = _faster(folder)
    assert _run("--json", "train.py") == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == _KEYS
    assert [list(each) for each in told["candidates"]] == [_CANDIDATE_KEYS] * 2
    assert told["candidates"][1]["numbers"] is None
    assert told["speedup_ci"] == [1.75, 1.86] and told["diff"] == "-old\n+new\n"


def test_json_of_a_script_carries_its_proof(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("--json", "--script", "train.py") == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told) == [*_KEYS, "script", "script_proof"]
    assert told["script"] is None and told["script_proof"] is None


def test_the_price_is_part_of_the_sentence(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found.result = _faster(folder)
    assert _run("train.py") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1.80x faster a step (1.75 to 1.86): 17.00 ms -> 9.40 ms" in said
    assert "+2.1 GB, +40 s to compile: pays after 5,263 steps." in said
    assert "refused: the step trains." in said
    assert (folder / "train.py").read_text() == OLD


def test_nothing_faster_is_status_1_and_writes_nothing(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("--write", "--force", "train.py") == 1
    assert "No file was changed." in capsys.readouterr().out
    assert (folder / "train.py").read_text() == OLD


def test_write_changes_the_file(found: _Tune, folder: Path) -> None:
    found.result = _faster(folder)
    assert _run("train.py", "--write") == 0
    assert (folder / "train.py").read_text() == NEW


def test_write_in_a_repository_with_changes_is_refused_before_anything_runs(
    found: _Tune, folder: Path
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    with pytest.raises(ToolError, match="Nothing was written"):
        _run("--write", "train.py")
    assert not found.asked


def test_a_stopped_search_shows_what_it_has_and_changes_nothing(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found.result = _faster(folder, interrupted=True)
    assert _run("--write", "train.py") == 130
    assert "1.80x faster" in capsys.readouterr().out
    assert (folder / "train.py").read_text() == OLD


def test_options_reach_the_search_and_the_rest_is_the_programs(found: _Tune, folder: Path) -> None:
    _run(
        "--budget",
        "2m",
        "--step",
        "train.py:main",
        "train.py",
        "--only",
        "freezing",
        "--steps",
        "3",
    )
    target, options = found.asked[0]
    assert target.words == ("train.py", "--steps", "3")
    assert options.only == {"freezing"} and options.step == "train.py:main"
    assert options.budget_s == 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "No program given"),
        (("nothing.py",), "There is no file nothing.py"),
        (("--only", "magic", "train.py"), "No candidate is named magic"),
        (("--step", "train.py", "train.py"), "does not name a function"),
        (("--write", "--script", "train.py"), "not both"),
        (("--write", "--output", "x.py", "train.py"), "--write or --output"),
        (("--budget", "soon", "train.py"), "not a duration"),
        (("--backend", "eager", "train.py"), "--backend needs"),
        (("broken.py",), "not valid Python"),
        (("--script", "--torchrun", "train.py"), "cannot be used with --torchrun"),
        (("--torchrun",), "No program given"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], said: str, found: _Tune, folder: Path
) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    with pytest.raises(ToolError, match=said):
        _run(*words)
    assert not found.asked


@pytest.mark.parametrize("start", [("--torchrun",), ("-m", "torch.distributed.run")])
def test_ranks_are_started_by_torchrun(
    start: tuple[str, ...], found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found.result = _faster(folder)
    assert _run(*start, "--nproc-per-node", "2", "train.py", "--only", "freezing") == 0
    target, options = found.asked[0]
    assert target == Target("torchrun", ("--nproc-per-node", "2", "train.py"))
    assert options.only == {"freezing"}
    again = "tune --write --only reduce-overhead --torchrun --nproc-per-node 2 train.py"
    assert again in capsys.readouterr().out


def test_within_torchrun_each_rank_would_start_ranks(
    found: _Tune, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(ToolError, match="starts the ranks itself"):
        _run("train.py")


def test_ranks_on_several_machines_are_refused(folder: Path) -> None:
    with pytest.raises(ToolError, match="on this machine"):
        _tune(Target("torchrun", ("--nnodes=2", "train.py")), TuneOptions())


def test_what_needs_longer_is_tried_alone_with_time_enough(
    found: _Tune, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = TuneAttempt("max-autotune", "kernels", "unverified", needs_seconds=310.0)
    quick = TuneAttempt("freezing", "constants", "unverified", needs_seconds=31.0)
    found.result = replace(found.result, attempts=(slow, quick))
    assert _run("--budget", "9m", "--step", "train.py:main", "train.py", "--steps", "3") == 1
    said = capsys.readouterr().out
    words = "--step train.py:main train.py --steps 3"
    assert f"compilescope tune --limit 21m --only max-autotune {words}\n" in said
    assert f"compilescope tune --only freezing {words}\n" in said


def test_the_list_needs_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--list", "--json") == 0
    names = [each["id"] for each in json.loads(capsys.readouterr().out)["candidates"]]
    assert "reduce-overhead" in names and len(set(names)) == len(names) >= 15
