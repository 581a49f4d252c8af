"""Which recompiles are no loss: by what the program did with its versions, not by their names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")
import torch

from compilescope import capture
from compilescope.knowledge.findings.recompiles import RecompiledFrame, count_strictly
from compilescope.report.section import Reading
from compilescope.report.sections.spared import spared

pytestmark = pytest.mark.torch
X = torch.ones(3, 4)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drops = torch.nn.ModuleList(torch.nn.Dropout(0.1) for _ in range(3))
        self.kind: str | None = None
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for drop in self.drops:
            x = drop(x)
        return x * 2


class Lazy(Layer):
    """Sets what it looks at in its first call, as libraries do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind is None:
            self.kind = "single"
        return super().forward(x)


class Projected(Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = torch.nn.Linear(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x) * 2


class Counting(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


def _train_and_evaluate(model: Layer, compiled: Callable[..., object]) -> None:
    for _ in range(2):
        model.train()
        for _ in range(3):
            compiled(X)
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                compiled(X)


def _evaluate_once(model: Layer, compiled: Callable[..., object]) -> None:
    compiled(X)
    model.eval()
    for _ in range(5):
        compiled(X)


def _call(model: Layer, compiled: Callable[..., object]) -> None:
    for _ in range(6):
        compiled(X)


def _grow(model: Layer, compiled: Callable[..., object]) -> None:
    for size in range(2, 8):
        compiled(torch.ones(size, 4))


def _bucket(model: Layer, compiled: Callable[..., object]) -> None:
    for size in (2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 3, 4):
        compiled(torch.ones(size, 4))


def _reading(
    kind: type[Layer], use: Callable[[Layer, Callable[..., object]], None], **options: object
) -> Reading:
    torch._dynamo.reset()
    model = kind()
    with capture() as run:
        use(model, torch.compile(model, backend="eager", **options))  # type: ignore[call-overload]
    return Reading(run.run)


def _frame(reading: Reading) -> RecompiledFrame:
    (frame,) = reading.digest.recompiles
    return frame


@pytest.mark.parametrize(
    ("kind", "use", "options", "lost"),
    [
        (Layer, _train_and_evaluate, {}, 0),
        (Layer, _evaluate_once, {}, 0),
        (Lazy, _call, {}, 1),
        (Lazy, _train_and_evaluate, {}, 1),
        (Counting, _call, {}, 5),
        (Layer, _grow, {}, 0),
        (Layer, _bucket, {"dynamic": False}, 2),
    ],
)
def test_loss_is_what_the_program_does_not_use(
    kind: type[Layer],
    use: Callable[[Layer, Callable[..., object]], None],
    options: dict[str, object],
    lost: int,
) -> None:
    reading = _reading(kind, use, **options)
    frame = _frame(reading)
    assert frame.avoidable == lost, [(each.subject, each.count) for each in frame.causes]
    assert len(reading.causes) == min(lost, 1)
    (strict,) = count_strictly([frame])
    assert strict.avoidable == strict.count


def test_one_recompile_is_one_cause_however_many_guards_failed() -> None:
    frame = _frame(_reading(Layer, _train_and_evaluate))
    (cause,) = frame.causes
    assert cause.subject.endswith(".training")
    assert cause.seconds == frame.seconds
    assert len(cause.also) == 2 or len(cause.together) >= 1


def test_each_object_that_shares_the_code_has_its_modes() -> None:
    torch._dynamo.reset()
    models = [Projected(width) for width in (4, 6)]
    with capture() as run:
        compiled = [torch.compile(model, backend="eager") for model in models]
        for _ in range(4):
            for each in compiled:
                each(X)
        with torch.no_grad():
            for each in compiled:
                each(X)
    assert [frame.avoidable for frame in Reading(run.run).digest.recompiles] == [0]


def test_a_size_that_was_fixed_at_first_could_be_spared() -> None:
    reading = _reading(Layer, _grow)
    assert reading.causes == []
    (hint,) = spared(reading)
    assert hint.title.endswith("x.size()[0]")
    assert any(each.diff for each in hint.advice)


def test_a_number_is_fixed_at_first_and_free_after_it_changed() -> None:
    def step(x: torch.Tensor, lr: float) -> torch.Tensor:
        return x - lr * x

    def fixed(x: torch.Tensor, lr: float) -> torch.Tensor:
        return x + lr * x

    torch._dynamo.reset()
    with capture() as run:
        for function, dynamic in ((step, None), (fixed, False)):
            compiled = torch.compile(function, backend="eager", dynamic=dynamic)
            for at in range(1, 7):
                compiled(X, 0.1 * at + 0.01)
    lost = {frame.function: frame.avoidable for frame in Reading(run.run).digest.recompiles}
    assert lost["step"] == 0
    assert lost["fixed"] == 5


def test_what_a_graph_break_brought_into_python_is_not_needed() -> None:
    def scale(x: torch.Tensor) -> torch.Tensor:
        number = int(x.sum())
        return x * number

    torch._dynamo.reset()
    with capture() as run:
        compiled = torch.compile(scale, backend="eager")
        for at in range(2, 9):
            compiled(X * at)
    assert [frame.avoidable for frame in Reading(run.run).digest.recompiles] == [1]


def test_an_optional_argument_that_alternates_is_needed() -> None:
    def scale(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x * 3 if mask is None else x * mask

    def last(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x * 2 if mask is None else x * mask * 2

    torch._dynamo.reset()
    with capture() as run:
        compiled = torch.compile(scale, backend="eager")
        for _ in range(4):
            compiled(X)
            compiled(X, X)
        once = torch.compile(last, backend="eager")
        once(X)
        for _ in range(6):
            once(X, X)
    lost = {frame.function: frame.avoidable for frame in Reading(run.run).digest.recompiles}
    assert lost == {"scale": 0, "last": 1}
