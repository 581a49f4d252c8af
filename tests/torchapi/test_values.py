"""What variables held where Dynamo stopped: known without a run of its own, and by looking only."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


def test_the_variables_of_the_function_that_broke_are_kept() -> None:
    import torch

    import compilescope
    from compilescope.record.bodies import GraphBreak

    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.steps = 4

        def forward(self, x, by, mode=None):  # type: ignore[no-untyped-def]
            y = x * self.weight
            number = x.sum().item()
            return y * by + number + self.steps

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Scale()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.scale(x, 2.5)

    torch._dynamo.reset()
    with compilescope.capture() as run:
        torch.compile(Net(), backend="eager")(torch.ones(3))
    _, broken = next(run.run.of(GraphBreak))
    assert broken.within is not None and broken.within.function == "forward"
    kinds = {name: fact.kind for name, fact in broken.values.items()}
    assert kinds["x"] == kinds["y"] == "tensor"
    assert kinds["self.weight"] == "parameter" and kinds["mode"] == "none"
    assert broken.values["y"].requires_grad and not broken.values["x"].requires_grad
    assert broken.values["x"].dtype == "float32" and broken.values["x"].shape == (3,)
    assert broken.values["by"].value == "2.5" and broken.values["self.steps"].value == "4"


def test_looking_changes_no_guard_and_runs_no_property() -> None:
    """A lazy variable that is made real would put guards on what the program never uses."""
    import torch

    import compilescope
    from compilescope.instrument.torchapi.values import NOTHING, stored_attribute

    class Hidden:
        unused = 3

        @property
        def loud(self) -> int:
            raise AssertionError("a property ran")

    held = Hidden()

    def f(x, held, size):  # type: ignore[no-untyped-def]
        print("a break")
        return x + 1

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="eager")
    with compilescope.capture() as run:
        for size in range(5):
            compiled(torch.ones(3), held, size)
    assert run.recompiles == []
    assert stored_attribute(held, "loud") is NOTHING
    assert stored_attribute(held, "unused") == 3
