"""Planted wrongness is found, each kind by its name; a device that is right passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from backends.toy_adapters import Emulator, denying
from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.comparison import beyond, compare_numbers, is_narrowed
from compilescope.backends.islands.records import Ledger, Verdict, WrongnessCheck

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


KERNELS: dict[str, Callable[..., Any]] = {
    "aten.mul.Tensor": lambda a, b: a * b,
    "aten.add.Tensor": lambda a, b: a + b,
    "aten.relu.default": lambda a: a.clip(0),
    "aten.sum.default": lambda a: a.sum(keepdims=True).reshape(()),
}


class Numpy(torch.fx.Interpreter):
    """A device that torch does not see at work."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return KERNELS[str(target)](*args, **kwargs)


class Device(AcceleratorAdapter):
    """Right, but for what `spoil` makes of its results."""

    def __init__(self, spoil: Callable[..., Any] = lambda results, inputs: results, **more: Any):
        super().__init__(**more)
        self.spoil = spoil

    def compile(self, gm: Any, inputs: Any) -> Any:
        def run(*given: torch.Tensor) -> Any:
            results = Numpy(gm).run(*(value.numpy() for value in given))
            return self.spoil([torch.from_numpy(result) for result in results], given)

        return run


def model(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2 + 1)


X = torch.tensor([[-1.0, 0.5], [2.0, 3.0]])


def verdicts(adapter: AcceleratorAdapter, function: Any = model, *args: Any) -> dict[str, Verdict]:
    seen = adapter.verify(function, *(args or (X,)))
    return {check.name: check.verdict for check in seen.checks}


def failing(adapter: AcceleratorAdapter, function: Any = model, *args: Any) -> set[str]:
    return {
        name for name, verdict in verdicts(adapter, function, *args).items() if verdict == "fail"
    }


def test_a_device_that_is_right_passes() -> None:
    seen = Device().verify(model, X)
    assert seen.verdict == "pass", seen.checks
    assert {check.name for check in seen.checks} >= {
        "model-outputs", "silent-fallback", "wrong-side", "inputs-changed", "numbers", "not-finite",
        "constant-output",
    }  # fmt: skip
    assert all(check.reason for check in seen.checks)
    assert seen.report.ops_share == 1


def test_verifying_leaves_the_adapter_the_model_and_the_random_numbers_alone() -> None:
    adapter = Emulator(denying("aten.relu"))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU())
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    seen = adapter.verify(net, X)
    assert seen.verdict == "pass", seen.failures
    assert not adapter.report.graphs and not adapter.checked
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert {"model-gradients"} <= {check.name for check in seen.checks}
    assert {graph.stage for graph in seen.report.graphs} == {"aot_forward", "aot_backward"}


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_a_constant_is_found(value: float) -> None:
    spoilt = Device(lambda results, inputs: [torch.full_like(r, value) for r in results])
    assert failing(spoilt) == {"constant-output", "numbers", "model-outputs"}


def test_a_result_of_an_earlier_call_is_found() -> None:
    kept: list[Any] = []

    def stale(results: Any, inputs: Any) -> Any:
        kept.append(results)
        return kept[0]

    assert "constant-output" in failing(Device(stale))


def test_a_single_number_needs_a_second_call_to_be_told_from_a_constant() -> None:
    assert verdicts(Device(), lambda x: (x * 2).sum())["constant-output"] == "pass"
    torch._dynamo.reset()
    zeros = torch.zeros(2)
    assert verdicts(Device(), lambda x: (x * 2).sum(), zeros)["constant-output"] == "unknown"


def test_what_is_not_finite_is_found() -> None:
    def lost(results: Any, inputs: Any) -> Any:
        results[0][0, 1] = float("nan")
        return results

    assert {"not-finite"} <= failing(Device(lost))


def test_numbers_that_are_off_are_found() -> None:
    def spoil(results: Any, inputs: Any) -> Any:
        results[0].numpy()[:] *= 1.01
        return results

    assert failing(Device(spoil)) == {"numbers", "model-outputs"}
    torch._dynamo.reset()
    assert failing(Device(spoil, tolerance=0.1)) == set()


def test_a_device_that_writes_into_its_inputs_is_found() -> None:
    def scribble(results: Any, inputs: Any) -> Any:
        results = [result.clone() for result in results]
        inputs[0].numpy()[:] = 7  # Behind torch's back.
        return results

    found = verdicts(Device(scribble), lambda x: model(x + 0))
    assert found["inputs-changed"] == "fail"


def test_a_fallback_that_nobody_said_is_found_when_it_runs() -> None:
    class Pretender(AcceleratorAdapter):
        def compile(self, gm: Any, inputs: Any) -> Any:
            return lambda *args: gm(*args)  # Not the graph itself: only running it tells.

    found = verdicts(Pretender())
    assert (found["silent-fallback"], found["wrong-side"]) == ("fail", "fail")
    assert found["numbers"] == "pass"


def test_an_op_on_the_wrong_side_is_found() -> None:
    class Half(Device):
        def compile(self, gm: Any, inputs: Any) -> Any:
            return lambda x: torch.from_numpy(x.numpy() * 2 + 1).relu()

    seen = Half().verify(model, X)
    found = {check.name: check for check in seen.checks}
    assert found["wrong-side"].verdict == "fail"
    assert "aten.relu.default" in found["wrong-side"].reason
    assert found["wrong-side"].frame is not None and found["wrong-side"].frame.file == __file__
    assert found["silent-fallback"].verdict == "pass"


def test_other_ops_on_the_host_leave_it_open() -> None:
    class Odd(Device):
        def compile(self, gm: Any, inputs: Any) -> Any:
            return lambda x: (x.abs() + x).sub(-1).clamp(min=0) if x.min() > 0 else gm(x)

    found = verdicts(Odd(), lambda x: torch.relu(x), X.abs())
    assert found["wrong-side"] == "unknown"


def test_an_emulator_says_so_and_passes() -> None:
    assert Emulator().verify(model, X).verdict == "pass"


def test_what_torch_compile_made_cannot_be_watched() -> None:
    class Nested(AcceleratorAdapter):
        def compile(self, gm: Any, inputs: Any) -> Any:
            return torch.compile(gm, backend="eager")

    found = verdicts(Nested())
    assert (found["wrong-side"], found["silent-fallback"]) == ("unknown", "unknown")
    assert found["numbers"] == "pass"


def test_integers_beyond_the_width_of_a_narrowing_device_are_found() -> None:
    narrow = AcceleratorCapabilities("narrow", integer_width=32, narrows_integers=True)

    def count(i: torch.Tensor) -> torch.Tensor:
        return i * 2 + 1

    small, large = torch.tensor([1, 2]), torch.tensor([1, 2**40])
    assert verdicts(Device(capabilities=narrow), count, small)["integers-narrowed"] == "pass"
    torch._dynamo.reset()
    seen = Device(capabilities=narrow).verify(count, large)
    [check] = [check for check in seen.failures if check.name == "integers-narrowed"]
    assert "do not fit in 32 bits" in check.reason


def test_integers_that_were_cut_are_found_even_where_nobody_said_so() -> None:
    cut = Device(lambda results, inputs: [r.to(torch.int32).to(torch.int64) for r in results])
    found = failing(cut, lambda i: i * 2, torch.tensor([1, 2**40]))
    assert found == {"integers-narrowed", "numbers", "model-outputs"}
    torch._dynamo.reset()
    assert "integers-narrowed" not in verdicts(Device(), lambda i: i * 2, torch.tensor([1, 2]))


def test_a_model_without_a_graph_is_not_a_pass() -> None:
    seen = Device().verify(lambda x: x, X)
    assert seen.verdict == "unknown"
    assert "no graph" in seen.unknown[0].reason or seen.report.graphs


def test_integers_that_mean_something_are_left_in_their_order() -> None:
    """Offsets must rise, and a mask must leave something: other ones would tell nothing."""

    def bags(weights: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding_bag(ids, weights, offsets)

    given = (torch.randn(5, 4), torch.tensor([1, 2, 4, 0]), torch.tensor([0, 1, 3]))
    assert Emulator().verify(bags, *given).verdict == "pass"

    def masked(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        causal = torch.ones(2, 2, dtype=torch.bool).tril()
        return x.masked_fill(~(causal & keep), -torch.inf).softmax(-1)

    seen = Emulator().verify(masked, X, torch.tensor([True, False]))
    assert seen.verdict == "pass", seen.unknown


def test_zeros_that_the_graph_makes_are_no_doubt() -> None:
    def stateful(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = x.new_zeros(3)
        return x * 2, state

    seen = Emulator().verify(stateful, X)
    assert seen.verdict == "pass", seen.unknown
    # A sum that happens to be 0 is another matter.
    assert Emulator().verify(lambda x: (x * 0).sum(), X).verdict == "unknown"


def test_noise_is_not_wrong() -> None:
    """The gradient of a sum of softmaxes is nothing but rounding error."""

    class Reordering(Emulator):
        def compile(self, gm: Any, inputs: Any) -> Any:
            def run(*given: Any) -> Any:
                wide = [v.double() if v.is_floating_point() else v for v in given]
                return [result.float() for result in gm(*wide)]

            return run

    def sharp(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 3, dim=-1).sum(dim=-1) - 1

    net = torch.nn.Sequential(torch.nn.Linear(2, 8))
    adapter = Reordering()
    seen = adapter.verify(torch.nn.Sequential(net, _Calling(sharp)), X)
    assert not [check for check in seen.failures if check.name == "model-gradients"]


class _Calling(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def test_checking_mode_looks_at_every_call() -> None:
    adapter = Device(checked=True)
    compiled = torch.compile(model, backend=adapter)
    for _ in range(3):
        compiled(X)
    assert {check.calls for check in adapter.report.checks if check.name == "wrong-side"} == {3}


def test_comparing() -> None:
    one = torch.tensor([1.0, 2.0])
    assert compare_numbers(one, one + 1e-6).verdict == "pass"
    assert compare_numbers(one, one.double()).verdict == "fail"
    assert compare_numbers(one, one[:1]).verdict == "fail"
    assert compare_numbers(one[:0], one[:0]).verdict == "pass"
    nothing = torch.tensor([float("nan")])
    assert compare_numbers(nothing, nothing).verdict == "unknown"
    assert compare_numbers(one.bool(), one.bool()).verdict == "pass"
    assert compare_numbers(one * 1j, one * 1j + 1).verdict == "fail"
    assert beyond(torch.tensor([2**31]), 32).verdict == "fail"
    assert beyond(torch.tensor([-(2**31)]), 32).verdict == "pass"
    assert beyond(torch.tensor([3], dtype=torch.int32), 32) is None
    assert beyond(one, 32) is None
    assert not is_narrowed(torch.tensor([5]), torch.tensor([5]))
    assert is_narrowed(torch.tensor([0]), torch.tensor([2**40]))


def test_the_worst_that_was_seen_is_kept() -> None:
    ledger = Ledger()
    for verdict in ("pass", "fail", "unknown", "pass"):
        ledger.note(WrongnessCheck(name="numbers", verdict=verdict, reason=verdict, island=0))
    for verdict in ("unknown", "pass"):
        check = WrongnessCheck(name="constant-output", verdict=verdict, reason=verdict, island=0)
        ledger.note(check, settles=True)
    assert [(check.verdict, check.calls) for check in ledger.checks] == [("fail", 4), ("pass", 2)]
