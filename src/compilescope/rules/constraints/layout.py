"""How tensors lie in memory: contiguous, channels-last, or strided otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compilescope.model.device import Device
from compilescope.model.graph import Graph, Node, TensorInfo
from compilescope.rules.constraints._samples import graph, node, tensor
from compilescope.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    default_device,
    lacks_value,
    shown_shape,
)
from compilescope.rules.hardware.operands import (
    FORMATS,
    Look,
    fits_format,
    has_dense_rows,
    is_dense,
    is_view_node,
    is_view_op,
    laid_out,
    overlaps,
)
from compilescope.rules.hardware.sizes import Size, equal, read_size

_TANGENT = "tangents_"
"""How AOTAutograd calls the inputs that only a backward graph has."""
Verdict = tuple[str, bool] | None
"""What a tensor breaks and whether that is sure; None: nothing."""


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
    ) -> None:
        says = strict_contiguous or formats is not None or max_rank is not None or inner_stride_one
        if not says and overlapping and not dense_rows:
            usual = default_device().layout
            formats, dense_rows = usual.formats, usual.dense_rows
        formats = formats or ()
        unknown = [name for name in formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"unknown memory format: {unknown[0]}; known: {', '.join(FORMATS)}")
        self.formats = ("contiguous",) if strict_contiguous else tuple(formats)
        self.max_rank = max_rank
        self.inner_stride_one = inner_stride_one
        self.overlapping = overlapping
        self.dense_rows = dense_rows
        self._allowed = self._words()
        self._verdicts: dict[tuple[object, object], Verdict] = {}

    def check_node(self, node: Node) -> Iterable[Breach]:
        if not self._allowed:
            return
        if lacks_value(node):
            yield self.cannot_tell(node, "its output is unknown", self._allowed)
        # Where nobody looked which operators read a view, it may be folded into them.
        loose = node.calls is None and is_view_op(node.target)
        for laid, looks in laid_out(node):
            verdict = self._judge_any(laid, looks)
            if verdict is not None and loose:
                yield self.cannot_tell(node, "the operators that read it are unknown", verdict[0])
            elif verdict is not None:
                yield self._said(node, laid, verdict)

    def check(self, graph: Graph) -> Iterator[Breach]:
        yield from super().check(graph)
        yield from self.returned(graph)

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
                    if verdict is not None:
                        yield self._said(node, laid, verdict)

    def _judge_any(self, laid: TensorInfo, looks: list[Look]) -> Verdict:
        """None where one of the looks will do; else the verdict on the tensor as it lies."""
        if laid.stride is None:
            return self._allowed, False
        verdicts = [self._judge_look(shape, stride) for shape, stride in looks]
        if None in verdicts:
            return None
        unsure = [verdict for verdict in verdicts if verdict is not None and not verdict[1]]
        return unsure[0] if unsure else verdicts[0]

    def _judge_look(self, shape: tuple[Size, ...], stride: tuple[Size, ...]) -> Verdict:
        key = (shape, stride)
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(TensorInfo(shape, "", stride))
        return self._verdicts[key]

    def _words(self) -> str:
        parts = [" or ".join(self.formats)] if self.formats else []
        if self.max_rank is not None:
            parts.append(f"contiguous above rank {self.max_rank}")
        if self.inner_stride_one:
            parts.append("a dense last dimension")
        if not self.overlapping:
            parts.append("no elements sharing memory")
        return ", ".join(parts)

    def _judge(self, laid: TensorInfo) -> Verdict:
        """What it breaks and whether that is sure: one fact, however many rules it breaks."""
        unsure = laid.stride is None
        for allowed, broken in self._rules(laid) if laid.stride is not None else ():
            if broken:
                return allowed, True
            unsure = unsure or broken is None
        return (self._allowed, False) if unsure else None

    def _said(self, node: Node, laid: TensorInfo, verdict: tuple[str, bool]) -> Breach:
        allowed, sure = verdict
        if laid.stride is None:
            return self.cannot_tell(node, "its strides are unknown", allowed)
        found = f"{shown_shape(laid)} with strides ({', '.join(map(str, laid.stride))})"
        if not sure:
            return self.cannot_tell(node, f"{found}: sizes are dynamic", allowed)
        remedy = self._remedy(node, laid)
        return self.breach(node, found=found, allowed=allowed, remedy=remedy)

    def _rules(self, laid: TensorInfo) -> Iterable[tuple[str, bool | None]]:
        """What is allowed, and whether the tensor breaks it."""
        if not self.overlapping:
            yield "no elements sharing memory", overlaps(laid)
        if self.formats:
            fitting = [name for name in self.formats if fits_format(laid, name)] or ["contiguous"]
            dense = [is_dense(laid, name) for name in fitting]
            if self.dense_rows:
                dense += [has_dense_rows(laid, name) for name in fitting]
            yield " or ".join(fitting), _none_of(dense)
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
