"""`compilescope check`: its exit status, options and files, on recorded runs and on real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from analysis.gate_runs import (
    a_break,
    a_failure,
    a_library_break,
    a_recompile,
    graph,
    hostile_run,
    on_disk,
)
from builders import event, run_of
from compilescope.apps.cli.commands.check import COMMAND
from compilescope.base.errors import ToolError
from compilescope.record.bodies import CheckOutcome, HookUnavailable
from compilescope.record.event import Event
from compilescope.record.home import find_run
from compilescope.record.run import read_run
from recorder.harness import Ended, environment, finish, start

BASELINE = "compilescope-baseline.json"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, not in a workflow."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "COMPILESCOPE_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def record(*events: Event, name: str = "abc123-model", **header: object) -> None:
    on_disk(Path(".compilescope"), run_of(*events, run=name, **header))


def check(*words: str, run: str = "abc123-model") -> Result:
    return CliRunner().invoke(
        COMMAND, ["--run", run, *words], standalone_mode=False, catch_exceptions=False
    )


def status(*words: str, **options: str) -> int:
    return check(*words, **options).return_value


def as_json(*words: str, **options: str) -> dict[str, Any]:
    return json.loads(check("--json", *words, **options).stdout.splitlines()[-1])


def test_without_limits_nothing_may_be_lost() -> None:
    record(graph())
    assert status() == 0
    record(graph(), a_break(), name="bbb-model")
    assert status(run="bbb") == 1
    assert "No limits or baseline were given" in check(run="bbb").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max-breaks", "0"], 1),
        (["--max-breaks", "1"], 0),
        (["--max-breaks=1", "--max-graphs", "0"], 1),
        (["--max-graphs", "1"], 0),
        (["--max-recompiles", "0"], 0),
        (["--max-eager", "0"], 0),
        (["--min-coverage", "50"], 2),
        (["--min-coverage", "50", "--max-breaks", "0"], 1),
    ],
)
def test_limits(words: list[str], expected: int) -> None:
    record(graph(), a_break())
    assert status(*words) == expected


def test_a_failure_fails_whatever_else_is_limited() -> None:
    record(graph(), a_failure())
    assert status("--max-breaks", "9") == 1
    assert status("--max-breaks", "9", "--max-failures", "1") == 0


def test_own(project: Path) -> None:
    record(graph(), a_library_break())
    assert (status(), status("--own")) == (1, 0)
    (project / "pyproject.toml").write_text("[tool.compilescope]\nown = true\n")
    assert (status(), status("--no-own")) == (0, 1)


def test_the_project_sets_limits_and_the_command_line_wins(project: Path) -> None:
    record(graph(), a_break())
    (project / "pyproject.toml").write_text("[tool.compilescope]\nmax-breaks = 1\n")
    assert status() == 0
    assert "Limits from pyproject.toml." in check().stdout
    assert status("--max-breaks", "0") == 1
    assert status("--max-graphs", "0") == 1
    seen = as_json("--max-recompiles", "3")
    assert seen["limits"]["breaks"] == 1 and seen["limits"]["recompiles"] == 3
    assert seen["project"] == str(project / "pyproject.toml")


def test_only_new_causes_fail_against_a_baseline(project: Path) -> None:
    record(graph(), a_break())
    done = check("--update-baseline")
    assert done.return_value == 0
    assert "now accepts 1 cause: 1 added, 0 removed, 0 kept." in done.stdout
    assert (project / BASELINE).exists()
    assert "Checked against the baseline compilescope-baseline.json" in check().stdout
    assert status() == 0
    assert status("--no-baseline") == 1
    record(graph(), a_break(80), a_break(90, "    print(h)"), name="bbb-model")
    failed = check(run="bbb")
    assert failed.return_value == 1
    assert "New causes" in failed.stdout and "print(h)" in failed.stdout
    assert "if h.mean()" not in failed.stdout, "that one moved, and is known"


def test_limits_hold_beside_the_baseline() -> None:
    record(graph(), a_break())
    check("--update-baseline")
    assert status("--max-breaks", "0") == 1
    assert status("--max-breaks", "1") == 0


def test_the_project_names_the_baseline(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(graph(), a_break())
    (project / "ci").mkdir()
    (project / "pyproject.toml").write_text('[tool.compilescope]\nbaseline = "ci/b.json"\n')
    with pytest.raises(ToolError, match=r"no baseline .*ci/b\.json"):
        check()
    assert status("--update-baseline") == 0
    assert (project / "ci" / "b.json").exists() and not (project / BASELINE).exists()
    monkeypatch.chdir(project / "ci")
    assert status("--dir", str(project / ".compilescope")) == 0
    other = ["--dir", str(project / ".compilescope"), "--baseline", "other.json"]
    assert status(*other, "--update-baseline") == 0
    assert (project / "ci" / "other.json").exists()


def test_update_keeps_adds_and_drops(project: Path) -> None:
    record(graph(), a_break(), a_recompile())
    check("--update-baseline")
    before = (project / BASELINE).read_text()
    check("--update-baseline")
    assert (project / BASELINE).read_text() == before
    record(graph(), a_break(), a_library_break(), name="bbb-model")
    told = check(run="bbb").stdout
    assert "1 cause in the baseline is no longer present; --update-baseline removes it:" in told
    seen = as_json("--update-baseline", run="bbb")
    assert (len(seen["added"]), len(seen["removed"]), seen["exit_code"]) == (1, 1, 0)
    assert seen["files"]["baseline"] == BASELINE
    assert (seen["outcome"], len(seen["known"]), seen["new"]) == ("pass", 2, [])
    own = as_json("--update-baseline", "--own", run="bbb")
    assert [entry["file"] for entry in own["removed"]] == ["faux/ops.py"]


@pytest.mark.parametrize(
    ("events", "header", "words"),
    [
        ((graph(), a_break()), {"exit_status": 1}, "the program ended with status 1"),
        ((graph(), a_break()), {"exit_status": None, "signal": 15}, "signal 15 (SIGTERM)"),
        ((graph(), a_break()), {"ended": False}, "truncated"),
        ((), {}, "nothing was compiled"),
    ],
)
def test_a_baseline_is_not_made_of_what_was_not_seen(
    project: Path, events: tuple[Event, ...], header: dict[str, object], words: str
) -> None:
    record(graph(), a_recompile())
    check("--update-baseline")
    before = (project / BASELINE).read_bytes()
    record(*events, name="bbb-model", **header)
    done = check("--update-baseline", run="bbb")
    assert done.return_value == 2
    assert f"The baseline {BASELINE} was not updated: " in done.stderr and words in done.stderr
    assert "INCONCLUSIVE" in done.stdout
    assert (project / BASELINE).read_bytes() == before
    assert as_json("--update-baseline", run="bbb")["exit_code"] == 2


def test_a_baseline_is_not_made_blindly(project: Path) -> None:
    missing = HookUnavailable("graph-breaks", "torch.x", "graph breaks")
    record(graph(), event(missing, number=2))
    with pytest.raises(ToolError, match=r"was not updated: torch 2\.13\.0 does not report"):
        check("--update-baseline")
    assert not (project / BASELINE).exists()


def test_json() -> None:
    record(graph(), a_break(), a_failure())
    done = check("--json", "--max-breaks", "0", "--junit", "j.xml", "--sarif", "s.sarif")
    [line] = done.stdout.splitlines()
    seen = json.loads(line)
    assert set(seen) >= {
        "run", "outcome", "checks", "new", "known", "gone", "limits", "baseline", "files",
        "exit_code", "command", "torch", "exit_status", "signal", "own", "project",
    }  # fmt: skip
    assert (seen["run"], seen["outcome"], seen["exit_code"]) == ("abc123-model", "fail", 1)
    assert seen["files"] == {"junit": "j.xml", "sarif": "s.sarif"}
    assert seen["baseline"] is None
    breaks = seen["checks"][0]
    assert (breaks["name"], breaks["outcome"], breaks["found"], breaks["limit"]) == (
        "breaks", "fail", 1, 0,
    )  # fmt: skip
    assert breaks["findings"][0]["rule"] == "GB0170"


def test_files_for_ci() -> None:
    record(graph(), a_break(), a_library_break())
    assert status("--junit", "j.xml", "--sarif", "s.sarif", "--own") == 1
    cases = list(ElementTree.parse("j.xml").iter("testcase"))
    assert len(cases) == 5
    [run] = json.loads(Path("s.sarif").read_text())["runs"]
    assert len(run["results"]) == 1
    check("--update-baseline")
    assert status("--sarif", "s.sarif") == 0
    [run] = json.loads(Path("s.sarif").read_text())["runs"]
    assert {result["baselineState"] for result in run["results"]} == {"unchanged"}


def test_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    record(graph(), a_break())
    assert "::error" not in check().stdout
    assert "::error title=GB0170" in check("--annotations").stdout
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home/ada")
    said = check().stdout
    assert ",file=project/model.py,line=8," in said
    assert [line for line in said.splitlines() if "::" in line] == [said.splitlines()[-1]]
    assert "::" not in check("--no-annotations").stdout
    lines = check("--json").stdout.splitlines()
    assert lines[0].startswith("::error") and json.loads(lines[-1])["exit_code"] == 1


def test_hostile_names_everywhere(tmp_path: Path) -> None:
    on_disk(Path(".compilescope"), hostile_run())
    done = check("--annotations", "--junit", "j.xml", "--sarif", "s.sarif")
    assert done.return_value == 1
    assert not [c for c in done.stdout if not (c.isprintable() or c in "\n\t")]
    ElementTree.parse("j.xml")
    json.loads(Path("s.sarif").read_text())
    assert status("--update-baseline") == 0
    assert status() == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "There is nothing to check."),
        (["--run", "abc", "train.py"], "not both"),
        (["--run", "abc", "--compile-all"], "need a program to run"),
        (["--run", "abc", "--no-baseline", "--update-baseline"], "not both"),
        (["--run", "abc", "--no-baseline", "--baseline", "b.json"], "not both"),
        (["--run", "zzz"], "No run in"),
        (["--run", "abc", "--baseline", "none.json"], "There is no baseline none.json"),
        (["--run", "abc", "--min-coverage", "nan"], "a number from 0 to 100"),
        (["--run", "abc", "--junit", "no/j.xml"], "the folder no does not exist"),
        (
            ["--run", "abc", "--update-baseline", "--baseline", "no/b.json"],
            "the folder no does not exist",
        ),
        (["--run", "abc", "--sarif", "."], "it is a folder"),
        (["no_such.py"], "There is no file no_such.py"),
    ],
)
def test_usage(words: list[str], sentence: str) -> None:
    record(graph())
    with pytest.raises(ToolError) as caught:
        CliRunner().invoke(COMMAND, words, standalone_mode=False, catch_exceptions=False)
    assert sentence in caught.value.message and caught.value.exit_code == 2


def test_a_file_that_cannot_be_written_is_no_pass(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(graph())
    Path("there").write_text("")
    monkeypatch.setattr(Path, "replace", _refuse)
    done = check("--junit", "j.xml")
    assert done.return_value == 2 and "Cannot write j.xml" in done.stderr
    assert "PASS" in done.stdout and not Path("j.xml").exists()


def _refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_bug_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    record(graph())
    monkeypatch.setattr("compilescope.knowledge.analysis.gate.verdict.judge", None)
    done = check()
    assert done.return_value == 2 and "Traceback" in done.stderr


# Real programs.

CLEAN = """
@torch.compile(backend="eager")
def step(x):
    return x.sin() + 1
for _ in range(3):
    step(torch.ones(3))
print("out", end="")
"""
BROKEN = """
@torch.compile(backend="eager")
def step(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1
step(torch.ones(3))
"""
TWICE = BROKEN.replace("    y = x * 2\n", "    y = x * 2\n    print('new')\n")


def program(name: str, text: str) -> str:
    return script(name, f"import sys\nimport torch\n{text}")


def script(name: str, text: str) -> str:
    """Without torch, whose import takes longer than all else."""
    Path(name).write_text(text)
    return name


def begin(*words: str, **env: str) -> subprocess.Popen[bytes]:
    outer = {"GITHUB_ACTIONS": "", **env}
    return start([sys.executable, "-m", "compilescope", "check", *words], env=outer, cwd=Path.cwd())


def ended(*words: str, **env: str) -> Ended:
    return finish(begin(*words, **env))


def last_line(done: Ended) -> dict[str, Any]:
    return json.loads(done.stdout.decode().splitlines()[-1])


@pytest.mark.torch
def test_programs_leave_it_open() -> None:
    begun = [
        begin("--json", script("crash.py", "raise SystemExit(7)")),
        begin("--json", "--backend", "eager", "--compile-all", script("none.py", "print('hi')")),
    ]
    crash, none = map(finish, begun)
    assert [e.status for e in (crash, none)] == [2, 2]
    assert "status 7" in last_line(crash)["checks"][0]["message"]
    assert "imported torch" in last_line(none)["checks"][0]["message"]


@pytest.mark.torch
def test_a_program_passes_fails_and_its_baseline_outlives_an_edit() -> None:
    printing = f"{BROKEN}print('out', end='')\n"
    own = ("--steps", "3", "--json", "--", "--max-breaks", "9")
    first = ended("--max-breaks", "1", program("train.py", printing), *own)
    assert first.status == 0
    # The program's own words come through, and ours start on a line of their own.
    assert first.stdout.decode().splitlines()[0] == "out"
    # What check knows may follow the program; all else, and all after --, is the program's.
    assert last_line(first)["command"] == ["train.py", "--steps", "3", "--max-breaks", "9"]
    recorded = find_run(Path(".compilescope"), last_line(first)["run"])
    [(_, said)] = read_run(recorded).of(CheckOutcome)
    assert said.outcome == "pass" and said.checks[0].name == "breaks"
    before = {path: path.read_bytes() for path in recorded.rglob("*.jsonl")}
    assert status("--update-baseline", run=last_line(first)["run"]) == 0
    after = {path: path.read_bytes() for path in recorded.rglob("*.jsonl")}
    assert after == before, "a recorded run is only read"
    program("train.py", f"# one\n# two\n{TWICE}")
    done = ended("train.py")
    assert done.status == 1
    text = done.stdout.decode()
    assert "FAIL: 1 new cause, not in the baseline." in text
    # The old cause may stand beside the new one in its diff, and nowhere else.
    causes = [line for line in text.splitlines() if line.startswith("  1 ") or " in f" in line]
    assert "print('new')" in text and "Explicit" not in text and len(causes) == 1, causes
    assert "train.py:9 in step" in text
    run = text.split("compilescope check ")[1].split()[0]
    assert f"compilescope check --run {run} --update-baseline" in text
    assert status("--update-baseline", run=run) == 0
    assert status(run=run) == 0


@pytest.mark.torch
@pytest.mark.slow
def test_own_passes_over_an_installed_package(project: Path) -> None:
    package = project / "env" / "site-packages" / "faux"
    package.mkdir(parents=True)
    text = "import torch\ndef noisy(x):\n    torch._dynamo.graph_break()\n    return x + 1\n"
    (package / "__init__.py").write_text(text)
    call = "import faux\nf = torch.compile(lambda x: faux.noisy(x) * 2, backend='eager')\n"
    program("uses.py", f"{call}f(torch.ones(2))\n")
    path = {"PYTHONPATH": str(package.parent)}
    both = [begin("uses.py", **path), begin("--own", "--sarif", "s.sarif", "uses.py", **path)]
    assert [finish(one).status for one in both] == [1, 0]
    assert json.loads(Path("s.sarif").read_text())["runs"][0]["results"] == []


@pytest.mark.slow
@pytest.mark.torch
def test_coverage_turns_timing_on(project: Path) -> None:
    program("clean.py", CLEAN)
    (project / "pyproject.toml").write_text("[tool.compilescope]\nmin-coverage = 0\n")
    done = ended("--json", "clean.py")
    assert done.status == 0, done.stdout
    [coverage] = [c for c in last_line(done)["checks"] if c["name"] == "coverage"]
    assert coverage["found"] > 0


@pytest.mark.slow
@pytest.mark.torch
def test_a_failed_compilation_that_ends_the_program_is_a_definite_failure() -> None:
    full = BROKEN.replace('backend="eager"', 'backend="eager", fullgraph=True')
    done = ended("--json", "--max-graphs", "5", program("full.py", full))
    assert done.status == 1
    checks = {c["name"]: c["outcome"] for c in last_line(done)["checks"]}
    assert checks["failures"] == "fail" and checks["program"] == "unknown"


@pytest.mark.torch
@pytest.mark.slow
def test_programs_of_every_kind_and_odd_names() -> None:
    Path("test_it.py").write_text(f"import torch\n{CLEAN}\ndef test_it():\n    pass\n")
    odd = program("a,b: %<x>\n::error::.py", BROKEN)
    program("module.py", CLEAN)
    begun = [
        begin("-m", "module"),
        begin("-c", "import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2))"),
        begin("--pytest", "-q", "-p", "no:cacheprovider", "test_it.py"),
        begin("--junit", "j.xml", odd, GITHUB_ACTIONS="true"),
    ]
    module, code, suite, hostile = map(finish, begun)
    assert [e.status for e in (module, code, suite, hostile)] == [0, 0, 0, 1], code.stdout
    ElementTree.parse("j.xml")
    said = hostile.stdout.decode()
    commands = [line for line in said.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == 1 and commands[0].startswith("::error title=")


@pytest.mark.torch
def test_ctrl_c_leaves_things_whole(project: Path) -> None:
    import signal

    script("long.py", "import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    (project / BASELINE).write_text('{"schema": 1, "findings": []}')
    process = start(
        [sys.executable, "-m", "compilescope", "check", "--update-baseline", "long.py"],
        cwd=Path.cwd(),
        start_new_session=True,
    )
    assert process.stdout is not None
    while b"ready" not in process.stdout.readline():
        pass
    os.killpg(process.pid, signal.SIGINT)
    done = finish(process)
    assert done.status == 2
    assert b"was not updated: the program was terminated by signal 2 (SIGINT)" in done.stderr
    assert (project / BASELINE).read_text() == '{"schema": 1, "findings": []}'


def test_a_name_that_is_not_text(project: Path) -> None:
    name = os.fsencode(str(project)) + b"/bad\xff.py"
    with open(name, "w") as stream:
        stream.write("pass")
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "check", name],
        env=environment(),
        capture_output=True,
    )
    assert done.returncode == 2
    assert b"bad" in done.stdout and b"Traceback" not in done.stdout + done.stderr
