"""The command `fix` on outcomes made by hand: what it says, what it writes, how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.change.repair.search import rounds
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.outcome import SearchResult
from compilescope.record.fix_search import FixCheck, FixLeft, Spread, Timed, Times
from repair.delivery.outcomes import attempt, outcome, totals

OLD = "import torch\n\n\ndef f(x):\n    print(x)\n    return x\n"
NEW = "import torch\n\n\ndef f(x):\n    return x\n"


class _Search:
    """Stands in for the search: it is slow, and tested by itself."""

    def __init__(self) -> None:
        self.outcome: SearchResult = outcome()
        self.asked: list[tuple[Any, SearchOptions]] = []

    def __call__(self, target: Any, options: SearchOptions) -> SearchResult:
        self.asked.append((target, options))
        options.progress("trying", 1, 2)
        return self.outcome


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> _Search:
    search = _Search()
    monkeypatch.setattr(rounds, "search", search)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return search


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OLD)
    return tmp_path


def _fix(*words: str) -> object:
    return group(["fix", *words], standalone_mode=False)


def _fixed(folder: Path, **fields: Any) -> SearchResult:
    """One verified fix of train.py."""
    file = str(folder / "train.py")
    made = attempt(file=file, line=5)
    known = {"files": {file: NEW}, "originals": {file: OLD}}
    return outcome(made, **{**known, **fields})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "No program given"),
        (("nope.py",), "There is no file nope.py"),
        (("broken.py",), "broken.py is not valid Python: invalid syntax on line 1"),
        (("empty.py",), "empty.py is empty"),
        (("binary.py",), "not valid Python"),
        (("folder",), "a folder without __main__.py"),
        (("-m", "no.such.module"), "There is no module named no.such.module"),
        (("-c", "x = ("), "The -c code is not valid Python"),
        (("--pytest", "x"), "fix takes a script"),
        (("--run", "nope"), "nope"),
        (("train.py", "--site", "here:there"), "does not name a line"),
        (("train.py", "--rule", "nope"), "No fix is named nope"),
        (("train.py", "--write", "--script"), "not both"),
        (("--script", "--torchrun", "train.py"), "--script cannot be used with --torchrun"),
        (("--write", "--output", "x.py", "train.py"), "--write or --output"),
        (("train.py", "--force"), "--force needs"),
        (("--backend", "eager", "train.py"), "--backend needs"),
        (("--script", "--output", "no/such/x.py", "train.py"), "does not exist"),
        (("--script", "--output", "folder", "train.py"), "it is a folder"),
        (("--script", "--output", "train.py", "train.py"), "is the program itself"),
        (("--script", "--output", "empty.py", "train.py"), "compilescope did not write it"),
    ],
)
def test_what_it_refuses(folder: Path, found: _Search, words: tuple[str, ...], says: str) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "empty.py").write_text("\n\n")
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")
    (folder / "folder").mkdir()
    with pytest.raises(ToolError) as error:
        _fix(*words)
    assert says in error.value.message and "\n" not in error.value.message
    assert error.value.exit_code == 2 and not found.asked


def test_the_wishes_reach_the_search(folder: Path, found: _Search) -> None:
    found.outcome = outcome(before=totals(), after=totals())
    _fix("--limit", "7", "--compile-all", "train.py", "--steps", "3", "--safe-only", "--no-time")
    target, options = found.asked[0]
    assert target.words == ("train.py", "--steps", "3")
    assert (options.limit_s, options.safe_only, options.timed) == (7.0, True, False)
    assert options.compile_names == ("*",) and options.stdin == b"" and not options.own_only


def test_what_is_piped_is_given_to_the_program(folder: Path) -> None:
    code = (
        "import sys; from compilescope.apps.cli.commands.fix.options import read_stdin;"
        "sys.stdout.buffer.write(read_stdin())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"a\xff\n", capture_output=True)
    assert done.stdout == b"a\xff\n"
    closed = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (closed.stdout, closed.stderr) == (b"", b"")


def test_what_it_tells(folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]) -> None:
    times = Times(
        Timed(Spread(0.001, 0.0009, 0.0011, 3), None, Spread(2.0, 1.9, 2.1, 3)),
        Timed(Spread(0.002, 0.0019, 0.0021, 3), None, Spread(2.0, 1.9, 2.1, 3)),
    )
    rejected = attempt(
        rule="tensor-if",
        file="/x/site-packages/transformers/models/grounding_dino/modeling_grounding_dino.py",
        line=1512,
        fingerprint="beef",
        verdict="rejected",
        kept=False,
        reason="the outputs differ where the branch is not taken",
        title="torch.where instead of if",
        source="if mask.any():",
        refused=(("cond-for-if", "the two sides give other shapes"),),
    )
    made = _fixed(
        folder, times=times, left=(FixLeft("/x/site-packages/a/b.py:3", "no fix is known"),)
    )
    stated = attempt(
        file=str(folder / "train.py"), states="Nothing is printed.", safe=False, line=5
    )
    found.outcome = replace(made, attempts=(stated, rejected))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert _fix("train.py", "--lr", "0.1") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80 and "\x1b" not in out
    for words in (
        "1 fix verified: graph breaks 2 -> 1.",
        "train.py:5",
        "2 -> 1",
        "Nothing is printed.",
        "The outputs differ where the branch is not taken.",
        "cond-for-if: the two sides give other shapes",
        "--- a/train.py\n+++ b/train.py\n",
        "-    print(x)",
        "100% slower",
        "A warm call: 1.0 ms -> 2.0 ms, 100% slower.",
        "no clear difference",
        "a/b.py:3 No fix is known.",
        "compilescope fix --write train.py --lr 0.1",
    ):
        assert words in out, out
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_terminal_gets_two_screens_and_a_file_of_the_rest(
    folder: Path, found: _Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    rejected = [
        attempt(
            file=str(folder / "train.py"),
            line=number,
            fingerprint=f"beef{number}",
            verdict="rejected",
            kept=False,
            fix=f"way-{number}",
            title=f"way {number}",
            source=f"print({number})",
            reason=f"the outputs of line {number} differ",
        )
        for number in range(1, 30)
    ]
    found.outcome = replace(_fixed(folder), attempts=tuple(rejected))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    assert _fix("train.py") == 1  # Nothing was verified.
    shown = screen.getvalue()
    assert shown.count("\n") <= 48
    (kept,) = tmp_path.glob("compilescope-fix-*.txt")
    assert f"less {kept}" in shown
    assert "The outputs of line 29 differ" in kept.read_text(encoding="utf-8")


def test_a_version_that_crashed_shows_no_counts(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    crashed = attempt(
        file=str(folder / "train.py"),
        verdict="rejected",
        kept=False,
        breaks_after=None,
        recompiles_after=None,
        reason="it crashes: NameError: name 'torch' is not defined; and more",
        checks=(FixCheck("exit", "fail", "it crashes: NameError: name 'torch' is not defined"),),
    )
    found.outcome = replace(_fixed(folder), attempts=(crashed,), files={}, verdict="unverified")
    assert _fix("train.py") == 1
    out = capsys.readouterr().out
    assert "crashes" in out and "->" not in out
    words = " ".join(out.split())
    assert "It crashes: NameError: name 'torch' is not defined." in words
    assert "and more" not in words


def test_one_edit_for_several_causes_is_one_row(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(folder / "train.py")
    same = [attempt(file=file, line=line, fingerprint=str(line), diff="d") for line in range(1, 7)]
    other = attempt(file=file, line=9, fingerprint="9", diff="another", rule="tensor-if")
    found.outcome = replace(_fixed(folder), attempts=(*same, other))
    _fix("train.py")
    out = capsys.readouterr().out
    assert "2 fixes verified" in out and out.count(" verified ") == 2
    assert "train.py:4\n" in out and "train.py:5" not in out and "and 2 more" in out
    assert "tensor-if" in out and "train.py:9" in out


def test_lines_of_a_diff_stay_whole(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "value = " + " + ".join(f"number_{n}" for n in range(30))
    file = str(folder / "train.py")
    found.outcome = _fixed(folder, files={file: f"{NEW}{long}\n"})
    _fix("train.py")
    assert f"+{long}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("2m", 120), ("1h", 3600), ("1m30s", 90)]
)
def test_the_budget_is_read(folder: Path, found: _Search, text: str, seconds: float) -> None:
    found.outcome = outcome(before=totals(), after=totals())
    _fix("--budget", text, "train.py")
    assert found.asked[0][1].budget_s == seconds


@pytest.mark.parametrize("text", ["0", "soon", "-3", "2 weeks", "m", "1e3"])
def test_what_is_no_budget(folder: Path, found: _Search, text: str) -> None:
    with pytest.raises(ToolError, match="is not a duration"):
        _fix("--budget", text, "train.py")
    assert not found.asked


def test_its_json(folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]) -> None:
    found.outcome = _fixed(folder)
    assert _fix("train.py", "--json") == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["breaks_before"], value["breaks_after"]) == (2, 1)
    assert (value["recompiles_before"], value["recompiles_after"]) == (0, 0)
    (fix,) = value["fixes"]
    names = ("rule", "line", "verdict", "reason", "safe", "states")
    assert [fix[name] for name in names] == ["print-call", 5, "verified", "", True, ""]
    assert fix["file"] == str(folder / "train.py")
    assert value["diff"].startswith("--- a/train.py\n+++ b/train.py\n@@")
    assert value["script"] is None and value["written"] == [] and value["exit_code"] == 0
    patched = subprocess.run(["patch", "-p1", "-s"], input=value["diff"], text=True, cwd=folder)
    assert patched.returncode == 0 and (folder / "train.py").read_text() == NEW


def test_an_attempt_keeps_its_keys(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that version 0.1 printed, and what the verdict rests on (`inputs`, `notes`,
    `uncovered`, and of a model's patch `by` and `compared`); `kind` is the finding's, though the
    record is an event."""
    found.outcome = _fixed(folder)
    assert _fix("train.py", "--json") == 0
    (printed, *_) = json.loads(capsys.readouterr().out)["fixes"]
    assert printed["kind"] == "break"
    assert sorted(printed) == sorted(
        [
            *("because", "breaks_after", "breaks_before", "by", "cause", "checks", "compared"),
            *("diff", "file"),
            *("fingerprint", "fix", "function", "inputs", "kept", "kind", "line", "notes", "own"),
            *("reason", "recompiles_after", "recompiles_before", "refused", "round", "rule"),
            *("safe", "source", "states", "times", "title", "uncovered", "unneeded"),
            "verdict",
        ]
    )


def test_how_it_ends(folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = outcome(before=totals(), after=totals())
    kept, lost = attempt(), attempt(fingerprint="beef", kept=False, verdict="rejected")
    for made, words, code in (
        (nothing, (), 0),
        (replace(nothing, notes=("The program itself ends with status 1: oh.",)), (), 2),
        (outcome(notes=("The program itself ends with status 1: oh.",)), (), 2),
        (outcome(notes=("It fails.",)), ("--rule", "print-call"), 2),
        (outcome(notes=("It fails.",)), ("--site", "train.py:1"), 2),
        (outcome(kept, lost), (), 0),
        (outcome(kept, lost), ("--rule", "print-call"), 1),
        (outcome(kept), ("--rule", "print-call"), 0),
        (outcome(lost), (), 1),
        (outcome(), ("--rule", "print-call"), 0),
    ):
        found.outcome = made
        assert _fix("train.py", *words) == code, made
        assert capsys.readouterr().out
    found.outcome = outcome(left=(FixLeft("train.py:5", "x"),))
    with pytest.raises(ToolError, match="Nothing to fix at train") as error:
        _fix("train.py", "--site", "train.py:9")
    assert "train.py:5" in error.value.hint
    found.outcome = outcome(before=totals(graphs=0), after=totals(graphs=0))
    with pytest.raises(ToolError, match="compiled nothing") as error:
        _fix("train.py")
    assert "--compile-all" in error.value.hint


def test_the_repertoire(capsys: pytest.CaptureFixture[str]) -> None:
    assert _fix("--list") == 0
    assert "compilescope fix --list --all" in capsys.readouterr().out
    assert _fix("--list", "--all") == 0
    out = capsys.readouterr().out
    assert "print-while-eager" in out and "print-call" in out
    assert _fix("--list", "--json") == 0
    fixes = json.loads(capsys.readouterr().out)["fixes"]
    (fix,) = [fix for fix in fixes if fix["id"] == "print-while-eager"]
    assert "print-call" in fix["rules"] and fix["title"] and fix["safe"] is False
    assert fix["examples"][0]["bad"] != fix["examples"][0]["good"]


def test_the_program_of_a_run(
    folder: Path, found: _Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compilescope.record.header import RunHeader
    from compilescope.record.home import create_run

    (folder / "sub").mkdir()
    (folder / "sub" / "x.py").write_text("import torch\n")
    header = RunHeader(run="abc", tool="0", command=("x.py", "--a"), cwd=str(folder / "sub"))
    create_run(folder / "home", header)
    create_run(folder / "home", RunHeader(run="def", tool="0", command=("-c", "x = 1"), cwd=""))
    create_run(folder / "home", RunHeader(run="ghi", tool="0", command=("x.py",), cwd="/no/such"))
    ranks = ("torchrun", "--nproc-per-node", "2", "x.py")
    create_run(folder / "home", RunHeader(run="mno", tool="0", command=ranks, cwd=header.cwd))
    create_run(folder / "home", RunHeader(run="jkl", tool="0", command=("pytest", "x"), cwd=""))
    found.outcome = outcome(before=totals(), after=totals())
    for run, expected in (
        ("abc", ("script", ("x.py", "--a"))),
        ("def", ("code", ("x = 1",))),
        ("mno", ("torchrun", ranks[1:])),
    ):
        _fix("--dir", str(folder / "home"), "--run", run)
        target, options = found.asked[-1]
        assert (target.kind, target.words) == expected
        assert options.home == folder / "home"
    for run, says in (("ghi", "is not accessible"), ("jkl", "takes a script")):
        with pytest.raises(ToolError, match=says):
            _fix("--dir", str(folder / "home"), "--run", run)
    with pytest.raises(ToolError, match="not both"):
        _fix("--dir", str(folder / "home"), "--run", "abc", "train.py")


def test_ours_may_follow_the_program_and_the_rest_is_its_own(folder: Path, found: _Search) -> None:
    found.outcome = outcome(before=totals(), after=totals())
    _fix("train.py", "--output", "x", "--json", "--", "--json")
    assert found.asked[0][0].words == ("train.py", "--output", "x", "--json")


def _commit(folder: Path) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "train.py"], [*settings, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_writing(folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "train.py"
    found.outcome = replace(_fixed(folder), environment={"A_FLAG": "1"})
    _commit(folder)
    (folder / "untracked.txt").write_text("x")
    assert _fix("train.py", "--write") == 0
    out = capsys.readouterr().out
    assert path.read_text() == NEW and found.asked[0][1].own_only
    assert "Changed: train.py." in out and "git checkout -- train.py" in out
    assert "Start the program with A_FLAG=1." in out and "--script" not in out
    path.write_text(OLD + "# more\n")
    with pytest.raises(ToolError, match="uncommitted changes: train"):
        _fix("train.py", "--write")
    assert len(found.asked) == 1
    with pytest.raises(ToolError, match="changed while"):
        _fix("train.py", "--write", "--force")
    assert path.read_text() == OLD + "# more\n"
    path.write_text(OLD)
    assert _fix("train.py", "--write", "--force", "--json") == 0
    value = json.loads(capsys.readouterr().out)
    assert value["written"] == [str(path)] and path.read_text() == NEW


def test_writing_without_git(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    found.outcome = _fixed(folder)
    assert _fix("train.py", "--write") == 0
    assert "To undo, reverse the diff" in capsys.readouterr().out
    assert (folder / "train.py").read_text() == NEW


def test_what_is_not_proven_or_not_ours_is_not_written(
    folder: Path, found: _Search, capsys: pytest.CaptureFixture[str]
) -> None:
    made = _fixed(folder)
    theirs = str(folder / "site-packages" / "x.py")
    Path(theirs).parent.mkdir()
    Path(theirs).write_text(OLD)
    both = {**made.files, theirs: NEW}
    for bad, words in (
        (replace(made, verdict="unverified"), ("--write",)),
        (replace(made, verdict="unverified"), ("--script",)),
        (replace(made, files=both, originals=dict.fromkeys(both, OLD)), ("--write",)),
    ):
        found.outcome = bad
        assert _fix("train.py", *words) == 1
        out = capsys.readouterr().out
        assert "No file was changed" in out or "No script was written" in out
        assert (folder / "train.py").read_text() == OLD == Path(theirs).read_text()
        assert not (folder / "train_fixed.py").exists()
    found.outcome = outcome(before=totals(), after=totals())
    assert _fix("train.py", "--write") == 0
    assert "No file" not in capsys.readouterr().out
