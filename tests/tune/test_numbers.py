"""Are the numbers of a candidate the original's?"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compilescope.change.tune.judge import is_other_computation, judge_numbers  # noqa: E402

pytestmark = pytest.mark.torch


def _steps(dtype: Any, *, wrong: float = 0.0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 64, generator=generator)
    w = torch.randn(64, 64, generator=generator)
    out = (x.to(dtype) @ w.to(dtype)).softmax(-1) * (1 + wrong)
    return {"step 1: x": x, "step 1: out": out}


def test_rounding_passes_and_a_wrong_factor_fails() -> None:
    reference, exact = _steps(torch.float32), _steps(torch.float64)
    near = {**reference, "step 1: out": reference["step 1: out"] * (1 + 1e-7)}
    assert judge_numbers(reference, near, exact).verdict == "pass"
    found = judge_numbers(reference, _steps(torch.float32, wrong=1e-3), exact)
    assert found.verdict == "fail" and "out" in found.reason


def test_inputs_alone_prove_nothing() -> None:
    only = {"step 1: x": _steps(torch.float32)["step 1: x"]}
    assert judge_numbers(only, only, {"step 1: x": only["step 1: x"].double()}).verdict == "unknown"


def test_lower_precision_may_be_off_but_not_far_and_not_infinite() -> None:
    reference = _steps(torch.float32)
    low = _steps(torch.bfloat16)
    assert judge_numbers(reference, low, None, lower_precision=True).verdict == "pass"
    far = {**reference, "step 1: out": reference["step 1: out"] * 1.5}
    assert judge_numbers(reference, far, None, lower_precision=True).verdict == "fail"
    infinite = {**reference, "step 1: out": reference["step 1: out"] * torch.inf}
    assert judge_numbers(reference, infinite, None, lower_precision=True).verdict == "fail"


def test_other_random_numbers_are_another_computation() -> None:
    reference, exact = _steps(torch.float32), _steps(torch.float64)
    assert not is_other_computation(reference, exact)
    dropped = {**exact, "step 1: out": exact["step 1: out"] * 0.5}
    assert is_other_computation(reference, dropped)


def test_ranks_that_do_not_work_together_in_float64_are_another_computation() -> None:
    """Their weights are the same after a step in which gradients were averaged."""
    weight = torch.randn(64, generator=torch.Generator().manual_seed(0))
    own = {"step 1: x on rank 0": weight, "step 1: x on rank 1": weight + 1}
    reference = {"step 1: w on rank 0": weight, "step 1: w on rank 1": weight, **own}
    exact = {path: each.double() for path, each in reference.items()}
    assert not is_other_computation(reference, exact)
    exact["step 1: w on rank 1"] = exact["step 1: w on rank 1"] * (1 + 1e-6)
    assert is_other_computation(reference, exact)


def test_a_loss_may_be_off_by_what_rounding_does_to_the_step() -> None:
    """The original's is right by luck; one that is off by a thousandth is wrong all the same."""
    reference, exact = _steps(torch.bfloat16), _steps(torch.float64)
    exact["step 1: loss"] = torch.tensor(4.17, dtype=torch.float64)
    reference["step 1: loss"] = torch.tensor(4.17)
    near = {**reference, "step 1: loss": torch.tensor(4.17 + 2e-5)}
    assert judge_numbers(reference, near, exact).verdict == "pass"
    wrong = {**reference, "step 1: loss": torch.tensor(4.17 * 1.05)}
    assert judge_numbers(reference, wrong, exact).verdict == "fail"
    wider = {**reference, "step 1: loss": torch.tensor(4.17 + 2e-5, dtype=torch.float64)}
    assert judge_numbers(reference, wider, exact).verdict == "fail"
    precise = _steps(torch.float32) | {"step 1: loss": reference["step 1: loss"]}
    assert judge_numbers(precise, near, exact).verdict != "pass"


@pytest.mark.parametrize(("known", "wrong"), [(torch.tensor(100), 101), (torch.tensor(0.0), 1.0)])
def test_a_count_and_a_zero_are_not_off_by_rounding(known: Any, wrong: float) -> None:
    reference, exact = _steps(torch.bfloat16), _steps(torch.float64)
    reference["step 1: few"] = known
    exact["step 1: few"] = known.double() if known.is_floating_point() else known
    found = {**reference, "step 1: few": torch.full_like(known, wrong)}
    assert judge_numbers(reference, found, exact).verdict == "fail"


def test_what_a_call_returned_is_a_result() -> None:
    known = {"step 1: what f returned in call 1, [0]": torch.ones(4)}
    exact = {path: tensor.double() for path, tensor in known.items()}
    assert judge_numbers(known, known, exact).verdict == "pass"
