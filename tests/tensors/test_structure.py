"""Results of any shape have a path for every leaf."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch

from compilescope.measure.tensors.structure import Lazy, Opaque, flatten, take_apart

pytestmark = pytest.mark.torch
Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Holder:
    value: Any
    name: str = "h"


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self) -> None:
        self.first = 1


def test_paths() -> None:
    value = {"a": (1, [2.5]), 3: Point("x", None), "h": Holder(torch.ones(1)), "s": Slotted()}
    assert list(flatten(value)) == [
        "output['a'][0]",
        "output['a'][1][0]",
        "output[3].x",
        "output[3].y",
        "output['h'].value",
        "output['h'].name",
        "output['s'].first",
    ]
    assert list(flatten(torch.ones(1))) == ["output"]


def test_containers_are_told() -> None:
    apart = take_apart({"a": (1, 2)}, "root")
    assert apart.containers == {"root": "dict", "root['a']": "tuple of 2"}


def test_model_outputs_and_caches() -> None:
    transformers = pytest.importorskip("transformers")
    output = transformers.modeling_outputs.CausalLMOutput(loss=torch.ones(()), logits=torch.ones(2))
    assert list(flatten(output)) == ["output.loss", "output.logits"]
    cache = transformers.DynamicCache()
    cache.update(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), 0)
    leaves = flatten(cache)
    assert torch.equal(leaves["output.layers[0].keys"], torch.ones(1, 1, 2, 2))
    assert torch.equal(leaves["output.layers[0].values"], torch.zeros(1, 1, 2, 2))


def test_odd_ones() -> None:
    def generated() -> Any:
        yield 1

    loop: list[Any] = []
    loop.append(loop)
    found = flatten({"g": generated(), "f": len, "m": torch.nn.ReLU(), "loop": loop})
    assert found["output['g']"] == Lazy("generator")
    assert isinstance(found["output['f']"], Opaque)
    assert found["output['m']"] == Opaque("ReLU")
    assert isinstance(found["output['loop'][0]"], Opaque)
    keys = flatten({torch.ones(1): 1, torch.zeros(1): 2})
    assert list(keys) == ["output[Tensor]", "output[Tensor]#2"]
