"""The command that `run` ends with: exact, and as a shell takes it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec
import pytest

from builders import event, frame, run_of
from compilescope.apps.cli.commands.run import ProgramRun, _next, next_step
from compilescope.apps.cli.main import group
from compilescope.apps.cli.program import Words
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.findings.remedy import Advice
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

CODE = CodeRef("/home/ada/project/model.py", 6, "forward")
GRAPH = event(GraphCaptured(stage="dynamo", ops=1, frame=CODE, region=CODE), number=1)
BREAK = event(GraphBreak("Odd thing", gb_id="GB0001", frame=CODE), number=2, stack=(frame(),))
SCRIPT: Words = ("script", ("train.py", "--lr", "1e-3"))


def failure(error: str, message: str = "backend='toy' raised:\nValueError: no") -> Event:
    backend = "toy" if error == "BackendCompilerFailed" else None
    body = CompileFailed(error, message, backend=backend, frame=CODE)
    return event(body, number=3, stack=(frame(),))


def seen(*events: Event, fix: str | None = None, **header: object) -> Digest:
    found = digest(run_of(*events, **header))
    advice = (Advice(fix, "proposed", "", "Try it."),)
    sites = tuple(msgspec.structs.replace(site, advice=advice) for site in found.sites)
    return msgspec.structs.replace(found, sites=sites)


def step(of: Digest, target: Words = SCRIPT, **given: object) -> str:
    return next_step(of, ProgramRun(target, **given)).partition("  #")[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("of", "command"),
    [
        (seen(GRAPH), "check train.py --lr 1e-3"),
        (seen(), "run --compile-all train.py --lr 1e-3"),
        (seen(GRAPH, BREAK, fix="print-while-eager"), "fix train.py --lr 1e-3"),
        (seen(GRAPH, BREAK), "explain abc123"),
        (seen(failure("BackendCompilerFailed")), "minify --predicate crash train.py --lr 1e-3"),
        (seen(failure("TorchRuntimeError", "bad shapes")), "explain abc123"),
        (seen(exit_status=1), "run train.py --lr 1e-3"),
        (seen(GRAPH, exit_status=None, signal=9), "run train.py --lr 1e-3"),
        # It does not run to its end: nothing could be proven on it.
        (seen(GRAPH, BREAK, fix="print-while-eager", exit_status=1), "explain abc123"),
    ],
    ids=["gate", "compile-all", "fix", "explain", "minify", "own-error", "early", "killed", "ill"],
)
def test_what_helps_most(of: Digest, command: str) -> None:
    assert step(of) == f"compilescope {command}"


def test_what_was_compiled_for_it_is_compiled_again() -> None:
    given = {"compile_names": ("Net", "my step"), "backend": "eager", "home": Path("my runs")}
    assert step(seen(GRAPH), **given) == (
        "compilescope check --compile Net --compile 'my step' --backend eager "
        "--dir 'my runs' train.py --lr 1e-3"
    )
    assert step(seen(), compile_all=True) == ""


TARGETS: list[Words] = [
    ("script", ("my train.py", "--json", "--lr", "1")),
    ("script", ("train.py", "--", "--write")),
    ("module", ("package.train", "--site", "here")),
    ("code", ("print('a b')", "$HOME")),
    ("pytest", ("-x", "tests")),
    ("torchrun", ("--nproc-per-node", "2", "train.py")),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[0])
@pytest.mark.parametrize(
    "of",
    [seen(GRAPH), seen(), seen(GRAPH, BREAK, fix="x"), seen(failure("BackendCompilerFailed"))],
    ids=["gate", "compile-all", "fix", "minify"],
)
def test_the_command_runs_the_same_program(of: Digest, target: Words) -> None:
    """A shell's words, given to the real command, name the program and its own arguments."""
    _, name, *words = shlex.split(step(of, target))
    command = group.get_command(click.Context(group), name)
    assert command is not None
    context = command.make_context(name, words, resilient_parsing=False)
    if name == "explain":
        assert target[0] in ("pytest", "torchrun") and context.params["run"] == "abc123"
    else:
        assert context.obj == target


def test_code_of_several_lines_does_not_make_several_lines() -> None:
    target: Words = ("code", ("import torch\nprint(1)",))
    for of in (seen(GRAPH), seen(), seen(GRAPH, BREAK, fix="x"), seen(exit_status=1)):
        assert "\n" not in step(of, target)


@pytest.mark.parametrize("name", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_a_variable_that_turns_compilation_off_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    words = next_step(seen(), ProgramRun(SCRIPT))
    assert words.startswith(f"env -u {name} compilescope run train.py")
    assert words.endswith(f"# {name}=1 turns torch.compile off")
    # What did compile was not kept from it.
    assert name not in next_step(seen(GRAPH), ProgramRun(SCRIPT))


def test_versions_that_a_program_needs_are_nothing_to_explain() -> None:
    failed = FailedGuard("self.kind == 3", "self.kind", "3", "4", frame=frame())
    recompile = Recompile(CODE, (CacheEntryMiss("0/0", (failed,)),))
    needed = digest(run_of(GRAPH, event(recompile, number=2, stack=(frame(),))))
    (one,) = needed.recompiles
    causes = tuple(msgspec.structs.replace(each, needed=True) for each in one.causes)
    green = msgspec.structs.replace(
        needed, recompiles=(msgspec.structs.replace(one, causes=causes),)
    )
    step = next_step(green, ProgramRun(SCRIPT))
    assert step.startswith("compilescope check train.py") and "that is not needed" in step
    assert not next_step(needed, ProgramRun(SCRIPT)).startswith("compilescope check")


def test_what_a_command_does_goes_to_the_next_line_where_it_is_long() -> None:
    assert _next("compilescope fix a.py  # tries") == "Next: compilescope fix a.py  # tries"
    long = f"compilescope fix --dir {'x' * 70} a.py"
    assert _next(f"{long}  # tries") == f"Next: {long}\n      # tries"
