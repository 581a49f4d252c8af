"""Operators that the device does not have, or not in some case; and what to write instead."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from compilescope.knowledge.rules.constraints._samples import graph, node, tensor
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    default_device,
    is_op,
    shown_op,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns
from compilescope.knowledge.rules.hardware.operands import is_view_op
from compilescope.record.device import Comparison, Condition, Device, parse_comparison
from compilescope.record.graph import Call, Graph, Node

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOST_NAMED = 6
"""Operators in one sentence. Chosen: the rest is counted."""
_SIZES = ("aten.sym_size.", "aten.sym_stride.", "aten.sym_numel.", "aten.sym_storage_offset.")
"""They ask a tensor for its size: no device has anything to do there."""
_LITERALS = "aten.lift_fresh"
"""A tensor that is written in the program, as a graph takes it in."""


class _Case(NamedTuple):
    """A condition, read."""

    patterns: OpPatterns
    comparison: Comparison
    condition: Condition


class UnsupportedOpsConstraint(Constraint):
    """Operators that are refused: by name, by not being on the list, or by an argument.

    A name may be an ATen operator's or Dynamo's (`torch.nn.functional.relu`, the method `view`): a
    node falls under it by itself, or by the ATen operators that it calls. Without any argument:
    those that the generic device lacks. A list of what is supported need not name views.
    """

    id = "operators"

    def __init__(
        self,
        unsupported_ops: Sequence[str] | None = None,
        *,
        supported_ops: Sequence[str] = (),
        conditions: Sequence[Condition] = (),
    ) -> None:
        if unsupported_ops is None and not supported_ops and not conditions:
            unsupported_ops = default_device().ops.denied
            conditions = default_device().ops.conditions
        self.unsupported = OpPatterns(unsupported_ops or ())
        self.supported = OpPatterns(supported_ops)
        self.conditions = [
            _Case(OpPatterns((case.op,)), parse_comparison(case.when), case) for case in conditions
        ]

    def check_node(self, node: Node) -> Iterable[Breach]:
        if not is_op(node) or (node.no_tensor and not node.calls):
            return
        if node.graphs:  # Its operators are those of the graphs within it.
            yield from self._check_own(node)
        elif node.calls is None:
            yield from self._check_unknown(node)
        elif node.calls:
            yield from self._check_calls(node, node.calls)

    def _check_calls(self, node: Node, calls: tuple[Call, ...]) -> Iterator[Breach]:
        ops = dict.fromkeys(call.op for call in calls)
        denied = {op: pattern for op in ops if (pattern := self.unsupported.match(op))}
        for op, pattern in denied.items():
            yield self._denied(node, op, pattern)
        own = self.unsupported.match(node.target)
        if own and not denied:
            yield self._denied(node, shown_op(node), own)
            return
        if self.supported:
            listed = [op for op in ops if self.supported.match(op)]
            # An operator that is made of others, such as `aten.linear`, brings them along.
            brought = self.supported.match(node.target)
            if not brought or any(self.supported.match(op) == brought for op in listed):
                for op in ops:
                    free = op.startswith((*_SIZES, _LITERALS)) or is_view_op(op)
                    if op not in denied and op not in listed and not free:
                        yield self._unlisted(node, op)
        for case in self.conditions:
            yield from self._check_case(node, calls, case)

    def _check_own(self, node: Node) -> Iterator[Breach]:
        pattern = self.unsupported.match(node.target)
        if pattern:
            yield self._denied(node, shown_op(node), pattern)

    def _check_unknown(self, node: Node) -> Iterator[Breach]:
        """Nobody looked at what it calls: only its own name tells something."""
        pattern = self.unsupported.match(node.target)
        if pattern:
            yield self._denied(node, shown_op(node), pattern)
        elif not self.supported.match(node.target) or self.conditions:
            yield self.cannot_tell(node, "its ATen operators are unknown", self._words())

    def _check_case(self, node: Node, calls: tuple[Call, ...], case: _Case) -> Iterator[Breach]:
        concerned = [call for call in calls if case.patterns.match(call.op)]
        argument, when = case.comparison.argument, case.condition.when
        if not concerned:
            if not case.patterns.match(node.target):
                return
            # `conv2d` becomes `aten.convolution`: an argument keeps its name on the way down.
            concerned = [call for call in calls if argument in call.constants] or [calls[0]]
        for call in concerned:
            allowed = f"{call.op} unless {when}"
            if argument not in call.constants:
                why = f"its argument {argument} is unknown"
                yield self.cannot_tell(node, why, allowed, call.op)
                continue
            value = call.constants[argument]
            holds = _holds(value, case.comparison)
            if holds is None:
                why = f"{argument} = {value!r} is unknown until run time"
                yield self.cannot_tell(node, why, allowed, call.op)
            elif holds:
                remedy = case.condition.reason or f"Rewrite it so that {_negated(case.comparison)}."
                found = f"{argument} = {value!r}"
                yield self.breach(node, found=found, allowed=allowed, remedy=remedy, op=call.op)

    def _words(self) -> str:
        if self.supported:
            return f"one of {len(self.supported.patterns)}: {_few(self.supported.patterns)}"
        if self.unsupported:
            return f"any except {_few(self.unsupported.patterns)}"
        cases = [f"{case.condition.op} when {case.condition.when}" for case in self.conditions]
        return f"any except {_few(cases)}" if cases else "any"

    def _denied(self, node: Node, op: str, pattern: str) -> Breach:
        found = op if op == pattern else f"{op}, denied by {pattern}"
        remedy = _instead_of(op, self._takes)
        return self.breach(node, found=found, allowed=self._words(), remedy=remedy, op=op)

    def _unlisted(self, node: Node, op: str) -> Breach:
        remedy = _instead_of(op, self._takes)
        return self.breach(node, found=op, allowed=self._words(), remedy=remedy, op=op)

    def _takes(self, op: str) -> bool:
        """Would this device take that operator? A remedy must not name one that it refuses."""
        listed = not self.supported or self.supported.match(op)
        return bool(listed) and not self.unsupported.match(op)


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown


def _holds(value: Any, comparison: Comparison) -> bool | None:
    """For a list: does it hold for its length, where that is meant, or for any of its items?

    None: that is not known before it runs.
    """
    listed = isinstance(value, (list, tuple))
    if comparison.counted:
        return _compare(len(value), comparison) if listed else None
    items = value if listed else [value]
    told = [_compare(item, comparison) for item in items]
    if True in told:
        return True
    return None if None in told else False


def _compare(item: Any, comparison: Comparison) -> bool | None:
    wanted = comparison.wanted
    # A text where a number is asked for is a symbolic size.
    if isinstance(item, str) and not isinstance(wanted, str):
        return None
    try:
        return _SIGNS[comparison.sign](item, wanted)
    except TypeError:
        return None


def _negated(comparison: Comparison) -> str:
    opposite = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    wanted = comparison.wanted
    if isinstance(wanted, float) and wanted.is_integer():
        wanted = int(wanted)
    argument = f"len({comparison.argument})" if comparison.counted else comparison.argument
    return f"`{argument} {opposite[comparison.sign]} {wanted}`"


class _Way(NamedTuple):
    """Another way to the same result."""

    ops: tuple[str, ...]
    words: str
    needs: tuple[str, ...]
    """Operators that it takes instead."""


_WAYS = (
    _Way(
        ("aten.nonzero*", "aten.masked_select", "aten.argwhere"),
        "Keep the shape and mask instead: `torch.where(condition, x, 0)`.",
        ("aten.where",),
    ),
    _Way(("aten.sort", "aten.argsort"), "If a few are enough, use `torch.topk`.", ("aten.topk",)),
    _Way(
        ("aten.topk",),
        "Sort and take the first: `x.sort(descending=True).values[..., :k]`.",
        ("aten.sort",),
    ),
    _Way(
        ("aten.unique*", "aten._unique*", "aten.bincount"),
        "Its shape depends on data: run it on the host before the model.",
        (),
    ),
    _Way(
        ("aten.index_put", "aten.index_put_", "aten._index_put_impl_", "aten.masked_scatter"),
        "Write it as a selection: `torch.where(mask, new, old)`.",
        ("aten.where",),
    ),
    _Way(("aten.masked_fill",), "Use `torch.where(mask, value, x)`.", ("aten.where",)),
    _Way(
        ("aten.index", "aten.gather", "aten.take*"),
        "Select along one dimension: `torch.index_select(x, dim, index)`.",
        ("aten.index_select",),
    ),
    _Way(
        ("aten.embedding", "aten.index_select"),
        "Multiply one-hot rows: `torch.nn.functional.one_hot(ids, n).to(w.dtype) @ w`.",
        ("aten.mm",),
    ),
    _Way(
        ("aten._scaled_dot_product_*", "aten.scaled_dot_product_attention",
         "aten._flash_attention_forward", "aten._efficient_attention_forward"),
        "Use plain matrix products: `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.",
        ("aten.bmm", "aten._softmax"),
    ),
    _Way(
        ("aten.native_dropout", "aten.bernoulli", "aten._fused_dropout", "aten.dropout"),
        "It does nothing in inference: call `model.eval()`. In training, set its probability to 0.",
        (),
    ),
    _Way(
        ("aten._fft_*", "aten.fft_*", "aten.stft", "aten.istft"),
        "For a fixed length, multiply by the transform's matrix.",
        ("aten.mm",),
    ),
    _Way(
        ("aten.gelu", "aten.silu", "aten.mish", "aten.hardswish"),
        "Write it out, as `x * torch.sigmoid(1.702 * x)` for GELU, or train with another "
        "activation.",
        ("aten.sigmoid", "aten.mul"),
    ),
    _Way(
        ("aten.upsample_bi*", "aten.upsample_tri*", "aten.upsample_linear*"),
        "Use `mode='nearest'`.",
        ("aten.upsample_nearest2d",),
    ),
    _Way(
        ("aten.native_batch_norm*", "aten._native_batch_norm_*", "aten.cudnn_batch_norm"),
        "For inference, fold it into the previous layer: `torch.nn.utils.fuse_conv_bn_eval`.",
        (),
    ),
    _Way(
        ("aten.cumsum",),
        "Multiply by a triangle of ones: `x @ torch.ones(n, n).triu()`.",
        ("aten.mm", "aten.triu"),
    ),
    _Way(
        ("aten._adaptive_avg_pool*", "aten.adaptive_avg_pool*"),
        "For one output per channel: `x.mean((-2, -1))`.",
        ("aten.mean",),
    ),
)  # fmt: skip
_PATTERNS = tuple(OpPatterns(way.ops) for way in _WAYS)
_GENERAL = "Replace it with operators the device supports, or run this part on the host."
_OUT_OF_PLACE = "Use the out-of-place operator: `{name}`."


def _instead_of(op: str, takes: Callable[[str], bool]) -> str:
    """A sentence. `takes` tells whether the device has an operator."""
    base = op.split(".")[1] if op.count(".") else op
    if base.endswith("_") and not base.endswith("__"):
        plain = base[:-1]
        if takes(f"aten.{plain}") and not takes(op):
            return _OUT_OF_PLACE.format(name=plain)
    for way, patterns in zip(_WAYS, _PATTERNS, strict=True):
        if patterns.match(op) and all(takes(need) for need in way.needs):
            return way.words
    return _GENERAL


def _make(device: Device) -> list[Constraint]:
    ops = device.ops
    if not (ops.denied or ops.allowed or ops.conditions):
        return []
    return [
        UnsupportedOpsConstraint(ops.denied, supported_ops=ops.allowed, conditions=ops.conditions)
    ]


def _graph(op: str) -> Graph:
    return graph(node("n", op, tensor((8, 8))))


RULE = ConstraintRule(
    id="operators",
    title="Operators the device supports",
    reads=(
        "ops.denied",
        "ops.allowed",
        "ops.conditions.op",
        "ops.conditions.when",
        "ops.conditions.reason",
    ),
    make=_make,
    device='name = "x"\n[ops]\ndenied = ["aten.nonzero"]\n',
    sample=Sample(
        bad=_graph("aten.nonzero.default"),
        good=_graph("aten.mul.Tensor"),
        unclear=Graph((Node("n", "call_method", "frobnicate"),)),
    ),
)
