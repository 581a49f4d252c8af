"""Runs in float64 whatever the program asks for, watched runs, and backends by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.trials.backends import (
    CountedBackend,
    compiled_alone,
    find_backend,
    known_backends,
)
from compilescope.instrument.torchapi.trials.reruns import (
    NotReplayable,
    Saturation,
    Survey,
    Widening,
    wide_dtype,
)

pytestmark = pytest.mark.torch


def widened(function: Any, *args: torch.Tensor, seed: int = 0) -> tuple[Any, Survey, Widening]:
    torch.manual_seed(seed)
    with Survey() as seen:
        function(*(arg.clone() for arg in args))
    wide = [arg.to(wide_dtype(arg.dtype)) for arg in args]
    with Widening(seen.tape) as mode:
        return function(*wide), seen, mode


def casting(x: torch.Tensor) -> torch.Tensor:
    y = x.half().float() + torch.arange(4) * 0.1
    z = torch.zeros(4)
    z += F.softmax(y.bfloat16(), -1, dtype=torch.float32)
    return z.to(torch.bfloat16)


def test_casts_and_factories_stay_wide() -> None:
    x = torch.randn(4)
    found, _, _ = widened(casting, x)
    assert found.dtype is torch.float64
    wanted = torch.softmax(x.double() + torch.arange(4) * 0.1, -1)
    # A list of tenths is made in float32 by the program itself.
    assert torch.allclose(found, wanted, atol=1e-7)


def test_autocast_is_lifted_too() -> None:
    x = torch.randn(4, 4)

    def product(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    found, _, _ = widened(product, x)
    assert torch.equal(found, x.double() @ x.double())


def test_gradients_are_wide() -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    with Widening():
        casting(x).square().sum().backward()
    assert x.grad is not None and x.grad.dtype is torch.float64


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: x + torch.randn(6) + torch.rand_like(x),
        lambda x: x[torch.randperm(6)],
        lambda x: torch.empty(6).uniform_() + torch.bernoulli(x.sigmoid()),
    ],
)
def test_random_numbers_are_those_of_the_reference(draw: Any) -> None:
    x = torch.randn(6)
    torch.manual_seed(3)
    wanted = draw(x)
    found, seen, _ = widened(draw, x, seed=3)
    assert torch.allclose(found, wanted.double(), atol=1e-6)
    assert seen.random and seen.random[0].frame.file == __file__


def test_what_cannot_be_replayed_is_said() -> None:
    with pytest.raises(NotReplayable, match="rrelu"):
        widened(lambda x: F.rrelu(x, training=True), torch.randn(6))
    with pytest.raises(NotReplayable, match="bits"):
        widened(lambda x: x.view(torch.int32), torch.randn(6))


def test_dropout_that_drops_nothing_draws_nothing() -> None:
    query = torch.randn(1, 1, 4, 8)
    with Survey() as seen:
        F.dropout(torch.ones(3), 0.5, training=False)
        F.scaled_dot_product_attention(query, query, query)
    assert seen.random == []


def test_operators_that_refuse_float64_run_in_float32() -> None:
    def quantized(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()

    _, _, mode = widened(quantized, torch.randn(4))
    assert list(mode.narrow) == ["aten.quantize_per_tensor.default"]


def test_the_survey_sees_casts_reads_and_sums() -> None:
    def busy(x: torch.Tensor) -> Any:
        return (x * 1000).to(torch.int8), x.sum().item(), x.reshape(4, 4) @ x.reshape(4, 4)

    with Survey() as seen:
        busy(torch.ones(16))
        torch.tensor([127.9, -128.9]).to(torch.int8)
    assert [found.detail for found in seen.overflowing] == ["to int8"]
    assert seen.scalars == [16.0]
    assert seen.reduction == 16
    with Saturation():
        assert torch.tensor([1e9, -1e9, float("nan")]).to(torch.int8).tolist() == [127, -128, 0]
        assert torch.tensor([1e30]).to(torch.int64).item() == 2**63 - 1


def test_backends_by_name() -> None:
    assert {"eager", "aot_eager", "inductor"} <= set(known_backends())
    assert CountedBackend("inductor").inductor and not CountedBackend("eager").inductor
    with pytest.raises(ToolError) as raised:
        find_backend("aot_eagr")
    assert "aot_eager" in raised.value.hint
    with pytest.raises(ToolError, match="not int"):
        find_backend(3)  # type: ignore[arg-type]


def test_sizes_of_another_model_make_no_dimension_dynamic() -> None:
    """torch's own modules share a frame, in which Dynamo remembers the sizes that it saw."""
    torch._dynamo.reset()
    sizes: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        sizes.extend(
            node.meta["example_value"].shape
            for node in graph.graph.find_nodes(op="placeholder")
            if isinstance(node.meta.get("example_value"), torch.Tensor)
        )
        return graph.forward

    for width, shape in ((8, (4, 8)), (4, (3, 5, 4))):
        compiled_alone(torch.nn.Linear(width, 2), CountedBackend(backend))(torch.ones(shape))
    assert torch.Size((3, 5, 4)) in sizes
    assert all(type(each) is int for shape in sizes for each in shape)
