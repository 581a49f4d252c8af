"""Peak memory from liveness, on graphs small enough to do it by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.knowledge.rules.hardware.memory import peak_memory
from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.stack import Frame

HERE = Frame("model.py", 7, "forward", source="y = f(x)")


def block(size: int, storage: int | None = None, **fields: Any) -> TensorInfo:
    """So many bytes, in a storage of its own size."""
    whole = fields.pop("whole", size)
    return TensorInfo((size,), "uint8", (1,), "cpu", size, storage, whole, **fields)


def given(name: str, *tensors: TensorInfo) -> Node:
    return Node(name, "placeholder", name, (), tensors)


def step(name: str, inputs: str, *tensors: TensorInfo, **fields: Any) -> Node:
    target = fields.pop("target", "torch.f")
    names = tuple(inputs.split())
    return Node(name, "call_function", target, names, tensors, HERE, **fields)


def done(inputs: str) -> Node:
    return Node("output", "output", "output", tuple(inputs.split()))


def peak(*nodes: Node) -> int:
    return peak_memory(Graph(nodes)).peak_bytes


def test_a_value_goes_after_its_last_use() -> None:
    chain = [given("x", block(10, 0)), step("a", "x", block(100, 1)), step("b", "a", block(50, 2))]
    found = peak_memory(Graph((*chain, step("c", "b", block(30, 3)), done("c"))))
    # x stays for its caller. With b, a is still there; with c it is gone.
    assert (found.peak_bytes, found.node, found.inputs_bytes) == (160, "b", 10)
    assert found.alive == (("a", 100), ("b", 50), ("x", 10))
    assert found.frame == HERE and found.op == "aten.f"


def test_results_are_kept() -> None:
    nodes = [given("x", block(10, 0)), step("a", "x", block(100, 1)), step("b", "x", block(50, 2))]
    assert peak(*nodes, done("b")) == 110
    assert peak(*nodes, done("a b")) == 160


def test_inputs_and_parameters_are_counted_once() -> None:
    tied = [given("w", block(40, 0)), given("same_w", block(40, 0)), given("x", block(10, 1))]
    constant = Node("c", "get_attr", "c", (), (block(5, 2),))
    found = peak_memory(Graph((*tied, constant, done("x"))))
    assert found.inputs_bytes == found.peak_bytes == 55


def test_a_view_keeps_its_base_and_makes_nothing() -> None:
    nodes = [
        given("x", block(10, 0)),
        step("a", "x", block(100, 1)),
        step("v", "a", block(20, 1, whole=100), target="view"),
        step("b", "x", block(50, 2)),
        step("c", "v b", block(1, 3)),
        done("c"),
    ]
    assert peak(*nodes) == 10 + 100 + 50 + 1


def test_an_in_place_operator_makes_nothing() -> None:
    nodes = [
        given("x", block(10, 0)),
        step("a", "x", block(100, 1)),
        step("b", "a x", block(100, 1), target="_operator.iadd"),
        done("b"),
    ]
    assert peak(*nodes) == 110


def test_a_part_of_a_large_input_counts_as_that_part() -> None:
    part = TensorInfo((4, 8), "uint8", (8, 1), "cpu", 32, 0, 10_000)
    assert peak(given("x", part), done("x")) == 32
    # With gaps it is what lies between its first and its last element.
    gappy = TensorInfo((4, 8), "uint8", (100, 1), "cpu", 32, 0, 10_000)
    assert peak(given("x", gappy), done("x")) == 308
    spread = TensorInfo((400, 8), "uint8", (0, 1), "cpu", 3200, 0, 8)
    assert peak(given("x", spread), done("x")) == 8


def test_all_results_of_a_node_are_there_until_they_are_picked() -> None:
    parts = (block(60, 1), block(40, 2))
    nodes = [
        given("x", block(10, 0)),
        step("s", "x", *parts, target="torch.split"),
        step("p", "s", parts[1], target="_operator.getitem"),
        step("a", "p", block(30, 3)),
        step("b", "a", block(60, 4)),
        done("b"),
    ]
    # s: 10 + 100. a: 60 has gone with s, which leaves 10 + 40 + 30. b: 10 + 30 + 60.
    assert peak(*nodes) == 110
    assert peak(*nodes[:4], step("b", "a", block(75, 4)), done("b")) == 115


def test_what_nobody_uses_goes_at_once() -> None:
    nodes = [given("x", block(10, 0)), step("a", "x", block(100, 1)), step("b", "x", block(90, 2))]
    assert peak(*nodes, done("x")) == 110


def test_what_autograd_saves_stays() -> None:
    nodes = [
        given("x", block(10, 0)),
        step("a", "x", block(100, 1), saved=(block(100, 1), block(10, 0), block(7, 9))),
        step("b", "a", block(50, 2)),
        step("c", "b", block(60, 3)),
        done("c"),
    ]
    found = peak_memory(Graph(tuple(nodes)))
    assert (found.peak_bytes, found.node) == (10 + 100 + 7 + 50 + 60, "c")
    assert found.saved_bytes == 107


def test_what_is_made_on_the_way() -> None:
    calls = (
        Call("aten.t.default", (), (block(500),)),
        Call("aten.clone.default", (), (block(40),)),
        Call("aten.mul_.Tensor", (), (block(40),)),
        Call("aten.bmm.default", (), (block(100),)),
    )
    node = step("a", "x", block(100, 1), calls=calls)
    assert peak(given("x", block(10, 0)), node, done("a")) == 150


def test_a_node_that_calls_no_operator_gives_what_it_was_given() -> None:
    nodes = [
        given("x", block(10, 0)),
        step("a", "x", block(100, 1)),
        step("d", "a", block(100, 2), target="torch.nn.functional.dropout", calls=()),
        step("v", "d", block(100, 2), saved=(block(100, 2),)),
        step("b", "v", block(50, 3)),
        done("b"),
    ]
    assert peak(*nodes) == 160


def test_a_convolution_of_the_cpu_copies_what_it_works_on() -> None:
    image = TensorInfo((1, 8, 4, 4), "float32", (128, 16, 4, 1), "cpu", 512)
    weight = TensorInfo((8, 8, 3, 3), "float32", (72, 9, 3, 1), "cpu", 2304)

    def passing(call: Call) -> int:
        node = step("a", "x", block(512, 1), calls=(call,))
        return peak(given("x", block(1, 0)), node, done("a")) - (1 + 512)

    call = Call("aten.convolution.default", (image, weight), (image,))
    assert passing(call) == 512 + 2304
    last = msgspec.structs.replace(image, stride=(128, 1, 32, 8))
    assert passing(Call(call.op, (last, weight), (last,))) == 2304
    elsewhere = tuple(msgspec.structs.replace(t, device="cuda:0") for t in (image, weight))
    assert passing(Call(call.op, elsewhere, (image,))) == 0
    backward = Call("aten.convolution_backward.default", (image, image, weight), (image, weight))
    # Of its two results only one is a result of the node here.
    assert passing(backward) == 512 + 2304 - 512 + 2304
    norm = "aten.native_batch_norm_backward.default"
    assert passing(Call(norm, (image, image, weight), (image,))) == 512
    assert passing(Call(norm, (image, last, weight), (image,))) == 0


def test_a_graph_within() -> None:
    inner = Graph(
        (
            given("p", block(10, 0)),
            step("a", "p", block(100, 1)),
            step("b", "a", block(30, 2)),
            done("b"),
        )
    )
    outer = [given("x", block(10, 0)), step("h", "x", block(30, 1), graphs=(inner,)), done("h")]
    # Within it a and b are there at once; b is what it gives.
    assert peak(*outer) == 140


def test_a_size_that_is_not_known() -> None:
    odd = TensorInfo(("s0",), "uint8", (1,), "cpu", None, 1)
    nodes = [given("x", block(10, 0)), step("a", "x", odd), step("b", "a"), done("b")]
    found = peak_memory(Graph(tuple(nodes)))
    assert found.unknown == ("a", "b") and found.peak_bytes == 10


def test_without_storages_the_operators_tell() -> None:
    def plain(*shape: int, stride: tuple[int, ...] | None = None) -> TensorInfo:
        size = 1
        for each in shape:
            size *= each
        step_of = stride or ((shape[-1], 1) if len(shape) == 2 else (1,))
        return TensorInfo(shape, "uint8", step_of, "cpu", size)

    def texts(*lines: tuple[str, str, str, TensorInfo]) -> Graph:
        nodes = [
            Node(name, "call_function", target, (), (result,), arguments=arguments)
            for name, target, arguments, result in lines
        ]
        return Graph((given("x", plain(8, 8)), *nodes))

    mul = ("a", "aten.mul.Tensor", "x, 2", plain(8, 8))
    assert peak_memory(texts(mul)).peak_bytes == 128
    view = ("v", "aten.view.default", "a, [64]", plain(64))
    assert peak_memory(texts(mul, view)).peak_bytes == 128
    in_place = ("v", "aten.add_.Tensor", "a, 1", plain(8, 8))
    assert peak_memory(texts(mul, in_place)).peak_bytes == 128
    dense = ("v", "reshape", "a, [64]", plain(64))
    assert peak_memory(texts(mul, dense)).unknown == ()
    turned = ("t", "aten.t.default", "a", plain(8, 8, stride=(1, 8)))
    copied = ("v", "reshape", "t, [64]", plain(64))
    assert peak_memory(texts(mul, turned, copied)).unknown == ("v",)


def test_an_empty_graph() -> None:
    assert peak_memory(Graph(())).peak_bytes == 0
