"""What a portable graph tells of memory, on real graphs of Dynamo's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compilescope.instrument.torchapi.graphs.fx import portable  # noqa: E402
from compilescope.knowledge.rules.hardware.memory import peak_memory  # noqa: E402
from compilescope.record.graph import Graph, Node, decode_graph, encode_graph  # noqa: E402

pytestmark = pytest.mark.torch


def graph_of(function: Callable[..., Any], *inputs: Any, **options: Any) -> Graph:
    """The graph of a function that compiles as one."""
    graphs: list[Graph] = []

    def backend(module: Any, example_inputs: Any) -> Any:
        graphs.append(portable(module, saved=True))
        return module.forward

    torch._dynamo.reset()
    torch.compile(function, backend=backend, fullgraph=True, **options)(*inputs)
    (graph,) = graphs
    assert decode_graph(encode_graph(graph)) == graph
    return graph


def named(graph: Graph, word: str) -> Node:
    return next(node for node in graph.nodes if word in node.target)


def storages(graph: Graph) -> dict[str, int | None]:
    return {node.target: node.outputs[0].storage for node in graph.nodes if node.outputs}


def test_views_and_in_place_operators_share_a_storage() -> None:
    def f(x: Any) -> Any:
        y = x.sin()
        z = y.view(8).add_(1)
        return z[2:].cos()

    graph = graph_of(f, torch.randn(2, 4))
    at = storages(graph)
    assert at["view"] == at["sin"] == at["add_"] == at["_operator.getitem"]
    assert len({at["L_x_"], at["sin"], at["cos"]}) == 3
    assert {n.outputs[0].storage_bytes for n in graph.nodes if n.target in ("sin", "view")} == {32}


def test_what_is_split_lies_in_one_storage() -> None:
    graph = graph_of(lambda x: torch.add(*x.sin().chunk(2)), torch.randn(4, 4))
    chunk = named(graph, "chunk")
    assert len(chunk.outputs) == 2 and len({t.storage for t in chunk.outputs}) == 1


def test_views_of_one_input_are_one_input() -> None:
    base = torch.randn(100, 10)
    graph = graph_of(lambda a, b: a + b, base[:10], base[10:20])
    first, second = (node.outputs[0] for node in graph.nodes[:2])
    assert first.storage == second.storage and first.storage_bytes == 4000
    assert peak_memory(graph).inputs_bytes == 800


def test_autograd_keeps_what_it_needs() -> None:
    x = torch.randn(8, 8, requires_grad=True)
    graph = graph_of(lambda x: (x.exp() * 2).relu(), x)
    kept = {node.target: [t.storage for t in node.saved] for node in graph.nodes if node.saved}
    at = storages(graph)
    # exp and relu keep their results; a product with a number keeps only that number.
    assert kept.pop("_operator.mul") not in ([at["exp"]], [at["_operator.mul"]])
    assert kept == {"exp": [at["exp"]], "relu": [at["relu"]]}
    with torch.no_grad():
        graph = graph_of(lambda x: (x.exp() * 2).relu(), x)
    assert not any(node.saved for node in graph.nodes)


def test_what_leads_to_no_result_is_not_kept() -> None:
    def f(x: Any) -> Any:
        unused = x.exp().sin()
        return x.cos(), unused.detach()

    graph = graph_of(f, torch.randn(8, 8, requires_grad=True))
    assert [node.target for node in graph.nodes if node.saved] == ["cos"]


def test_a_checkpoint_keeps_what_it_is_given_and_holds_a_graph() -> None:
    def body(x: Any) -> Any:
        return x.exp().sin().cos()

    def f(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(body, x.relu(), use_reentrant=False)

    graph = graph_of(f, torch.randn(8, 8, requires_grad=True))
    at = storages(graph)
    wrapped = named(graph, "checkpoint")
    assert [t.storage for t in wrapped.saved] == [at["relu"]]
    (inner,) = wrapped.graphs
    assert [node.target for node in inner.nodes if node.op == "call_method"] == [
        "exp", "sin", "cos",
    ]  # fmt: skip
    assert named(graph, "wrap_body").no_tensor
    # x, its relu, and two values of the body at once, of which it gives one. None of them is kept.
    found = peak_memory(graph)
    assert (found.node, found.peak_bytes) == (wrapped.name, 4 * 256)


def test_branches_are_graphs() -> None:
    def f(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    graph = graph_of(f, torch.randn(4))
    branches = named(graph, "higher_order.cond").graphs
    assert len(branches) == 2
    assert named(branches[0], "sin").op == named(branches[1], "cos").op == "call_method"


def test_a_vmap_has_the_storages_of_what_it_maps() -> None:
    graph = graph_of(lambda x: torch.vmap(lambda row: row * 2)(x.sin()), torch.randn(4, 8))
    at = storages(graph)
    assert at["torch._functorch.predispatch._add_batch_dim"] == at["sin"]
    assert all(node.outputs[0].storage is not None for node in graph.nodes if node.outputs)


def test_sizes_that_are_dynamic_have_no_bytes() -> None:
    graph = graph_of(lambda x: x.sin() + 1, torch.randn(4, 8), dynamic=True)
    made = [node for node in graph.nodes if node.op.startswith("call_") and node.outputs]
    assert all(node.outputs[0].storage is not None for node in made)
    assert all(node.outputs[0].storage_bytes is None for node in made)
    assert peak_memory(graph).unknown


def test_constants_and_numbers() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * torch.tensor([1.0, 2.0]) + x.size(0)

    graph = graph_of(Model(), torch.randn(4, 2), dynamic=True)
    assert named(graph, "tensor").outputs
    for node in graph.nodes:
        assert node.outputs or node.no_tensor or node.op == "output", node


def test_a_function_that_torch_made_within_another_has_its_own_name() -> None:
    graph = graph_of(lambda x: torch.nn.functional.max_pool2d(x, 2), torch.randn(1, 1, 4, 4))
    assert named(graph, "pool").target == "torch.nn.functional.max_pool2d"


def test_a_sparse_tensor_has_no_storage() -> None:
    from compilescope.instrument.torchapi.graphs.fx import Storages, tensor_info

    info = tensor_info(torch.eye(3).to_sparse(), Storages())
    assert (info.storage, info.storage_bytes, info.stride) == (None, None, None)
