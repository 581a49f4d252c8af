"""The command `verify` on outcomes made by hand: what it says, what it writes, how it ends."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.change.repair.verification import run
from compilescope.change.repair.verification.run import VerifiedChange
from compilescope.knowledge.findings.finding import WordedFinding
from compilescope.record.fix_search import (
    ChangedCause,
    ChangeOutcome,
    CountedTwice,
    FixCheck,
    Spread,
    Timed,
    Times,
)

PROGRAM = "print(1)\n"
DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print(1)\n+print(2)\n"


def _outcome(**more: Any) -> ChangeOutcome:
    fields: dict[str, Any] = {
        "verdict": "verified",
        "name": "fixed.py",
        "before_name": "train.py",
        "after_name": "fixed.py",
        "compared": ("`step`: 2 recorded calls, eager and compiled",),
        "not_compared": ("Changed lines that did not run: train.py:8.",),
        "inputs": ("the recorded inputs", "all values 0"),
        "counts": (CountedTwice("breaks", (2, 2), (0, 0)),),
        "share": (0.5, 0.0),
        "times": Times(
            Timed(steady=Spread(0.002, 0.0019, 0.0021, 3)),
            Timed(steady=Spread(0.001, 0.0009, 0.0011, 3)),
        ),
    }
    return ChangeOutcome(**{**fields, **more})


class _Comparison:
    """Stands in for the comparison: it is slow, and tested by itself."""

    def __init__(self) -> None:
        self.found = VerifiedChange(_outcome(), "abc-train")
        self.asked: list[Any] = []

    def __call__(
        self, target: Any, pair: Any, options: Any, *, timed: bool, behavior: bool = True
    ) -> VerifiedChange:
        self.asked.append((target, pair, options, timed))
        return self.found


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> _Comparison:
    comparison = _Comparison()
    monkeypatch.setattr(run, "verify_change", comparison)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return comparison


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "fixed.py").write_text(PROGRAM.replace("1", "2"))
    (tmp_path / "change.diff").write_text(DIFF)
    return tmp_path


def _verify(*words: str) -> object:
    return group(["verify", *words], standalone_mode=False)


def test_what_a_verified_change_is_told_as(
    found: _Comparison, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _verify("train.py", "--epochs", "3", "--against", "fixed.py", "--no-time") == 0
    told = " ".join(capsys.readouterr().out.split())
    first = "VERIFIED: the same results and output; graph breaks 2 -> 0, a warm call 2"
    assert first in told
    assert "graph breaks" in told and "faster" in told
    assert "Changed lines that did not run: train.py:8." in told
    target, pair, _, timed = found.asked[0]
    assert target.words == ("train.py", "--epochs", "3")
    assert list(pair.after.files) == [str(folder / "train.py")]
    assert not timed


@pytest.mark.parametrize(
    ("verdict", "code"), [("verified", 0), ("changed", 1), ("worse", 1), ("unknown", 2)]
)
def test_exit_status_and_json(
    found: _Comparison,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    verdict: Any,
    code: int,
) -> None:
    found.found = VerifiedChange(_outcome(verdict=verdict, reason="why"), "abc-train")
    assert _verify("train.py", "--patch", "change.diff", "--json") == code
    value = json.loads(capsys.readouterr().out)
    assert value["exit_code"] == code
    assert value["verdict"] == verdict
    assert value["run"] == "abc-train"
    assert value["counts"] == [{"name": "breaks", "before": [2, 2], "after": [0, 0]}]
    assert set(value) >= {"checks", "compared", "not_compared", "share", "times", "new", "gone"}


def test_new_causes_as_markdown_and_sarif(
    found: _Comparison, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cause = WordedFinding(
        kind="break",
        rule_id="GB0170",
        title="Data-dependent branching",
        message="a branch",
        level="warning",
        fingerprint="abc",
        file=str(folder / "train.py"),
        line=1,
    )
    new = (ChangedCause(kind="break", title=cause.title, file=cause.file, line=1, rule="GB0170"),)
    worse = _outcome(
        verdict="worse",
        reason="a new graph break at train.py:1",
        new=new,
        checks=(FixCheck("share", "fail", "more runs eagerly"),),
    )
    found.found = VerifiedChange(worse, "abc-train", (cause,), (cause.file,))
    assert _verify("train.py", "--against", "fixed.py", "--format", "md") == 1
    told = capsys.readouterr().out
    assert "WORSE" in told and "New causes" in told and "train.py:1" in told
    assert _verify("--output", "x.sarif", "train.py", "--against", "fixed.py") == 1
    log = json.loads((folder / "x.sarif").read_text())
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == ["GB0170"]


def test_a_changed_program_is_a_result_for_scanners(found: _Comparison, folder: Path) -> None:
    outcome = _outcome(verdict="changed", reason="`step` on all values 0: output differs")
    found.found = VerifiedChange(outcome, "abc", files=(str(folder / "train.py"),))
    assert _verify("--output", "x.sarif", "train.py", "--against", "fixed.py") == 1
    (result,) = json.loads((folder / "x.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "verify/changed"
    assert "output differs" in result["message"]["text"]


def test_a_patch_comes_from_a_pipe(
    found: _Comparison, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = folder / "piped"
    piped.write_text(DIFF)
    with piped.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert _verify("train.py", "--patch", "-") == 0
    assert list(found.asked[0][1].after.files.values()) == ["print(2)\n"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.py",), "Give one of --against FILE, --patch DIFF and --git REV"),
        (("train.py", "--against", "fixed.py", "--git", "HEAD"), "not several"),
        (("train.py", "--against", "none.py"), "There is no file none.py"),
        (("train.py", "--patch", "none.diff"), "Cannot read none.diff"),
        (("train.py", "--patch", "train.py"), "holds no unified diff"),
        (("none.py", "--against", "fixed.py"), "There is no file none.py"),
        (("--against", "fixed.py"), "No program given"),
        (("--against", "fixed.py", "-c", "print(1)"), "needs a program in a file"),
        (("train.py", "--git", "HEAD"), "is not in a git repository"),
        (("train.py", "--against", "fixed.py", "--json", "--format", "md"), "not both"),
        (("--output", "x.html", "train.py", "--against", "fixed.py"), "writes no HTML"),
        (("train.py", "--against", "fixed.py", "--backend"), None),
    ],
)
def test_what_is_refused(
    found: _Comparison, folder: Path, words: tuple[str, ...], said: str | None
) -> None:
    if said is None:
        assert _verify(*words) == 0  # It belongs to the program.
        return
    with pytest.raises(ToolError) as raised:
        _verify(*words)
    assert said in raised.value.message
    assert not found.asked


def test_nothing_to_compare(folder: Path) -> None:
    (folder / "same.py").write_text(PROGRAM)
    with pytest.raises(ToolError, match="changes nothing"):
        _verify("train.py", "--against", "same.py")


@pytest.fixture
def repository(folder: Path) -> Path:
    who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "train.py"], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    (folder / "train.py").write_text(PROGRAM.replace("1", "3"))
    return folder


def test_check_compares_the_working_tree_with_a_commit(
    found: _Comparison, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found.found = VerifiedChange(_outcome(behavior=False), "abc-train")
    words = ["check", "train.py", "--epochs", "2", "--git", "HEAD"]
    assert group(words, standalone_mode=False) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "PASS: no new cause, and no slower call; graph breaks 2 -> 0" in told
    target, pair, _, timed = found.asked[0]
    assert target.words == ("train.py", "--epochs", "2")
    assert list(pair.before.files.values()) == [PROGRAM]
    assert timed
    worse = _outcome(behavior=False, verdict="worse", reason="a new graph break at train.py:1")
    found.found = VerifiedChange(worse, "abc-train")
    assert group([*words, "--format", "md"], standalone_mode=False) == 1
    assert "**FAIL**: a new graph break at train.py:1." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--git", "HEAD", "--max-breaks", "0"), "Use --git or --max-breaks, not both"),
        (("--git", "HEAD", "--strict"), "Use --git or --strict, not both"),
        (("--format", "md"), "--format needs --git"),
    ],
)
def test_what_check_refuses_beside_a_commit(
    found: _Comparison, repository: Path, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ToolError) as raised:
        group(["check", *words, "train.py"], standalone_mode=False)
    assert said in raised.value.message
