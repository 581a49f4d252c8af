"""`model.compile()` and `torch.compile(model)`: whoever compiles the model again gets the same."""

from __future__ import annotations

from typing import Any

import pytest

import compilescope

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def in_place(model: Any) -> Any:
    model.compile(backend="eager")
    return model


def wrapped(model: Any) -> Any:
    return torch.compile(model, backend="eager")


FORMS = pytest.mark.parametrize("form", [in_place, wrapped])


class Gate(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if y.sum() > 0:
            y = y + 1
        return {"y": y.relu(), "more": [y]}


@FORMS
@pytest.mark.parametrize("kind", [Gate, lambda: torch.nn.Sequential(torch.nn.Linear(4, 4))])
def test_another_backend_is_the_one_that_is_called(form: Any, kind: Any) -> None:
    from compilescope.instrument.torchapi.trials.backends import (
        CountedBackend,
        compiled_alone,
        uncompiled,
    )

    torch._dynamo.reset()
    backend = CountedBackend("eager")
    model = form(kind())
    with torch.no_grad():
        compiled_alone(uncompiled(model), backend)(torch.ones(2, 4))
    assert backend.calls


@FORMS
def test_numbers_are_compared(form: Any) -> None:
    torch._dynamo.reset()
    model, inputs = form(Gate()), (torch.ones(2, 4),)
    report = compilescope.KernelDiffHarness(model, inputs, test_backend="aot_eager").compare()
    assert report.verdict == "pass" and report.compiles


@FORMS
def test_explain_compiles_with_the_options_that_it_is_given(form: Any) -> None:
    torch._dynamo.reset()
    seen: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return graph.forward

    model = form(Gate())
    own = compilescope.explain(model)(torch.ones(2, 4))
    other = compilescope.explain(model, backend=backend)(torch.ones(2, 4))
    assert seen
    found = [(len(each.graphs), len(each.breaks)) for each in (own, other)]
    assert found == [(2, 1), (2, 1)]
