"""Graphs cut into parts: the parts, fed with real values, compute what the whole does."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from compilescope.instrument.torchapi.compilation.settings import everything_compiled
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    Anatomy,
    GraphRecorder,
    RecordedCall,
    examine,
)
from compilescope.measure.diff.localize.graph_parts.part_runs import (
    PartCall,
    RecordedValues,
    run_eagerly,
)
from compilescope.measure.diff.localize.graph_parts.parts import part_of, side_by_side
from compilescope.measure.diff.runs.modes import RandomState
from compilescope.measure.tensors.copies import copied_values
from compilescope.measure.tensors.tolerances import is_same

pytestmark = pytest.mark.torch


class Odd(nn.Module):
    """Writes, views, tuples, random numbers, modes and numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> Any:
        self.count.add_(1)
        y = self.linear(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.linear(x)
            with torch.no_grad():
                w = z * 2
        a, b = y.split(3, dim=1)
        best, places = a.max(dim=1)
        y = nn.functional.dropout(y * 1, 0.5)
        y[:, 0] = 3.0
        y.view(-1).mul_(2)
        c = b.reshape(x.shape[0] * 3) + self.count
        return y, best.sin(), places, w + z, c


def recorded(model: Any, *args: Any, dynamic: bool | None = None) -> tuple[Anatomy, RecordedCall]:
    torch._dynamo.reset()
    recorder = GraphRecorder()
    with everything_compiled():
        torch.compile(model, backend=recorder, dynamic=dynamic)(*args)
    [graph] = recorder.graphs
    [call] = graph.calls
    return examine(graph.module, call), call


@pytest.mark.parametrize("dynamic", [None, True])
def test_every_cut_computes_what_the_whole_does(dynamic: bool | None) -> None:
    anatomy, call = recorded(Odd(), torch.randn(4, 6), dynamic=dynamic)
    values = RecordedValues(anatomy, call)
    whole = part_of(anatomy, anatomy.nodes, grad=True, exposed=anatomy.nodes)
    wanted = run_eagerly(whole, PartCall(values.of(whole), call.ambient))
    truth = dict(zip(whole.outputs, wanted.outputs, strict=True))
    assert anatomy.units > 8
    ends = {node for node in anatomy.nodes if any(u.op == "output" for u in node.users)}
    for low in range(anatomy.units):
        for high in (low + 1, anatomy.units):
            part = part_of(anatomy, anatomy.span(low, high), grad=True)
            given = run_eagerly(part, PartCall(values.of(part), call.ambient))
            for node, value in zip(part.outputs, given.outputs, strict=True):
                if high == anatomy.units and node in ends:
                    assert is_same(value, truth[node]), (low, node)


def test_parts_of_regions_run_in_their_modes() -> None:
    anatomy, call = recorded(Odd(), torch.randn(4, 6))
    values = RecordedValues(anatomy, call)
    for number in range(anatomy.units):
        part = part_of(anatomy, anatomy.unit(number), grad=True)
        before = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), RandomState()
        run_eagerly(part, PartCall(values.of(part), call.ambient))
        after = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), RandomState()
        assert before == after
    kinds = {node.name: kind for node, kind in anatomy.kinds.items()}
    assert kinds["_enter_autocast"] == kinds["_set_grad_enabled"] == "mode"
    assert len(anatomy.random) == 1
    assert len(anatomy.writing) == 3


def test_units_side_by_side_have_inputs_of_their_own() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + torch.cos(x) + torch.sin(x * 2)

    anatomy, call = recorded(model, torch.randn(3))
    values = RecordedValues(anatomy, call)
    units = [anatomy.unit(number) for number in range(anatomy.units)]
    part = side_by_side(anatomy, units, grad=True)
    given = run_eagerly(part, PartCall(values.of(part), call.ambient))
    alone = [part_of(anatomy, unit, grad=True) for unit in units]
    wanted = [run_eagerly(one, PartCall(values.of(one), call.ambient)).outputs[0] for one in alone]
    assert all(is_same(a, b) for a, b in zip(given.outputs, wanted, strict=True))
    names = [node.name for node in part.graph.nodes if node.op == "placeholder"]
    assert len(set(names)) == len(names) == sum(len(one.inputs) for one in alone)


def test_copies_share_memory_as_the_tensors_do() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    view, other = base[1:], torch.randn(4, 3).t()
    one, two, three, four = copied_values([base, view, other, base])
    one[1, 0] = 99.0
    assert two[0, 0] == 99.0 and base[1, 0] == 4.0
    assert one is four and three.stride() == other.stride()
    weight = nn.Parameter(torch.ones(2))
    [copied] = copied_values([weight])
    assert isinstance(copied, nn.Parameter) and copied is not weight
