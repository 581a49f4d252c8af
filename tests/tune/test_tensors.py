"""What of a step is compared: what the variables around it hold."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def _names(**held: object) -> set[str]:
    from compilescope.change.tune.kept_tensors import _walk

    return {path for name, value in held.items() for path, _ in _walk(value, name, 0)}


def test_a_librarys_trainer_holds_the_model() -> None:
    """And much that is no result: it is left alone."""
    trainer = SimpleNamespace(
        model=torch.nn.Linear(2, 2), cache=[torch.ones(2)], state=torch.ones(2)
    )
    assert type(trainer).__module__ != "__main__"
    assert _names(trainer=trainer) == {"trainer.model.weight", "trainer.model.bias"}
    assert _names(module=sys) == set()
