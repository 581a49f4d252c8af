"""Where the script goes and how it runs; that it is only handed out if it does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.change.repair.delivery.emitter import emit, plan_script
from compilescope.change.repair.delivery.script import MARK, ScriptRecipe, make_script
from compilescope.change.repair.search.options import SearchOptions
from compilescope.instrument.recorder.target import Target
from repair.delivery.outcomes import attempt, outcome, totals


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "app/__main__.py", "app/tool.py", "app/__init__.py", "deep/run.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "output", "path", "command"),
    [
        (Target("script", ("train.py", "-n", "a b")), None, "train_fixed.py", "-n 'a b'"),
        (Target("script", ("deep/run.py",)), None, "deep/run_fixed.py", "deep/run_fixed.py"),
        (Target("script", ("app",)), None, "app/app_fixed.py", "python app/app_fixed.py"),
        (Target("module", ("app", "-v")), None, "app/app_fixed.py", "-m app.app_fixed -v"),
        (Target("module", ("app.tool",)), None, "app/tool_fixed.py", "-m app.tool_fixed"),
        (Target("module", ("train",)), None, "train_fixed.py", "python -m train_fixed"),
        (Target("module", ("app.tool",)), "x.py", "x.py", "python x.py"),
        (Target("code", ("x = 1", "a")), None, "code_fixed.py", "python code_fixed.py a"),
    ],
)
def test_where_it_goes(
    folder: Path, target: Target, output: str | None, path: str, command: str
) -> None:
    plan = plan_script(target, Path(output) if output else None)
    assert plan.output == Path(path) and plan.command.endswith(command)
    plan.check(force=False)


def test_another_folder_still_imports_what_stood_beside(folder: Path) -> None:
    plan = plan_script(Target("script", ("deep/run.py",)), Path("here.py"))
    assert plan.folder == str(folder / "deep")
    plan = plan_script(Target("module", ("app.tool",)), Path("deep/here.py"))
    assert (plan.folder, plan.package) == (str(folder), "app")


def test_a_file_of_the_users_is_not_written_over(folder: Path) -> None:
    plan = plan_script(Target("script", ("train.py",)), None)
    plan.output.write_text("mine\n")
    with pytest.raises(ToolError, match="compilescope did not write it"):
        plan.check(force=False)
    plan.check(force=True)
    recipe = ScriptRecipe(str(folder / "train.py"), "pass\n", {}, {}, str(plan.output), {})
    plan.output.write_text(f"#!/usr/bin/python\n{make_script(recipe).text}")
    plan.check(force=False)
    plan.output.write_text(plan.output.read_text() + "print('mine')\n")
    with pytest.raises(ToolError, match="was edited after compilescope wrote it"):
        plan.check(force=False)
    plan.check(force=True)


MAIN = """import sys

import torch

from thirdparty.nets import step

step = torch.compile(step, backend="eager")
print(sys.argv[1:], step(torch.ones(3)), sys.stdin.read())
"""
NETS = """import torch


def step(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2
"""
MENDED = NETS.replace("    torch._dynamo.graph_break()\n", "")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("holds", [True, False])
def test_it_is_run_before_it_is_handed_out(
    holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "site-packages"
    (package / "thirdparty").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(package))
    nets = package / "thirdparty" / "nets.py"
    nets.write_text(NETS)
    (tmp_path / "main.py").write_text(MAIN)
    target = Target("script", ("main.py", "word"))
    plan = plan_script(target, None)
    plan.output.write_text(f"{MARK}: an older one\n")
    if not holds:
        # The program looks at its own name: another one, and it does something else.
        (tmp_path / "main.py").write_text(MAIN + "print(len(sys.argv[0]))\n")
    made = outcome(
        attempt(file=str(nets), line=6),
        files={str(nets): MENDED},
        originals={str(nets): NETS},
    )
    emitted = emit(plan, made, target, SearchOptions(stdin=b"piped"), ("one fix",))
    assert emitted.proof.holds is holds, emitted.proof.reason
    if holds:
        assert emitted.path == "main_fixed.py" and emitted.proof.found.breaks == 0
        assert "#   one fix\n" in plan.output.read_text()
    else:
        assert emitted.path is None and "prints something different" in emitted.proof.reason
        assert plan.output.read_text() == f"{MARK}: an older one\n"
    assert nets.read_text() == NETS


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(
    ("fixed", "breaks", "reason"),
    [
        (MENDED, 0, ""),
        (NETS.replace("y = x + 1", "y = 1 + x"), 0, "1 graph breaks and the fixed program has 0"),
        (MENDED.replace("y * 2", "y * 2 * (x > 0)"), 0, "`step` on "),
    ],
    ids=["as-claimed", "more-breaks", "other-results-on-other-inputs"],
)
def test_its_own_breaks_and_results_decide(
    fixed: str, breaks: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program prints nothing: only its regions tell."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "site-packages"
    (package / "thirdparty").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(package))
    nets = package / "thirdparty" / "nets.py"
    nets.write_text(NETS)
    (tmp_path / "main.py").write_text(MAIN.replace("print(sys.argv[1:], step", "(step"))
    target = Target("script", ("main.py",))
    made = outcome(
        attempt(file=str(nets), line=6),
        files={str(nets): fixed},
        originals={str(nets): NETS},
    )
    plan = plan_script(target, None)
    emitted = emit(plan, made, target, SearchOptions(), ("one fix",), claimed=totals(breaks))
    proof = emitted.proof
    assert proof.verdict == ("rejected" if reason else "verified"), proof
    assert reason in proof.reason and plan.output.exists() is (not reason)
    assert proof.claimed.breaks == breaks
    if not reason:
        assert proof.found.breaks == 0 and "the recorded inputs" in proof.inputs
        assert {"exit", "output", "breaks", "values"} <= {check.name for check in proof.checks}


@pytest.mark.parametrize("before", [None, f"{MARK}: an older one\n"])
def test_an_interrupt_takes_it_back(
    before: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def interrupted(script: Target, *rest: object, **more: object) -> None:
        seen.append((folder / "train_fixed.py").read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr("compilescope.change.repair.delivery.emitter.prove_script", interrupted)
    target = Target("script", ("train.py",))
    plan = plan_script(target, None)
    if before is not None:
        plan.output.write_text(before)
    (folder / "train.py").chmod(0o755)
    made = outcome(attempt(), files={plan.main: "x = 2\n"}, originals={plan.main: "x = 1\n"})
    with pytest.raises(KeyboardInterrupt):
        emit(plan, made, target, SearchOptions(), ())
    assert seen[0].startswith(MARK) and seen[0].endswith("\nx = 2\n")
    assert (plan.output.read_text() if plan.output.exists() else None) == before
    assert not list(folder.glob(".*"))
