"""Constraints: each on its own samples, all keys of a device, and how they are run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec
import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.rules.constraints._samples import graph, node, placeholder, tensor
from compilescope.knowledge.rules.constraints.dtype import DtypeConstraint
from compilescope.knowledge.rules.constraints.layout import LayoutConstraint
from compilescope.knowledge.rules.constraints.memory import MemoryConstraint
from compilescope.knowledge.rules.constraints.operators import UnsupportedOpsConstraint
from compilescope.knowledge.rules.constraints.shape import ShapeConstraint
from compilescope.knowledge.rules.hardware.checks import all_rules, check_graph, constraints_of
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    values,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns, canonical
from compilescope.knowledge.rules.hardware.operands import is_dense, overlaps
from compilescope.record.device import Alignment, Condition, Device
from compilescope.record.devicefile import parse_device
from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.stack import Frame

RULES = all_rules()
HERE = Frame("model.py", 7, "forward", source="y = f(x)")
INSIDE = Frame("/site-packages/torch/nn/modules/container.py", 3, "forward", origin="torch")


def check(checked: Graph, *constraints: Constraint) -> list[Breach]:
    return check_graph(checked, constraints)


def op(name: str, target: str, *outputs: TensorInfo, **fields: Any) -> Node:
    """A node as Dynamo makes it; its ATen operators are named in `calls`."""
    calls = fields.pop("calls", None)
    if calls is not None:
        calls = tuple(Call(c, (), outputs) if isinstance(c, str) else c for c in calls)
    kind = fields.pop("op", "call_function")
    inputs = fields.pop("inputs", ())
    return Node(name, kind, target, inputs, outputs, HERE, calls=calls, **fields)


# Each rule on its own.


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_samples(rule: ConstraintRule) -> None:
    made = rule.make(parse_device(rule.device, rule.id))
    assert made and all(constraint.id == rule.id for constraint in made)
    bad = check_graph(rule.sample.bad, made)
    assert [breach.severity for breach in bad] == ["error"]
    assert bad[0].rule == rule.id
    assert bad[0].found and bad[0].allowed and bad[0].remedy and bad[0].frame is not None
    assert check_graph(rule.sample.good, made) == []
    unclear = check_graph(rule.sample.unclear, made)
    assert unclear and {breach.severity for breach in unclear} == {"unknown"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_device_that_asks_for_nothing_makes_none(rule: ConstraintRule) -> None:
    assert rule.make(Device(name="x")) == []


def leaves(table: Any, path: str = "") -> Iterable[str]:
    for field in msgspec.structs.fields(table):
        kinds = [field.type, *get_args(field.type)]
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)]
        key = f"{path}{field.name}"
        if inner:
            yield from leaves(inner[0], f"{key}.")
        else:
            yield key


def test_every_key_is_read_by_some_rule() -> None:
    keys = set(leaves(Device)) - {"name", "title", "note"}
    assert keys == {key for rule in RULES for key in rule.reads}


WIDE = graph(op("n", "aten.mul", tensor((8, 50), "int64"), calls=["aten.mul.Tensor"]))
PRODUCT = graph(
    op("a", "aten.mul", tensor((8, 50)), calls=["aten.mul.Tensor"]),
    op("b", "aten.mm", tensor((16, 8)), calls=["aten.mm.default"]),
)
GROUPED = graph(
    op("c", "conv2d", tensor((4, 4)), calls=[Call("aten.convolution.default", (), (), {"g": 2})])
)
TURNED = graph(node("m", "aten.mul.Tensor", tensor((8, 4), stride=(1, 8))))
SPREAD = graph(node("m", "aten.mul.Tensor", tensor((8, 4), stride=(0, 1))))
HEADS = graph(node("m", "aten.mul.Tensor", tensor((2, 4, 8, 16), stride=(512, 16, 64, 1))))
SPACED = graph(node("m", "aten.mul.Tensor", tensor((8, 4), stride=(10, 2))))
KEYS = {
    "dtypes.supported": ("[dtypes]\nsupported = ['int32']", WIDE, "int64"),
    "dtypes.per_op": ("[dtypes.per_op]\n'aten.mul' = ['int32']", WIDE, "int64"),
    "dtypes.integer_width": ("[dtypes]\ninteger_width = 32", WIDE, "int64"),
    "dtypes.wider_integers": (
        "[dtypes]\ninteger_width = 32\nwider_integers = 'narrowed'",
        WIDE,
        "silently narrowed",
    ),
    "shapes.max_rank": ("[shapes]\nmax_rank = 1", WIDE, "rank 2"),
    "shapes.max_size": ("[shapes]\nmax_size = 49", WIDE, "size 50"),
    "shapes.dynamic": (
        "[shapes]\ndynamic = false",
        graph(node("m", "aten.mul.Tensor", tensor(("s0", 4)))),
        "s0 in [s0, 4] is known only at run time",
    ),
    "shapes.alignment.multiple": ("[[shapes.alignment]]\nmultiple = 16", WIDE, "size 50"),
    "shapes.alignment.dims": (
        "[[shapes.alignment]]\nmultiple = 16\ndims = [0]",
        WIDE,
        "size 8, dimension 0",
    ),
    "shapes.alignment.ops": (
        "[[shapes.alignment]]\nmultiple = 16\nops = ['aten.mm']",
        PRODUCT,
        "size 8, dimension 1 of [16, 8]",
    ),
    "shapes.alignment.otherwise": (
        "[[shapes.alignment]]\nmultiple = 16\notherwise = 'padded'",
        WIDE,
        "size 50",
    ),
    "layout.formats": ("[layout]\nformats = ['contiguous']", TURNED, "strides (1, 8)"),
    "layout.max_rank": ("[layout]\nmax_rank = 1", TURNED, "strides (1, 8)"),
    "layout.inner_stride_one": ("[layout]\ninner_stride_one = true", TURNED, "strides (1, 8)"),
    "layout.dense_rows": (
        "[layout]\nformats = ['contiguous']\ndense_rows = true",
        SPACED,
        "strides (10, 2)",
    ),
    "layout.reordered_rows": (
        "[layout]\nformats = ['contiguous']\ndense_rows = true\nreordered_rows = 'copied'",
        HEADS,
        "strides (512, 16, 64, 1)",
    ),
    "layout.overlapping": ("[layout]\noverlapping = false", SPREAD, "strides (0, 1)"),
    "memory.peak_bytes": ("[memory]\npeak_bytes = 100", WIDE, "3.1 KiB at once"),
    "memory.tensor_bytes": ("[memory]\ntensor_bytes = 100", WIDE, "3.1 KiB: int64 [8, 50]"),
    "ops.denied": ("[ops]\ndenied = ['aten.mul']", WIDE, "aten.mul.Tensor, denied by aten.mul"),
    "ops.allowed": ("[ops]\nallowed = ['aten.add']", WIDE, "aten.mul.Tensor"),
    "ops.conditions.op": (
        "[[ops.conditions]]\nop = 'aten.convolution'\nwhen = 'g > 1'",
        GROUPED,
        "g = 2",
    ),
    "ops.conditions.when": (
        "[[ops.conditions]]\nop = 'aten.convolution'\nwhen = 'g == 2'",
        GROUPED,
        "g = 2",
    ),
    "ops.conditions.reason": (
        "[[ops.conditions]]\nop = 'aten.convolution'\nwhen = 'g > 1'\nreason = 'Too few wires.'",
        GROUPED,
        "g = 2",
    ),
}


def test_there_is_a_case_for_every_key() -> None:
    assert set(KEYS) == {key for rule in RULES for key in rule.reads}


@pytest.mark.parametrize("key", KEYS)
def test_every_key_has_an_effect(key: str) -> None:
    text, checked, found = KEYS[key]
    device = parse_device(f"name = 'x'\n{text}\n", "x")
    (breach,) = check_graph(checked, constraints_of(device))
    assert found in breach.found
    warns = key in (
        "dtypes.wider_integers", "shapes.alignment.otherwise", "layout.reordered_rows"
    )  # fmt: skip
    assert breach.severity == ("warning" if warns else "error")
    if key == "ops.conditions.reason":
        assert breach.remedy == "Too few wires."


# Running them.


class NoTanh(Constraint):
    id = "no-tanh"

    def check_node(self, node: Node) -> Breach | None:
        if "tanh" in node.target:
            return self.breach(node, found="tanh", allowed="no tanh", remedy="Use relu.")
        return None


def test_a_subclass_with_one_method() -> None:
    checked = graph(placeholder("x", tensor((4,))), op("t", "torch.tanh", inputs=("x",)))
    (breach,) = check(checked, NoTanh())
    assert (breach.rule, breach.node, breach.op, breach.frame) == (
        "no-tanh", "t", "aten.tanh", HERE,
    )  # fmt: skip


def test_they_compose() -> None:
    checked = graph(op("t", "torch.tanh", tensor((4, 50), "float64"), calls=["aten.tanh.default"]))
    aligned = ShapeConstraint(16, dims=[-1])
    found = check(checked, aligned, NoTanh(), DtypeConstraint(["float32"]))
    assert [breach.rule for breach in found] == ["shape", "no-tanh", "dtype"]


class Raising(Constraint):
    """Breaks one node, then fails at others."""

    def check_node(self, node: Node) -> Iterable[Breach]:
        if node.name == "a":
            yield self.breach(node, found="a", allowed="b")
        raise KeyError(f"no table\nfor {node.name}")


def test_a_constraint_that_raises_is_told_once_and_the_rest_goes_on() -> None:
    checked = graph(*(op(name, "torch.tanh", tensor((4,))) for name in "abc"))
    found = check(checked, Raising(), NoTanh())
    assert [(b.rule, b.severity) for b in found] == [
        ("Raising", "error"),
        ("Raising", "unknown"),
        *[("no-tanh", "error")] * 3,
    ]
    failure = found[1]
    assert failure.node == "a" and failure.frame == HERE
    assert failure.found == (
        "the constraint Raising failed with KeyError: 'no table\\nfor a', here and at 2 more nodes"
    )


class RaisingOnGraphs(Constraint):
    def check(self, graph: Graph) -> Iterable[Breach]:
        raise ZeroDivisionError


class Babbling(Constraint):
    def check_node(self, node: Node) -> Any:
        return ["it is bad"]


@pytest.mark.parametrize(
    ("constraint", "words"),
    [(RaisingOnGraphs(), "ZeroDivisionError"), (Babbling(), "it returned str 'it is bad'")],
)
def test_other_ways_to_fail(constraint: Constraint, words: str) -> None:
    (breach,) = check(graph(op("t", "torch.tanh", tensor((4,)))), constraint)
    assert breach.severity == "unknown" and words in breach.found


@pytest.mark.parametrize("given", [NoTanh, "tanh", lambda graph: []])
def test_what_is_no_constraint_is_said_so(given: Any) -> None:
    with pytest.raises(ToolError, match=r"is a class|is not a constraint"):
        check_graph(graph(), [given])


# Where a breach lies.


def test_an_input_lies_where_it_is_first_used() -> None:
    wrapper = Frame("wrapper.py", 1, "call")
    checked = graph(
        Node("x", "placeholder", "L_x_", (), (tensor((4,), "float64"),), wrapper),
        op("y", "torch.tanh", tensor((4,)), inputs=("x",)),
    )
    (breach,) = check(checked, DtypeConstraint(["float32"]))
    assert breach.node == "x" and breach.frame == HERE


def test_torchs_own_lines_are_never_shown() -> None:
    inner = Node("y", "call_function", "torch.tanh", (), (tensor((4,), "float64"),), INSIDE)
    called = Frame("train.py", 9, "<module>")
    constraint = DtypeConstraint(["float32"])
    (breach,) = check_graph(graph(inner), [constraint], called_at=called)
    assert breach.frame == called
    (breach,) = check(graph(inner), constraint)
    assert breach.frame is None
    after = msgspec.structs.replace(inner, name="z", inputs=("a",))
    (_, breach) = check(graph(op("a", "sin", tensor((4,), "float64")), after), constraint)
    assert breach.node == "z" and breach.frame == HERE


def test_inputs_are_named_as_their_author_knows_them() -> None:
    bad = tensor((4,), "float64")
    sources = {
        "L['x']": "input x",
        "L['self']._modules['fc']._parameters['weight']": "parameter fc.weight",
        "L['self'].layers[0].scale": "input layers.0.scale",
    }
    for source, name in sources.items():
        checked = graph(Node("p", "placeholder", "L_p_", (), (bad,), source=source))
        (breach,) = check(checked, DtypeConstraint(["float32"]))
        assert breach.op == name
    (breach,) = check(graph(placeholder("primals_1", bad)), DtypeConstraint(["float32"]))
    assert breach.op == "input primals_1"


# One fact is told once.


def test_equal_results_of_one_node_are_one_fact() -> None:
    pieces = [tensor((4, 3), "float64", storage=1), tensor((4, 3), "float64", storage=2)]
    checked = graph(
        op("c", "torch.var_mean", *pieces, calls=["aten.var_mean.correction"]),
        op("p", "_operator.getitem", pieces[1], inputs=("c",), calls=[]),
    )
    found = check(
        checked,
        DtypeConstraint(["float32"]),
        ShapeConstraint(8, dims=[-1]),
        LayoutConstraint(formats=["channels_last"]),
        MemoryConstraint(max_tensor_bytes=4),
    )
    assert [(b.rule, b.node) for b in found] == [("dtype", "c"), ("shape", "c"), ("memory", "c")]


def test_a_pick_is_no_operator_but_a_slice_is() -> None:
    whole, part = tensor((8, 8)), tensor((8,), stride=(8,))
    known = graph(
        op("x", "sin", whole, calls=["aten.sin.default"]),
        op("s", "_operator.getitem", part, inputs=("x",), calls=["aten.select.int"]),
    )
    (breach,) = check(known, UnsupportedOpsConstraint(["aten.select"]))
    assert (breach.node, breach.op) == ("s", "aten.select.int")
    unknown = graph(
        op("x", "split", tensor((4, 8)), tensor((4, 8))),
        op("p", "_operator.getitem", tensor((4, 8)), inputs=("x",)),
        op("s", "_operator.getitem", tensor((8,)), inputs=("p",)),
    )
    assert [value.name for value in values(unknown)] == ["x", "s"]


def test_an_operator_is_reported_through_its_node_or_its_call_but_not_both() -> None:
    checked = graph(op("s", "torch.sort", tensor((4,)), calls=["aten.sort.default"]))
    for pattern in ("aten.sort", "torch.sort", "sort", "aten.sort.default", "aten.so*"):
        (breach,) = check(checked, UnsupportedOpsConstraint([pattern], supported_ops=["aten.add"]))
        assert breach.op == "aten.sort.default"


def test_a_dynamic_size_that_is_refused_is_not_also_unclear() -> None:
    checked = graph(node("m", "aten.mul.Tensor", tensor(("s0", "s1"))))
    (breach,) = check(checked, ShapeConstraint(16, max_size=64, dynamic=False))
    assert breach.severity == "error"


def test_the_strictest_of_several_alignments_is_told() -> None:
    rules = [Alignment(multiple=8), Alignment(multiple=16), Alignment(multiple=12)]
    (breach,) = check(graph(node("m", "aten.mul.Tensor", tensor((4, 50)))), ShapeConstraint(rules))
    assert breach.allowed == "multiples of 16" and "Pad 50 to 96" in breach.remedy


def test_a_format_that_is_too_wide_is_one_fact() -> None:
    constraint = DtypeConstraint(
        ["float32"], integer_width=32, per_op={"aten.mul": ["float32", "int32"]}
    )
    (breach,) = check(WIDE, constraint)
    assert breach.allowed == "integers up to 32 bits"


# Views, and who reads them.


def read(by: str, *, shape: Any = (8, 4), stride: Any = (1, 8), gives: Any = (8, 4)) -> list[str]:
    """The verdict on an operator that reads a tensor that lies like this."""
    given = tensor(shape, stride=stride)
    call = Call(by, (given,), (tensor(gives),))
    checked = graph(
        placeholder("x", given), op("r", by, tensor(gives), inputs=("x",), calls=[call])
    )
    return [b.severity for b in check(checked, LayoutConstraint(True))]


def test_a_view_is_judged_by_who_reads_it() -> None:
    assert read("aten.add.Tensor") == ["error"]
    for product in ("aten.mm.default", "aten.addmm.default", "aten.bmm.default"):
        assert read(product, gives=(8, 8)) == []
    assert read("aten.mm.default", stride=(8, 2)) == ["error"]
    assert read("aten.clone.default") == read("aten.zeros_like.default") == []
    assert read("aten.add.Tensor", stride=(0, 1)) == []
    assert read("aten.sum.default", stride=(0, 1), gives=()) == ["error"]
    heads = {"shape": (2, 4, 8, 16), "stride": (512, 16, 64, 1), "gives": (2, 4, 8, 16)}
    assert read("aten._scaled_dot_product_flash_attention_for_cpu.default", **heads) == []
    assert read("aten.add.Tensor", **heads) == ["error"]


def test_dense_rows_may_begin_anywhere() -> None:
    def verdict(*stride: int) -> list[Breach]:
        given = graph(node("m", "aten.mul.Tensor", tensor((8, 4, 2), stride=stride)))
        return check(given, LayoutConstraint(formats=["contiguous"], dense_rows=True))

    assert verdict(8, 2, 1) == verdict(80, 20, 1) == verdict(2, 16, 1) == []
    assert verdict(16, 4, 2) and verdict(1, 16, 8) and verdict(0, 2, 1)


def test_rows_in_another_order_are_copied_first() -> None:
    """Heads moved before positions: only who finds rows by a stride reads them as they lie."""
    layout = LayoutConstraint(formats=["contiguous"], dense_rows=True, reordered_rows="copied")

    def read(
        op_name: str, *stride: int | str, shape: tuple[int | str, ...] = (2, 4, 8, 16)
    ) -> list[Breach]:
        given, made_ = TensorInfo(shape, "float32", stride), TensorInfo(shape, "float32")
        checked = graph(
            placeholder("x", tensor((8,))),
            op("n", op_name, made_, inputs=("x",), calls=[Call(op_name, (given,), (made_,), {})]),
        )
        return check(checked, layout)

    heads = (512, 16, 64, 1)
    (found,) = read("aten.relu.default", *heads)
    assert (found.severity, found.op) == ("warning", "aten.relu.default")
    assert "strides (512, 16, 64, 1)" in found.found and "another order" in found.found
    assert found.allowed == "contiguous, or dense rows in their order"
    assert found.remedy == "Copy this operand first: `.contiguous()`."
    for name in ("aten.bmm.default", "aten.clone.default",
                 "aten._scaled_dot_product_flash_attention_for_cpu.default"):  # fmt: skip
        assert read(name, *heads) == [], name
    for slices in ((512, 128, 16, 1), (1024, 256, 32, 1)):
        assert read("aten.relu.default", *slices) == []
    # No rows at all, which is refused in the same words.
    (turned,) = read("aten.relu.default", 512, 128, 1, 8)
    assert (turned.severity, turned.allowed) == ("error", found.allowed)
    # Sizes that are known when it runs change nothing where the order is sure.
    dynamic = ("s0", 4, "s1", 16)
    (found,) = read("aten.relu.default", "64*s1", 16, 64, 1, shape=dynamic)
    assert found.severity == "warning"
    assert read("aten.relu.default", "64*s1", "16*s1", 16, 1, shape=dynamic) == []
    # How a kernel lays out its own result is for another device to choose, until it is viewed.
    lying = tensor((2, 4, 8, 16), stride=heads)
    whole = Call("aten.addcmul.default", (tensor((2, 4, 8, 16)),), (lying,), {})
    kernel = op("k", "addcmul", lying, inputs=("x",), calls=[whole])
    pick = op("g", "_operator.getitem", lying, inputs=("k",), calls=[])
    view = op("v", "permute", lying, inputs=("k",), calls=["aten.permute.default"])
    for node_, count in ((kernel, 0), (pick, 0), (view, 1)):
        reading = [Call("aten.sin.default", (lying,), (lying,), {})]
        reader = op("r", "sin", lying, inputs=(node_.name,), calls=reading)
        passing = [] if node_ is kernel else [node_]
        found_ = check(graph(placeholder("x", tensor((8,))), kernel, *passing, reader), layout)
        assert len(found_) == count, node_.name
    # A view that the caller gets is read by nobody here.
    view = op("p", "permute", tensor((2, 4, 8, 16), stride=heads), inputs=("x",),
              calls=["aten.permute.default"])  # fmt: skip
    end = Node("output", "output", "output", ("p",))
    assert check(graph(placeholder("x", tensor((2, 8, 4, 16))), view, end), layout) == []


def test_a_returned_view_is_judged_and_a_saved_one_is_not() -> None:
    turned = op("t", "t", tensor((8, 4), stride=(1, 8)), inputs=("x",), calls=["aten.t.default"])
    for unasked, severities in (((), ["error"]), ((0,), [])):
        end = Node("output", "output", "output", ("t",), unasked=unasked)
        checked = graph(placeholder("x", tensor((4, 8))), turned, end)
        assert [b.severity for b in check(checked, LayoutConstraint(True))] == severities


def test_a_result_that_nobody_reads_is_not_judged() -> None:
    both = tensor((4,)), tensor((4,), "int64")
    pooled = op(
        "p",
        "aten.max_pool2d_with_indices.default",
        *both,
        calls=["aten.max_pool2d_with_indices.default"],
    )
    picks = [op(f"g{at}", "_operator.getitem", both[at], inputs=("p",), calls=[]) for at in (0, 1)]
    for inputs, unasked, count in (
        (("g0",), (), 0),
        (("g0", "g1"), (1,), 0),
        (("g0", "g1"), (), 1),
    ):
        end = Node("output", "output", "output", inputs, unasked=unasked)
        assert len(check(graph(pooled, *picks, end), DtypeConstraint(["float32"]))) == count


# Cannot tell is not fine.


def test_a_node_without_metadata_is_unclear_to_every_constraint() -> None:
    blind = graph(Node("n", "call_function", "torch.frob", frame=HERE))
    constraints = [
        DtypeConstraint(["float32"]),
        DtypeConstraint(per_op={"aten.mm": ["float32"]}),
        ShapeConstraint(16),
        ShapeConstraint(16, ops=["aten.mm"]),
        LayoutConstraint(strict_contiguous=True),
        MemoryConstraint(2**30, max_tensor_bytes=2**20),
        UnsupportedOpsConstraint(["aten.sort"]),
        UnsupportedOpsConstraint(supported_ops=["aten.sort"]),
        UnsupportedOpsConstraint(conditions=[Condition(op="aten.mm", when="x > 1")]),
    ]
    for constraint in constraints:
        found = check(blind, constraint)
        assert found and {b.severity for b in found} == {"unknown"}, constraint


def test_constraints_that_ask_for_nothing_say_nothing() -> None:
    blind = graph(Node("n", "call_function", "torch.frob", frame=HERE))
    for constraint in (DtypeConstraint([]), ShapeConstraint(), LayoutConstraint(formats=[])):
        assert check(blind, constraint) == []


def test_a_node_that_is_known_to_give_no_tensor_is_no_matter() -> None:
    checked = graph(
        op("g", "torch._C._set_grad_enabled", calls=[]),
        op("s", "_operator.mul", no_tensor=True, calls=[]),
        op("t", "size", no_tensor=True),
    )
    constraints = [
        DtypeConstraint(["float32"], per_op={"aten.mul": ["float32"]}),
        ShapeConstraint(16, ops=["aten.mm"]),
        LayoutConstraint(True),
        UnsupportedOpsConstraint(["aten.mul"], supported_ops=["aten.add"]),
    ]
    assert check(checked, *constraints) == []


def test_symbolic_sizes() -> None:
    def verdict(size: str, constraint: Constraint) -> list[str]:
        laid = TensorInfo((8, size), "float32", (size, 1))
        return [b.severity for b in check(graph(node("n", "aten.mul.Tensor", laid)), constraint)]

    assert verdict("16*s0 + 32", ShapeConstraint(8)) == []
    assert verdict("8*s0", ShapeConstraint(16, dims=[1])) == ["unknown"]
    assert verdict("s0", ShapeConstraint(max_size=10)) == ["unknown"]
    assert verdict("s0*s1", LayoutConstraint(True)) == []


@pytest.mark.parametrize(
    ("shape", "stride", "dense"),
    [
        (("s0", 4, "s1"), ("4*s1", "s1", 1), True),
        (("s0", "s1 + 1", 64), ("64*s1 + 64", 64, 1), True),
        (("s0", 4, 8), (32, 1, 4), False),
        (("s0", "s1"), ("2*s1", 1), False),
        ((4, "s1"), ("s2", 1), None),
        ((4, "u0"), ("u1", 1), None),
        ((4, "s0//2"), ("s0//2", 1), True),
        ((1, 1, 5), (77, 3, 1), True),
        ((0, 5), (1, 1), True),
        ((), (), True),
        (("a(" * 200, 2), (2, 1), True),
        (("s0", 4, "s1", "s1"), ("4*s1**2", "s1**2", "s1", 1), True),
        (("s0", "s1 - 2"), ("Max(1, s1 - 2)", 1), True),
        (("s0", 4, "(s1 - 2)**2"), ("4*Max(1, s1 - 2)**2", "Max(1, s1 - 2)**2", 1), True),
        (("s0", 4), ("Max(1, s1)", 1), None),
    ],
)
def test_dense_or_not(shape: Any, stride: Any, dense: bool | None) -> None:
    assert is_dense(TensorInfo(shape, "float32", stride), "contiguous") is dense


@pytest.mark.parametrize(
    ("shape", "stride", "shared"),
    [
        ((4, 4), (0, 1), True),
        ((6, 3), (1, 1), True),
        ((3, 2), (3, 4), False),
        ((2, 2), (4, 1), False),
        ((1, 4), (0, 1), False),
        (("s0", 4), (4, 1), False),
        (("s0", 4), ("s1", 1), None),
        ((400, 300), (3, 4), None),
        ((-5, 10**12), (3, 4), None),  # As only a stranger writes it.
        (("s0", 4, "s1", "s1"), ("4*s1**2", "s1**2", "s1", 1), False),
        (("s0", "s1 - 2", "s1 - 2"), ("Max(1, s1 - 2)**2", "Max(1, s1 - 2)", 1), False),
        (("s0", 4), ("Max(1, s1)", 1), None),
    ],
)
def test_elements_that_share_memory(shape: Any, stride: Any, shared: bool | None) -> None:
    assert overlaps(TensorInfo(shape, "float32", stride)) is shared


def test_layouts_are_for_ranks() -> None:
    only = LayoutConstraint(formats=["channels_last"])
    image = tensor((2, 3, 4, 4), stride=(48, 1, 12, 3))
    bias = tensor((3,))
    assert check(graph(node("n", "aten.relu.default", image, bias)), only) == []
    (breach,) = check(graph(node("n", "aten.relu.default", tensor((2, 3, 4, 4)))), only)
    assert "memory_format=torch.channels_last" in breach.remedy


# Operators by many names.


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("aten.sort.stable", "aten.sort.stable"),
        ("aten::sort.stable", "aten.sort.stable"),
        ("torch.ops.aten.sort", "aten.sort"),
        ("torch.sort", "aten.sort"),
        ("sort", "aten.sort"),
        ("torch.nn.functional.relu", "aten.relu"),
        ("torch._VariableFunctionsClass.conv2d", "aten.conv2d"),
        ("torch._C._nn.linear", "aten.linear"),
        ("torch._C._fft.fft_rfft", "aten.fft_rfft"),
        ("torch.fft.rfft", "aten.fft_rfft"),
        ("torch.Tensor.view", "aten.view"),
        ("_operator.iadd", "aten.add_"),
        ("_operator.truediv", "aten.div"),
        ("__rsub__", "aten.__rsub__"),
        ("__iadd__", "aten.add_"),
        ("builtins.getattr", "builtins.getattr"),
        ("torch.ops.higher_order.cond", "higher_order.cond"),
        ("torch.ops.mylib.op.default", "mylib.op.default"),
        ("torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._enter_autocast"),
    ],
)
def test_one_name_for_an_operator(spelling: str, name: str) -> None:
    assert canonical(spelling) == name


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("aten.sort", ["aten.sort.default", "aten.sort.stable", "sort"], ["aten.argsort.default"]),
        ("aten.sort.stable", ["aten.sort.stable"], ["aten.sort.default", "torch.sort"]),
        ("aten.relu", ["aten.relu_.default", "torch.relu_", "relu"], ["aten.relu6.default"]),
        ("aten.relu_", ["aten.relu_.default"], ["aten.relu.default"]),
        ("aten.add", ["_operator.iadd", "_operator.add", "aten.add_.Tensor"], ["aten.addmm.out"]),
        ("aten._fft_*", ["aten._fft_c2c.default"], ["aten.fft_fft.default"]),
        ("torch.fft.*", ["torch._C._fft.fft_rfft", "aten.fft_fft.default"], ["aten.sort.default"]),
        ("torch.nn.functional.*", ["torch.nn.functional.relu"], ["aten.relu.default"]),
        ("aten::index.Tensor", ["aten.index.Tensor"], ["aten.index_put.default"]),
        ("*", ["aten.relu.default", "relu"], []),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    patterns = OpPatterns([pattern])
    assert [name for name in yes if patterns.match(name) != pattern] == []
    assert [name for name in no if patterns.match(name) is not None] == []


def test_an_allowed_operator_allows_what_it_is_made_of() -> None:
    checked = graph(
        op("l", "torch._C._nn.linear", tensor((4,)), calls=["aten.t.default", "aten.addmm.default"])
    )
    assert check(checked, UnsupportedOpsConstraint(supported_ops=["aten.linear"])) == []
    # Views move nothing: they need not be on the list.
    assert check(checked, UnsupportedOpsConstraint(supported_ops=["aten.addmm"])) == []
    (breach,) = check(checked, UnsupportedOpsConstraint(supported_ops=["aten.mm"]))
    assert breach.op == "aten.addmm.default"
    (breach,) = check(checked, UnsupportedOpsConstraint(["torch.nn.functional.linear"]))
    assert breach.op == "aten.linear"


def test_asking_for_a_size_is_no_operation() -> None:
    call = Call("aten.sym_size.int", (TensorInfo(("s0", 8), "float32"),))
    node = Node("n", "call_function", "aten.sym_size.int", calls=(call,), no_tensor=True)
    asked = UnsupportedOpsConstraint(supported_ops=["aten.mm"])
    assert check_graph(Graph((node,)), [asked]) == []
    denied = UnsupportedOpsConstraint(["aten.sym_size"])
    assert [breach.op for breach in check_graph(Graph((node,)), [denied])] == ["aten.sym_size.int"]


def test_conditions() -> None:
    def verdict(when: str, value: Any, name: str = "aten.convolution") -> list[str]:
        call = Call("aten.convolution.default", (), (), {"groups": value})
        checked = graph(op("c", "torch._VariableFunctionsClass.conv2d", tensor((4,)), calls=[call]))
        case = Condition(op=name, when=when)
        return [b.severity for b in check(checked, UnsupportedOpsConstraint(conditions=[case]))]

    assert verdict("groups > 1", 1) == []
    assert verdict("groups > 1", 2) == ["error"]
    assert verdict("groups > 1", [1, 3]) == ["error"]
    assert verdict("groups > 1", "s0") == ["unknown"]
    assert verdict("groups == 1", "s0") == ["unknown"]
    assert verdict("groups == true", True) == ["error"]
    assert verdict("groups == none", None) == ["error"]
    assert verdict("groups > 1", None) == ["unknown"]
    assert verdict("stride > 1", 1) == ["unknown"]
    # Of a list, also how many there are.
    assert verdict("len(groups) > 2", [1, 1, 1]) == ["error"]
    assert verdict("len(groups) > 2", [9, 9]) == []
    assert verdict("len(groups) == 2", ["s0", 1]) == ["error"]
    assert verdict("len(groups) > 2", 3) == ["unknown"]
    # A name that Dynamo knows it by: the argument is found where ATen has it.
    assert verdict("groups > 1", 2, "aten.conv2d") == ["error"]
    assert verdict("groups > 1", 1, "aten.conv2d") == []
    assert verdict("groups > 1", 2, "aten.mm") == []


# Graphs within graphs, and graphs from text.


def test_graphs_within_are_checked_where_they_lie() -> None:
    inner = graph(op("s", "torch.sort", tensor((4, 50), "float64"), calls=["aten.sort.default"]))
    outer = graph(
        op(
            "c", "torch.ops.higher_order.tag_activation_checkpoint", tensor((4, 50)),
            calls=["aten.sort.default"], graphs=(inner,),
        )
    )  # fmt: skip
    found = check(outer, UnsupportedOpsConstraint(["aten.sort"]), DtypeConstraint(["float32"]))
    assert [(b.rule, b.node) for b in found] == [("operators", "s"), ("dtype", "s")]
    # The peak of the whole has that of the part in it: it is told once.
    (breach,) = check(outer, MemoryConstraint(10))
    assert breach.node == "c"
    (breach,) = check(outer, UnsupportedOpsConstraint(["torch.ops.higher_order.*"]))
    assert breach.op == "higher_order.tag_activation_checkpoint"


def test_a_graph_that_was_read_from_text() -> None:
    def line(name: str, target: str, arguments: str, *outputs: TensorInfo) -> Node:
        return Node(name, "call_function", target, (), outputs, arguments=arguments)

    checked = graph(
        placeholder("arg0_1", tensor((4, 50))),
        line("norm", "aten.native_layer_norm.default", "arg0_1, [50], None, None, 1e-5"),
        line("getitem", "_operator.getitem", "norm, 0", tensor((4, 50))),
        line("pool", "aten.avg_pool2d.default", "getitem, ceil_mode = True", tensor((4, 50))),
    )
    found = check(
        checked,
        DtypeConstraint(["float32"]),
        ShapeConstraint(16, dims=[-1], ops=["aten.native_layer_norm"]),
        UnsupportedOpsConstraint(
            ["aten.native_layer_norm"],
            conditions=[Condition(op="aten.avg_pool2d", when="ceil_mode == true")],
        ),
    )
    assert [(b.rule, b.node, b.severity) for b in found] == [
        ("shape", "norm", "error"),
        ("operators", "norm", "error"),
        ("operators", "pool", "error"),
    ]


# Words.


def test_formats_may_be_given_in_many_ways() -> None:
    assert DtypeConstraint(["torch.float16", "half", "fp16"]).allowed == {"float16"}
    with pytest.raises(ValueError, match="'float17' is not a dtype; did you mean float1"):
        DtypeConstraint(["float17"])
    with pytest.raises(ValueError, match="unknown memory format: channel_last"):
        LayoutConstraint(formats=["channel_last"])
    with pytest.raises(ValueError, match="at least 1"):
        ShapeConstraint(0)
    with pytest.raises(ValueError, match="at least one byte"):
        MemoryConstraint(0)


@pytest.mark.parametrize(
    ("checked", "constraint", "remedy"),
    [
        (
            placeholder("p_parameters_weight_", tensor((4,), "float64")),
            DtypeConstraint(["float32", "float16"]),
            "Convert the model: `model.to(torch.float32)`.",
        ),
        (
            placeholder("x", tensor((4,), "int64")),
            DtypeConstraint(["int32"]),
            "Cast it before the call: `.to(torch.int32)`.",
        ),
        (
            op("a", "torch.arange", tensor((4,), "int64"), calls=["aten.arange.default"]),
            DtypeConstraint(["int32"]),
            "Create it as int32: `dtype=torch.int32`.",
        ),
        (
            op(
                "a", "torch.mul", tensor((4,), "float32"),
                calls=[Call("aten.mul.Tensor", (tensor((4,), "float32"),), ())],
            ),
            DtypeConstraint(["float16"]),
            "Its input is float32: cast that to float16 (`.to(torch.float16)`), and this follows.",
        ),
        (
            op("c", "torch.fft.fft", tensor((4,), "complex64")),
            DtypeConstraint(["float32"]),
            "The device supports no format like complex64: run this part on the host.",
        ),
        (
            op("m", "torch.mul", tensor((3, 50, 4))),
            ShapeConstraint(16, dims=[1]),
            "Pad 50 to 64: `torch.nn.functional.pad(x, (0, 0, 0, 14))`.",
        ),
        (
            placeholder("x", tensor((50, 50))),
            ShapeConstraint(64, dims=[-2, -1]),
            "Pad 50 to 64 before the call: `torch.nn.functional.pad(x, (0, 14, 0, 14))`.",
        ),
        (
            op("m", "torch.mul", tensor((3, 50))),
            ShapeConstraint(32, dims=[-1], otherwise="padded"),
            "The device pads it to 64 (28 % more). A size of 64 costs the same.",
        ),
        (
            op("m", "torch.mul", tensor((3, 4, 5, 6))),
            ShapeConstraint(max_rank=2),
            "Merge related dimensions: `.flatten(0, 2)`.",
        ),
        (
            op("e", "torch.empty_strided", tensor((8, 4), stride=(1, 8))),
            LayoutConstraint(True),
            "Copy it: `.contiguous()`.",
        ),
        (
            op(
                "a", "torch.add", tensor((8, 4)),
                calls=[Call("aten.add.Tensor", (tensor((8, 4), stride=(1, 8)),), ())],
            ),
            LayoutConstraint(True),
            "Copy this operand first: `.contiguous()`.",
        ),
        (
            op("r", "torch.relu_", tensor((4,)), calls=["aten.relu_.default"]),
            UnsupportedOpsConstraint(["aten.relu_"]),
            "Use the out-of-place operator: `relu`.",
        ),
        (
            op("s", "torch.sort", tensor((4,)), calls=["aten.sort.default"]),
            UnsupportedOpsConstraint(["aten.sort"]),
            "If a few are enough, use `torch.topk`.",
        ),
        (
            op("s", "torch.sort", tensor((4,)), calls=["aten.sort.default"]),
            UnsupportedOpsConstraint(["aten.sort", "aten.topk"]),
            "Replace it with operators the device supports, or run this part on the host.",
        ),
    ],
)  # fmt: skip
def test_remedies(checked: Node, constraint: Constraint, remedy: str) -> None:
    (breach,) = [b for b in check(graph(checked), constraint) if b.severity != "unknown"]
    assert breach.remedy == remedy
