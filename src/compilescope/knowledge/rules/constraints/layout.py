"""How tensors lie in memory: contiguous, channels-last, or strided otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compilescope.knowledge.rules.constraints._samples import graph, node, tensor
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    default_device,
    is_op,
    lacks_value,
    shown_shape,
)
from compilescope.knowledge.rules.hardware.operands import (
    FORMATS,
    PICK,
    Look,
    ReadTensor,
    fits_format,
    has_dense_rows,
    has_rows_in_order,
    is_dense,
    is_view_node,
    is_view_op,
    laid_out,
    overlaps,
    tensor_key,
)
from compilescope.knowledge.rules.hardware.sizes import Size, equal, read_size
from compilescope.record.device import Device, ReorderedRows
from compilescope.record.graph import Graph, Node, TensorInfo

_TANGENT = "tangents_"
"""How AOTAutograd calls the inputs that only a backward graph has."""


class LayoutVerdict(NamedTuple):
    """What a tensor breaks."""

    allowed: str
    sure: bool
    mild: bool = False
    """The device copies it first, and takes it."""


class LayoutConstraint(Constraint):
    """Tensors must lie in memory in one of these ways.

    A format that is for one rank only (`channels_last` is for four dimensions) leaves the other
    ranks to be contiguous. What counts is what operators read: a view is judged by who reads it,
    and a matrix product takes a transposed operand. Without any argument: as the generic device.
    """

    id = "layout"

    def __init__(
        self,
        strict_contiguous: bool = False,
        *,
        formats: Sequence[str] | None = None,
        max_rank: int | None = None,
        inner_stride_one: bool = False,
        overlapping: bool = True,
        dense_rows: bool = False,
        reordered_rows: ReorderedRows = "taken",
    ) -> None:
        says = strict_contiguous or formats is not None or max_rank is not None or inner_stride_one
        if not says and overlapping and not dense_rows:
            usual = default_device().layout
            formats, dense_rows = usual.formats, usual.dense_rows
            reordered_rows = usual.reordered_rows
        formats = formats or ()
        unknown = [name for name in formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"unknown memory format: {unknown[0]}; known: {', '.join(FORMATS)}")
        self.formats = ("contiguous",) if strict_contiguous else tuple(formats)
        self.max_rank = max_rank
        self.inner_stride_one = inner_stride_one
        self.overlapping = overlapping
        self.dense_rows = dense_rows
        self.reordered_rows = reordered_rows
        self._allowed = self._words()
        self._inputs: dict[int, list[_Origin]] = {}
        """By a node's identity, while its graph is checked: what it reads."""
        self._verdicts: dict[tuple[object, object], LayoutVerdict | None] = {}

    def check_node(self, node: Node) -> Iterable[Breach]:
        if not self._allowed:
            return
        if lacks_value(node):
            yield self.cannot_tell(node, "its output is unknown", self._allowed)
        # Where nobody looked which operators read a view, it may be folded into them.
        loose = node.calls is None and is_view_op(node.target)
        for read in laid_out(node):
            laid = read.tensor
            verdict = self._judge_any(laid, read.looks)
            if verdict is None:
                continue
            if verdict.mild and (read.any_order or self._is_of_a_kernel(read, node)):
                continue
            if loose:
                why = "the operators that read it are unknown"
                yield self.cannot_tell(node, why, verdict.allowed)
            else:
                yield self._said(node, laid, verdict)

    def check(self, graph: Graph) -> Iterator[Breach]:
        nodes = graph.nodes if self.reordered_rows == "copied" else ()
        known: dict[str, _Origin] = {}
        for each in nodes:
            self._inputs[id(each)] = [known[name] for name in each.inputs if name in known]
            known[each.name] = _Origin(each.outputs, _computes(each, known))
        try:
            yield from super().check(graph)
        finally:
            for each in nodes:
                self._inputs.pop(id(each), None)
        yield from self.returned(graph)

    def _is_of_a_kernel(self, read: ReadTensor, node: Node) -> bool:
        """Did an operator compute it, and nobody look at it from another side? Then another device
        has its own order for it."""
        if read.reader is None:
            return False  # Made from nothing: its order is the program's.
        own, viewed = set[object](), set[object]()
        for call in node.calls or ():
            if call is read.reader:
                break
            (viewed if is_view_op(call.op) else own).update(map(tensor_key, call.outputs))
        for each in self._inputs.get(id(node), ()):
            (own if each.computed else viewed).update(map(tensor_key, each.tensors))
        return tensor_key(read.tensor) in own - viewed

    def returned(self, graph: Graph) -> Iterator[Breach]:
        """Views that the caller gets: nothing folds them. A gradient may lie as it likes."""
        if any(node.op == "placeholder" and node.name.startswith(_TANGENT) for node in graph.nodes):
            return
        nodes = {node.name: node for node in graph.nodes}
        for end in graph.nodes if self._allowed else ():
            if end.op != "output":
                continue
            for at, name in enumerate(end.inputs):
                node = nodes.get(name)
                if node is None or at in end.unasked or not is_view_node(node):
                    continue
                for laid in node.outputs:
                    verdict = self._judge_any(laid, [(laid.shape, laid.stride or ())])
                    if verdict is not None and not verdict.mild:
                        yield self._said(node, laid, verdict)

    def _judge_any(self, laid: TensorInfo, looks: list[Look]) -> LayoutVerdict | None:
        """None where one of the looks will do; else the verdict on the tensor as it lies."""
        if laid.stride is None:
            return LayoutVerdict(self._allowed, sure=False)
        verdicts = [self._judge_look(shape, stride) for shape, stride in looks]
        found = [verdict for verdict in verdicts if verdict is not None]
        if len(found) < len(verdicts):
            return None
        return min(found, key=lambda verdict: (not verdict.mild, verdict.sure))

    def _judge_look(
        self, shape: tuple[Size, ...], stride: tuple[Size, ...]
    ) -> LayoutVerdict | None:
        key = (shape, stride)
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(TensorInfo(shape, "", stride))
        return self._verdicts[key]

    def _words(self) -> str:
        parts = [self._formats_words(self.formats)] if self.formats else []
        if self.max_rank is not None:
            parts.append(f"contiguous above rank {self.max_rank}")
        if self.inner_stride_one:
            parts.append("a dense last dimension")
        if not self.overlapping:
            parts.append("no elements sharing memory")
        return ", ".join(parts)

    def _formats_words(self, formats: Sequence[str]) -> str:
        return layout_words(formats, self.dense_rows, self.reordered_rows)

    def _judge(self, laid: TensorInfo) -> LayoutVerdict | None:
        """One fact, however many rules it breaks."""
        unsure = laid.stride is None
        for allowed, broken in self._rules(laid) if laid.stride is not None else ():
            if broken:
                return LayoutVerdict(allowed, sure=True)
            unsure = unsure or broken is None
        return LayoutVerdict(self._allowed, sure=False) if unsure else self._judge_order(laid)

    def _judge_order(self, laid: TensorInfo) -> LayoutVerdict | None:
        """Of rows that are dense: would the device copy them first?"""
        if not (self.formats and self.dense_rows) or self.reordered_rows == "taken":
            return None
        fitting = self._fitting(laid)
        ordered = [is_dense(laid, name) for name in fitting]
        ordered += [has_rows_in_order(laid, name) for name in fitting]
        broken = _none_of(ordered)
        if broken is False:
            return None
        return LayoutVerdict(self._formats_words(fitting), sure=broken is True, mild=True)

    def _fitting(self, laid: TensorInfo) -> list[str]:
        """Formats for tensors of that rank."""
        return [name for name in self.formats if fits_format(laid, name)] or ["contiguous"]

    def _said(self, node: Node, laid: TensorInfo, verdict: LayoutVerdict) -> Breach:
        allowed, sure, mild = verdict
        if laid.stride is None:
            return self.cannot_tell(node, "its strides are unknown", allowed)
        found = f"{shown_shape(laid)} with strides ({', '.join(map(str, laid.stride))})"
        if not sure:
            return self.cannot_tell(node, f"{found}: sizes are dynamic", allowed)
        remedy = self._remedy(node, laid)
        if mild:
            found = f"{found}: rows in another order, which the device copies first"
            return self.warning(node, found=found, allowed=allowed, remedy=remedy)
        return self.breach(node, found=found, allowed=allowed, remedy=remedy)

    def _rules(self, laid: TensorInfo) -> Iterable[tuple[str, bool | None]]:
        """What is allowed, and whether the tensor breaks it."""
        if not self.overlapping:
            yield "no elements sharing memory", overlaps(laid)
        if self.formats:
            fitting = self._fitting(laid)
            dense = [is_dense(laid, name) for name in fitting]
            if self.dense_rows:
                dense += [has_dense_rows(laid, name) for name in fitting]
            yield self._formats_words(fitting), _none_of(dense)
        rank = len(laid.shape)
        if self.max_rank is not None and rank > self.max_rank:
            allowed = f"contiguous above rank {self.max_rank}"
            yield allowed, _none_of([is_dense(laid, "contiguous")])
        if self.inner_stride_one and laid.stride and laid.shape[-1] not in (0, 1):
            inner = equal(read_size(laid.stride[-1]), read_size(1))
            yield "a dense last dimension", _none_of([inner])

    def _remedy(self, node: Node, laid: TensorInfo) -> str:
        copy = ".contiguous()"
        fitting = [name for name in self.formats if fits_format(laid, name)]
        if fitting and "contiguous" not in fitting:
            copy = f".contiguous(memory_format=torch.{fitting[0]})"
        reads = any(laid in call.inputs for call in node.calls or ())
        return f"Copy {'this operand first' if reads else 'it'}: `{copy}`."


class _Origin(NamedTuple):
    """What a node gives."""

    tensors: tuple[TensorInfo, ...]
    computed: bool
    """By an operator that is no view: it lies as its kernel left it."""


def _computes(node: Node, known: dict[str, _Origin]) -> bool:
    if node.target == PICK and not node.calls:  # One of several results: as their maker says.
        return any(known[name].computed for name in node.inputs[:1] if name in known)
    view = is_view_node(node) or (node.calls is None and is_view_op(node.target))
    return is_op(node) and not view


def layout_words(
    formats: Sequence[str], dense_rows: bool, reordered_rows: ReorderedRows = "taken"
) -> str:
    """What is allowed, in the same words wherever it is said."""
    words = " or ".join(formats)
    if dense_rows:
        words += ", or dense rows" + " in their order" * (reordered_rows == "copied")
    return words


def _none_of(dense: list[bool | None]) -> bool | None:
    if True in dense:
        return False
    return None if None in dense else True


def _make(device: Device) -> list[Constraint]:
    layout = device.layout
    asks = layout.formats or layout.max_rank is not None or layout.inner_stride_one
    if not asks and layout.overlapping:
        return []
    return [
        LayoutConstraint(
            formats=layout.formats,
            max_rank=layout.max_rank,
            inner_stride_one=layout.inner_stride_one,
            overlapping=layout.overlapping,
            dense_rows=layout.dense_rows,
            reordered_rows=layout.reordered_rows,
        )
    ]


def _graph(*stride: int) -> Graph:
    return graph(node("mul", "aten.mul.Tensor", tensor((8, 4), stride=stride)))


RULE = ConstraintRule(
    id="layout",
    title="How tensors are laid out in memory",
    reads=(
        "layout.formats",
        "layout.max_rank",
        "layout.inner_stride_one",
        "layout.dense_rows",
        "layout.reordered_rows",
        "layout.overlapping",
    ),
    make=_make,
    device='name = "x"\n[layout]\nformats = ["contiguous"]\n',
    sample=Sample(
        bad=_graph(1, 8),
        good=_graph(4, 1),
        unclear=graph(node("mul", "aten.mul.Tensor", tensor((8, "s0"), stride=("s1", 1)))),
    ),
)
