"""Figures of graphs: by hand on small ones, and against torch's own counter on real models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilescope.knowledge.analysis.stages.panes import GraphFigures, graph_figures
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import staged_graphs
from compilescope.knowledge.source.spots import Sources
from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.record.graphs.flops import count_flops, is_counted
from compilescope.record.graphs.statistics import Amount, graph_statistics
from compilescope.record.run import Run


def tensor(*shape: int | str, dtype: str = "float32") -> TensorInfo:
    size: int | None = 4
    for part in shape:
        size = size * part if size is not None and isinstance(part, int) else None
    return TensorInfo(shape, dtype, size_bytes=size, device="cpu")


def call(target: str, arguments: str, out: TensorInfo | None, op: str = "call_function") -> Node:
    return Node("out", op, target, outputs=(out,) if out else (), arguments=arguments)


KNOWN = {
    "a": tensor(4, 8),
    "b": tensor(8, 16),
    "s": tensor("s0", 8),
    "d": tensor(5, 4, 8),
    "e": tensor(5, 8, 16),
    "x": tensor(2, 3, 16, 16),
    "k": tensor(6, 3, 3, 3),
    "t": tensor(3, 6, 2, 2),
    "g": tensor(2, 6, 14, 14),
    "q": tensor(2, 4, 10, 16),
    "kv": tensor(2, 2, 7, 16),
}
CONVOLUTION = "aten.convolution.default"
ONE_CONV = 2 * 2 * 14 * 14 * (6 * 3 * 3 * 3)
ONE_ATTENTION = 2 * (2 * 4 * 10 * 7) * (16 + 16)


@pytest.mark.parametrize(
    ("node", "flops"),
    [
        (call("aten.mm.default", "a, b", tensor(4, 16)), 2 * 4 * 16 * 8),
        (call("aten.mm.default", "a, mat2 = b", tensor(4, 16)), 2 * 4 * 16 * 8),
        (call("_operator.matmul", "a, b", tensor(4, 16)), 2 * 4 * 16 * 8),
        (call("matmul", "a, b", tensor(4, 16), "call_method"), 2 * 4 * 16 * 8),
        (call("aten.addmm.default", "bias, a, b", tensor(4, 16)), 2 * 4 * 16 * 8),
        (call("aten.addbmm.default", "bias, d, e", tensor(4, 16)), 2 * 4 * 16 * 8 * 5),
        (call("aten.addbmm.default", "bias, a, b", tensor(4, 16)), None),
        (call("torch._C._nn.linear", "a, w, bias", tensor(4, 5)), 2 * 4 * 5 * 8),
        (call("torch.einsum", "'ij,jk->ik', a, b", tensor(4, 16)), 2 * 4 * 16 * 8),
        (call("torch.einsum", "'ij,jk->i', a, b", tensor(4)), None),
        (call("torch.einsum", "'ij,jk,kl->il', a, b, c", tensor(4, 2)), None),
        (call("aten.mm.default", "s, b", tensor("s0", 16)), None),
        (call("aten.mm.default", "a, b", None), None),
        (call("aten.mm.default", "<weird>", tensor(4, 16)), None),
        (call("torch.nn.functional.multi_head_attention_forward", "a", tensor(4, 16)), None),
        (call("torch.conv2d", "x, k, None, (1, 1)", tensor(2, 6, 14, 14)), ONE_CONV),
        (
            call(CONVOLUTION, "x, k, None, [1], [0], [1], False", tensor(2, 6, 14, 14)),
            ONE_CONV,
        ),
        (
            call(CONVOLUTION, "x, t, None, [2], [0], [1], True", tensor(2, 6, 32, 32)),
            2 * 2 * 16 * 16 * (3 * 6 * 2 * 2),
        ),
        (
            call(
                "aten.convolution_backward.default",
                "g, x, k, [6], [1], [0], [1], False, [0], 1, [True, True, False]",
                None,
            ),
            2 * ONE_CONV,
        ),
        (
            call("aten._scaled_dot_product_flash_attention.default", "q, kv, kv", None),
            ONE_ATTENTION,
        ),
        (
            call("torch._C._nn.scaled_dot_product_attention", "q, kv, kv", tensor(2, 4, 10, 16)),
            ONE_ATTENTION,
        ),
    ],
)
def test_flops(node: Node, flops: int | None) -> None:
    assert is_counted(node)
    assert count_flops(node, KNOWN) == flops


@pytest.mark.parametrize("target", ["aten.add.Tensor", "mylib.linear.default", "_operator.getitem"])
def test_other_ops_are_not_counted(target: str) -> None:
    assert not is_counted(call(target, "a, b", tensor(4, 8)))


def test_bytes_and_kinds() -> None:
    def node(name: str, op: str, target: str, out: TensorInfo, **fields: str) -> Node:
        return Node(name, op, target, outputs=(out,), **fields)  # type: ignore[arg-type]

    graph = Graph(
        (
            node("x", "placeholder", "L_x_", tensor(4, 8), source="L['x']"),
            node("w", "placeholder", "L_w_", tensor(8, 16), source="L['m']._parameters['weight']"),
            node("mm", "call_function", "torch.mm", tensor(4, 16), arguments="x, w"),
            node("t", "call_method", "t", tensor(16, 4), arguments="mm"),
            node("add_", "call_method", "add_", tensor(16, 4), arguments="t, 1"),
            node("sin", "call_function", "torch.sin", tensor("s0", 4), arguments="t"),
            node("out", "call_function", "torch.cos", tensor(2, 2), arguments="t"),
        )
    )
    seen = graph_statistics([graph], ["out"])
    assert seen.ops == 5
    assert (seen.inputs, seen.parameters) == (Amount(128), Amount(512))
    # The view and the op in place need no memory; the symbolic one is unknown.
    assert seen.intermediates == Amount(256, unknown=1)
    assert seen.intermediates.at_least
    assert seen.outputs == Amount(16)
    assert (seen.flops, seen.counted_ops) == (Amount(2 * 4 * 16 * 8), 1)
    assert seen.dtypes == {"float32": 5}
    assert graph_statistics([]).ops == 0


def figures(function: Callable[..., Any], *inputs: Any, backend: str = "aot_eager") -> GraphFigures:
    import torch

    import compilescope

    torch._dynamo.reset()
    with compilescope.capture() as seen:
        torch.compile(function, backend=backend)(*inputs).sum().backward()
    torch._dynamo.reset()
    return only(seen.run)


def only(run: Run) -> GraphFigures:
    (graph,) = staged_graphs(run)
    return graph_figures(graph, StageReader(run, Sources(run)))


def counted_by_torch(function: Callable[..., Any], *inputs: Any) -> tuple[int, int]:
    """Operations of the forward pass, and of both."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # torch's counter does not know the CPU's fused attention; the plain one it counts.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        out = function(*inputs)
        forward = counter.get_total_flops()
        out.sum().backward()
    return forward, counter.get_total_flops()


def models() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    import torch
    from torch import nn

    torch.manual_seed(0)
    image = torch.randn(2, 3, 16, 16)
    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2),
        nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Flatten(), nn.Linear(784, 5),
    )  # fmt: skip
    attention = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    perceptron = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))

    def products(a: Any, b: Any) -> Any:
        return torch.einsum("bij,bjk->bik", a, b) + torch.baddbmm(a, b, b) @ b[0]

    batches = [torch.randn(2, 4, 4, requires_grad=True) for _ in range(2)]
    return {
        "perceptron": (perceptron, (torch.randn(4, 16),)),
        "convolutions": (convolutions, (image,)),
        "attention": (attention, (torch.randn(2, 8, 32),)),
        "products": (products, tuple(batches)),
    }


@pytest.mark.torch
@pytest.mark.parametrize("name", ["perceptron", "convolutions", "products"])
def test_flops_agree_with_torchs_own_counter(name: str) -> None:
    model, inputs = models()[name]
    forward, both = counted_by_torch(model, *inputs)
    seen = figures(model, *inputs)
    assert sum(part.flops.known for part in seen.forward) == forward
    assert seen.flops == Amount(both)
    # What Dynamo caught says the same of the forward pass.
    assert seen.caught is not None and seen.caught.flops == Amount(forward)


@pytest.mark.torch
def test_attention_agrees_with_torchs_own_counter() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model, inputs = models()["attention"]
    _, both = counted_by_torch(model, *inputs)
    with sdpa_kernel(SDPBackend.MATH):
        seen = figures(model, *inputs)
    assert seen.flops == Amount(both)
    fused = figures(model, *inputs)
    assert fused.forward[0].flops == seen.forward[0].flops
    # At Dynamo's level the products hide in one op: that is said, not counted as nothing.
    assert seen.caught is not None and seen.caught.flops.at_least


@pytest.mark.torch
def test_dynamic_shapes_are_unknown() -> None:
    import torch

    import compilescope

    torch._dynamo.reset()
    x, w = torch.randn(5, 8), torch.randn(8, 8)
    with compilescope.capture() as seen:
        torch.compile(lambda x, w: (x @ w).relu(), backend="aot_eager", dynamic=True)(x, w)
    torch._dynamo.reset()
    found = only(seen.run)
    assert found.flops == Amount(0, unknown=1)
    assert found.caught is not None and found.caught.inputs == Amount(0, unknown=2)
