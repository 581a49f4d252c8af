"""How tensors lie in memory: contiguous, channels-last, or strided otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compilescope.model.device import Device
from compilescope.model.graph import Graph, Node, TensorInfo
from compilescope.rules.constraints._samples import graph, node, tensor
from compilescope.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    is_input,
    is_parameter,
    lacks_value,
    shown_shape,
)
from compilescope.rules.hardware.sizes import equal, read_size
from compilescope.rules.hardware.strides import FORMATS, fits_format, is_dense, overlaps


class LayoutConstraint(Constraint):
    """Tensors must lie in memory in one of these ways.

    A format that is for one rank only (`channels_last` is for four dimensions) leaves the other
    ranks to be contiguous.
    """

    id = "layout"

    def __init__(
        self,
        strict_contiguous: bool = False,
        *,
        formats: Sequence[str] = (),
        max_rank: int | None = None,
        inner_stride_one: bool = False,
        overlapping: bool = True,
    ) -> None:
        unknown = [name for name in formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"unknown memory format: {unknown[0]}; known: {', '.join(FORMATS)}")
        self.formats = ("contiguous",) if strict_contiguous else tuple(formats)
        self.max_rank = max_rank
        self.inner_stride_one = inner_stride_one
        self.overlapping = overlapping
        self._allowed = self._words()
        self._verdicts: dict[tuple[object, object], tuple[str, bool] | None] = {}

    def check_node(self, node: Node) -> Iterable[Breach]:
        if not self._allowed:
            return
        if lacks_value(node):
            yield self.cannot_tell(node, "its output is unknown", self._allowed)
        known = self._verdicts
        for laid in node.outputs:
            key = (laid.shape, laid.stride)
            if key not in known:
                known[key] = self._judge(laid)
            if known[key] is not None:
                yield self._said(node, laid, known[key])

    def _words(self) -> str:
        parts = [" or ".join(self.formats)] if self.formats else []
        if self.max_rank is not None:
            parts.append(f"contiguous above rank {self.max_rank}")
        if self.inner_stride_one:
            parts.append("a dense last dimension")
        if not self.overlapping:
            parts.append("no elements sharing memory")
        return ", ".join(parts)

    def _judge(self, laid: TensorInfo) -> tuple[str, bool] | None:
        """What it breaks and whether that is sure: one fact, however many rules it breaks."""
        unsure = laid.stride is None
        for allowed, broken in self._rules(laid) if laid.stride is not None else ():
            if broken:
                return allowed, True
            unsure = unsure or broken is None
        return (self._allowed, False) if unsure else None

    def _said(self, node: Node, laid: TensorInfo, verdict: tuple[str, bool] | None) -> Breach:
        allowed, sure = verdict or ("", False)
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
            yield " or ".join(fitting), _none_of([is_dense(laid, name) for name in fitting])
        rank = len(laid.shape)
        if self.max_rank is not None and rank > self.max_rank:
            allowed = f"contiguous above rank {self.max_rank}"
            yield allowed, _none_of([is_dense(laid, "contiguous")])
        if self.inner_stride_one and laid.stride and laid.shape[-1] not in (0, 1):
            dense = equal(read_size(laid.stride[-1]), read_size(1))
            yield "a dense last dimension", _none_of([dense])

    def _remedy(self, node: Node, laid: TensorInfo) -> str:
        copy = ".contiguous()"
        fitting = [name for name in self.formats if fits_format(laid, name)]
        if fitting and "contiguous" not in fitting:
            copy = f".contiguous(memory_format=torch.{fitting[0]})"
        if is_parameter(node):
            return f"Store the parameter this way: `parameter.data = parameter.data{copy}`."
        if is_input(node):
            return f"Use `{copy}` before the call."
        return f"Copy it: `{copy}`."


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
        )
    ]


def _graph(*stride: int) -> Graph:
    return graph(node("t", "aten.t.default", tensor((8, 4), stride=stride)))


RULE = ConstraintRule(
    id="layout",
    title="How tensors are laid out in memory",
    reads=("layout.formats", "layout.max_rank", "layout.inner_stride_one", "layout.overlapping"),
    make=_make,
    device='name = "x"\n[layout]\nformats = ["contiguous"]\n',
    sample=Sample(
        bad=_graph(1, 8),
        good=_graph(4, 1),
        unclear=graph(node("t", "aten.t.default", tensor((8, "s0"), stride=("s1", 1)))),
    ),
)
