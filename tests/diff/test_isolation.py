"""Nothing leaks: from one side into the other, or from a comparison into the program."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compilescope import KernelDiffHarness
from compilescope.measure.diff.runs.model_state import State
from compilescope.measure.diff.runs.modes import Randomness, same_world
from compilescope.measure.tensors.copies import CopiedArguments

pytestmark = pytest.mark.torch
CALLS = 0


class Restless(nn.Module):
    """Changes everything that it can reach."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(4)
        self.calls = 0
        self.kept = [torch.zeros(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        global CALLS
        CALLS += 1
        self.calls += 1
        self.kept[0].add_(1)
        self.kept.append(x.detach())
        random.random()
        return self.norm(self.second(self.first(x)))


def test_a_state_comes_back_whole() -> None:
    model, calls = Restless(), CALLS
    state = State(model)
    assert list(state.changes()) == []
    model(torch.randn(3, 4)).sum().backward()
    assert {"norm.running_mean", "kept[0]", "calls", "CALLS", "grad of first.weight"} <= set(
        state.changes()
    )
    state.restore()
    assert list(state.changes()) == []
    assert (model.calls, len(model.kept), CALLS) == (0, 1, calls)
    assert model.first.weight.grad is None
    assert model.second.weight is model.first.weight


def test_a_widened_state_is_float64_and_comes_back() -> None:
    model = Restless()
    before = model.first.weight.detach().clone()
    state = State(model)
    with state.widened():
        assert model.first.weight.dtype is torch.float64
        assert model.second.weight is model.first.weight
        assert model.norm.num_batches_tracked.dtype is torch.int64
        model(torch.randn(3, 4, dtype=torch.float64)).sum().backward()
        assert model.first.weight.grad.dtype is torch.float64
    state.restore()
    assert torch.equal(model.first.weight, before)
    model(torch.randn(3, 4)).sum().backward()
    assert model.first.weight.grad.dtype is torch.float32


def test_a_comparison_leaves_the_program_as_it_was() -> None:
    model = Restless().train()
    x = torch.randn(3, 4)
    given, randomness = x.clone(), Randomness()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    torch.set_grad_enabled(False)
    try:
        KernelDiffHarness(model, x, test_backend="eager").compare()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert Randomness() == randomness
    assert torch.equal(x, given)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert model.training and model.calls == 0 and len(model.kept) == 1


def test_arguments_keep_their_aliases() -> None:
    base = torch.randn(6)
    weight = nn.Parameter(torch.randn(2))
    computed = torch.randn(3, requires_grad=True) * 2
    arguments = CopiedArguments((base, base[2:], [base], weight, computed), {"mark": "x"}, [weight])
    (one, view, [same], own, leaf), kwargs = arguments.copied()
    assert one is same and one is not base
    assert view.data_ptr() - one.data_ptr() == 8
    view.zero_()
    assert one[2:].abs().sum() == 0 and base[2:].abs().sum() > 0
    assert own is weight and kwargs == {"mark": "x"}
    assert leaf.is_leaf and leaf.requires_grad
    (wide, *_), _ = arguments.copied(lambda dtype: torch.float64)
    assert torch.equal(wide.float(), base)


def test_strides_stay() -> None:
    channels = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    expanded = torch.randn(3, 1).expand(3, 5)
    (one, other), _ = CopiedArguments((channels, expanded), {}, []).copied()
    assert one.stride() == channels.stride() and other.stride() == expanded.stride()
    assert torch.equal(one, channels) and torch.equal(other, expanded)


def test_what_cannot_be_copied_is_shared_and_said() -> None:
    class Stubborn:
        scale = 2.0

        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no copies")

    report = KernelDiffHarness(
        lambda x, s: x * s.scale, (torch.ones(2), Stubborn()), test_backend="eager"
    ).compare()
    assert report.verdict == "pass"
    assert any("args[1] cannot be copied" in note for note in report.notes)


def test_the_world_comes_back() -> None:
    with same_world():
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.set_autocast_enabled("cpu", True)
        torch.rand(3)
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() is torch.float32
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.is_autocast_enabled("cpu")


def test_compiled_models_are_compared_as_what_they_were() -> None:
    compiled = torch.compile(nn.Linear(4, 4), backend="eager")
    report = KernelDiffHarness(compiled, torch.randn(2, 4), test_backend="aot_eager").compare()
    assert report.verdict == "pass"
    assert report.model_name == "Linear"
    assert report.compiles == 1


TOTAL = torch.zeros(2)


class Counter:
    """Methods of it are called by name, and lie in no module."""

    def __init__(self) -> None:
        self.calls = 0

    def bump(self) -> int:
        self.calls += 1
        return self.calls


COUNTER = Counter()


class Helped(nn.Module):
    """Its `forward` leaves the work, and all that changes, to methods of its own."""

    def forward(self, x: Any) -> Any:
        return self.scaled(x) + self.total

    def scaled(self, x: Any) -> Any:
        return x * COUNTER.bump()

    @property
    def total(self) -> Any:
        return self.added()

    @staticmethod
    def added() -> Any:
        return TOTAL.add_(1)


class Derived(Helped):
    """Reaches them by `super()` alone."""

    def forward(self, x: Any) -> Any:
        return super().forward(x)


@pytest.mark.parametrize("of", [lambda m: m, lambda m: m.forward], ids=["module", "method"])
@pytest.mark.parametrize("kind", [Helped, Derived])
def test_what_methods_change_comes_back(kind: Any, of: Any) -> None:
    model = kind()
    calls, total = COUNTER.calls, TOTAL.clone()
    state = State(of(model))
    model(torch.ones(2))
    assert {"TOTAL", "COUNTER.calls"} <= set(state.changes())
    state.restore()
    assert COUNTER.calls == calls and torch.equal(TOTAL, total)


def test_what_functions_of_another_file_change_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\nSEEN = torch.zeros(1)\ndef note(x):\n    return SEEN.add_(1) + x\n"
    (tmp_path / "noting_helpers.py").write_text(text)
    (tmp_path / "noting.py").write_text(
        "import noting_helpers\ndef forward(x):\n    return noting_helpers.note(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    noting = importlib.import_module("noting")
    state = State(noting.forward)
    first = noting.forward(torch.ones(1))
    state.restore()
    assert torch.equal(noting.forward(torch.ones(1)), first)


def test_a_nested_tensor_is_an_argument() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])
    report = KernelDiffHarness(lambda values: values * 2, (nested,), test_backend="eager").compare()
    assert [diff.verdict for diff in report.diffs] == ["pass"]


def test_one_of_several_views_is_brought_back() -> None:
    """A cache that keeps a part of `chunk`: torch refuses what was written in place."""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 8)
            self.kept: list[torch.Tensor] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            key, value = self.lin(x).chunk(2, dim=-1)
            self.kept.append(key)
            return torch.cat(self.kept).sum() + value.sum()

    net = Cached()
    net(torch.ones(1, 4))
    (kept,) = net.kept
    before = kept.detach().clone()
    state = State(net)
    net(torch.ones(1, 4))
    kept.data.add_(1)
    state.restore()
    assert net.kept == [kept] and torch.equal(kept, before)
    assert not kept.is_leaf
    net(torch.ones(1, 4)).backward()
