"""What a run lost, whether a version of it loses more, and what was captured, line by line."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

import compilescope
from compilescope.change.repair.trials.loss_checks import check_losses
from compilescope.change.repair.trials.losses import (
    captured_lines,
    count_operators,
    is_on_data,
)
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Changes
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings

pytestmark = pytest.mark.torch
_x = torch.ones(3)


def _seen(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], **settings: Any
) -> CapturedRun:
    """A run of these calls of a function that is compiled."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(**settings), compilescope.capture() as seen:
        compiled = torch.compile(function, backend="eager")
        for args in calls:
            compiled(*args)
    torch._dynamo.reset()
    run, path = seen.run, Path()
    return CapturedRun(run, digest(run), 0, False, b"", b"", 0.0, count_operators(run), path)


def _failed(before: CapturedRun, after: CapturedRun, *, gone: bool = True) -> list[str]:
    """The names of the checks that fail. `gone`: all that was lost is to be gone."""
    lost = [each.fingerprint for each in findings(before.digest)] if gone else []
    checks = check_losses(before, after, lost, Changes(), ())
    return [check.name for check in checks if check.verdict == "fail"]


def _by_name(x: torch.Tensor, name: str) -> torch.Tensor:
    return x + len(name)


def _broken() -> Callable[..., Any]:
    def step(x: torch.Tensor, past: list[float]) -> torch.Tensor:
        y = x * 2
        torch._dynamo.graph_break()
        return y

    return step


def _whole() -> Callable[..., Any]:
    """With a version for each length of a list."""

    def step(x: torch.Tensor, past: list[float]) -> torch.Tensor:
        return x * 2 + len(past)

    return step


def _with_lists(lengths: Iterable[int]) -> list[tuple[Any, ...]]:
    return [(_x, [0.0] * length) for length in lengths]


def test_versions_that_are_used_again_are_worth_more_than_eager_calls() -> None:
    calls = [(_x, name * 3) for name in "abcdefghij"] * 4
    before, after = _seen(_by_name, calls), _seen(_by_name, calls, recompile_limit=64)
    assert after.digest.recompiles[0].count > before.digest.recompiles[0].count
    assert _failed(before, after) == []


def test_versions_that_are_used_once_are_not() -> None:
    calls = [(_x, f"name {number}") for number in range(24)]
    before, after = _seen(_by_name, calls), _seen(_by_name, calls, recompile_limit=64)
    assert _failed(before, after) == ["gone", "recompiles"]


@pytest.mark.parametrize(("rounds", "failed"), [(4, []), (1, ["recompiles"])])
def test_a_break_weighs_more_than_versions_that_are_used_again(
    rounds: int, failed: list[str]
) -> None:
    calls = _with_lists([*range(5)] * rounds)
    before, after = _seen(_broken(), calls), _seen(_whole(), calls)
    assert [each.kind for each in findings(before.digest)] == ["break"]
    assert after.digest.recompiles[0].count == 4
    assert _failed(before, after) == failed


def test_a_break_weighs_less_than_a_limit_that_is_reached() -> None:
    calls = _with_lists([*range(12)] * 4)
    assert _failed(_seen(_broken(), calls), _seen(_whole(), calls)) == ["recompiles", "eager"]


def _printing(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().max().item()
    print(x.shape)
    return x / (scale + 1)


def test_what_another_patch_gains_is_no_gain_where_the_line_still_breaks() -> None:
    """One number is in the graph now; the print, which is to be gone, breaks under another name."""
    calls = [(_x,)] * 2
    before = _seen(_printing, calls)
    logged = next(each for each in before.digest.sites if "print" in each.source)
    whole = {"capture_scalar_outputs": True, "reorderable_logging_functions": {print}}
    after = _seen(_printing, calls, **whole)
    assert len(before.digest.sites) == 2 and len(after.digest.sites) == 1
    checks = check_losses(before, after, [logged.fingerprint], Changes(), ())
    (failed,) = [check for check in checks if check.verdict == "fail"]
    assert failed.name == "breaks" and f"line {logged.line} still breaks" in failed.words


def test_a_version_that_the_program_needs_is_no_loss() -> None:
    """Nothing less is lost here, and nothing more."""
    calls = [(_x,)] * 4
    before = _seen(torch.sin, calls)
    after = _seen(lambda x: x.sin() if torch.is_grad_enabled() else x.cos(), calls)
    assert _failed(before, after) == []


@pytest.mark.parametrize(
    ("check", "is_on"),
    [
        ("n.item() == 3", True),
        ("L['mask'].sum().item() == 4", True),
        ("L['x'].tolist()[0] == 1", True),
        ("L['n'].item() >= 3", False),
        ("___as_tensor(L['self']._modules['embed'].norm_type).item() == 2.0", False),
        ("___as_tensor(L['scale']).item() == 0.5", False),
        ("___as_tensor(L['___stack0']).item() == 0.5", True),
    ],
)
def test_a_number_out_of_data_and_one_that_is_made_a_tensor(check: str, is_on: bool) -> None:
    """torch 2.11 says so of a module's number under `dynamic=True`."""
    assert is_on_data(check) == is_on


def test_an_operator_that_gives_nothing_is_no_number() -> None:
    @torch.library.custom_op("losses_test::note", mutates_args=())
    def note(x: torch.Tensor) -> None:
        pass

    note.register_fake(lambda x: None)

    def step(x: torch.Tensor) -> torch.Tensor:
        note(x)
        size = x.shape[0] * 2
        return x * size

    torch._dynamo.reset()
    with compilescope.capture() as seen:
        torch.compile(step, backend="eager", dynamic=True)(torch.ones(3))
    torch._dynamo.reset()
    first = step.__code__.co_firstlineno
    lines = {line - first for _, line in captured_lines(seen.run, numbers=False)}
    assert {1, 3} <= lines
    assert 2 not in lines
    assert 2 in {line - first for _, line in captured_lines(seen.run)}
