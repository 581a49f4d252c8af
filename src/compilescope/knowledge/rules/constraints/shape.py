"""Sizes: multiples, ranks, the largest size, and sizes that only the running program knows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from compilescope.knowledge.rules.constraints._samples import graph, node, tensor
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    is_op,
    lacks_value,
    shown_shape,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns
from compilescope.knowledge.rules.hardware.operands import made
from compilescope.knowledge.rules.hardware.sizes import (
    Broken,
    Size,
    SizePlace,
    all_sizes,
    concerned,
    is_multiple,
    note_odd,
    pad_words,
    rule_words,
    sizes_in,
    split_words,
)
from compilescope.record.device import ALL_DIMS, Alignment, Device, Otherwise
from compilescope.record.graph import Graph, Node, TensorInfo


class ShapeConstraint(Constraint):
    """Sizes must be multiples, and within bounds.

    An alignment holds for all dimensions, except those of size 1; `dims=(-1,)` is for the last one
    alone.
    """

    id = "shape"

    def __init__(
        self,
        alignment: int | Sequence[Alignment] = 1,
        *,
        dims: Sequence[int] | None = None,
        ops: Sequence[str] = (),
        otherwise: Otherwise = "refused",
        max_rank: int | None = None,
        max_size: int | None = None,
        dynamic: bool = True,
    ) -> None:
        if isinstance(alignment, int):
            one = Alignment(
                multiple=alignment,
                dims=ALL_DIMS if dims is None else tuple(dims),
                ops=tuple(ops),
                otherwise=otherwise,
            )
            alignment = (one,)
        for rule in alignment:
            if rule.multiple < 1:
                raise ValueError(f"alignment must be at least 1, not {rule.multiple}")
        self.alignments = tuple(rule for rule in alignment if rule.multiple > 1)
        self.max_rank = max_rank
        self.max_size = max_size
        self.dynamic = dynamic
        self._allowed = self._words()
        self._general = [rule for rule in self.alignments if not rule.ops]
        self._special = [(rule, OpPatterns(rule.ops)) for rule in self.alignments if rule.ops]
        self._fine: dict[tuple[Size, ...], bool] = {}

    def check_node(self, node: Node) -> Iterable[Breach]:
        if lacks_value(node) and self._allowed:
            yield self.cannot_tell(node, "its output is unknown", self._allowed)
        shapes = [shaped for shaped in made(node) if not self._is_fine(shaped.shape)]
        if not shapes and not self._special:
            return
        shapes = list({shaped.shape: shaped for shaped in shapes}.values())
        for shaped in shapes:
            yield from self._rank(node, shaped)
        if not self.dynamic:
            yield from self._dynamic(node, shapes)
        if self.max_size is not None:
            yield from self._largest(node, shapes, self.max_size)
        if self.alignments:
            yield from self._aligned(node, shapes)

    def _words(self) -> str:
        parts = [rule_words(rule) for rule in self.alignments]
        if self.max_rank is not None:
            parts.append(f"at most rank {self.max_rank}")
        if self.max_size is not None:
            parts.append(f"sizes up to {self.max_size}")
        if not self.dynamic:
            parts.append("sizes known at compile time")
        return ", ".join(parts)

    def _is_fine(self, shape: tuple[Size, ...]) -> bool:
        """Does it break none of the rules that are for every tensor? Most shapes come again."""
        fine = self._fine.get(shape)
        if fine is None:
            fine = self._fine[shape] = not (
                (self.max_rank is not None and len(shape) > self.max_rank)
                or any(self._is_off(size) for size in shape)
                or any(
                    not is_multiple(size, rule.multiple)
                    for rule in self._general
                    for size, _ in sizes_in(shape, rule.dims)
                )
            )
        return fine

    def _is_off(self, size: Size) -> bool:
        if isinstance(size, str):
            return not self.dynamic or self.max_size is not None
        return self.max_size is not None and size > self.max_size

    def _rank(self, node: Node, shaped: TensorInfo) -> Iterator[Breach]:
        rank = len(shaped.shape)
        if self.max_rank is not None and rank > self.max_rank:
            yield self.breach(
                node,
                found=f"rank {rank}: {shown_shape(shaped)}",
                allowed=f"at most rank {self.max_rank}",
                remedy=f"Merge related dimensions: `.flatten(0, {rank - self.max_rank})`.",
            )

    def _dynamic(self, node: Node, shapes: list[TensorInfo]) -> Iterator[Breach]:
        for shaped in shapes:
            open_sizes = dict.fromkeys(size for size in shaped.shape if isinstance(size, str))
            if open_sizes:
                yield self.breach(
                    node,
                    found=(
                        f"{', '.join(open_sizes)} in {shown_shape(shaped)} is known only at run "
                        "time"
                    ),
                    allowed="sizes known at compile time",
                    remedy="Compile with `dynamic=False`, or pad inputs to a few fixed sizes.",
                )
                return

    def _largest(self, node: Node, shapes: list[TensorInfo], most: int) -> Iterator[Breach]:
        for size, place in all_sizes(shapes).items():
            allowed = f"sizes up to {most}"
            if isinstance(size, str):
                if self.dynamic:  # Else it is refused already.
                    yield self.cannot_tell(node, f"size {size}, {place.words}", allowed)
            elif size > most:
                yield self.breach(
                    node,
                    found=f"size {size}, {place.words}",
                    allowed=allowed,
                    remedy=split_words(node, place, size, most),
                )

    def _aligned(self, node: Node, shapes: list[TensorInfo]) -> Iterator[Breach]:
        """One breach a size, for the strictest rule that it breaks."""
        broken: Broken = {}
        for rule in self._general:
            for shaped in shapes:
                note_odd(broken, rule, shaped, "")
        for rule, patterns in self._special:
            if is_op(node) and node.calls is None and not node.no_tensor:
                why = "its ATen operators are unknown"
                yield self.cannot_tell(node, why, rule_words(rule))
            else:
                for shaped, op in concerned(node, patterns):
                    note_odd(broken, rule, shaped, op)
        for size, rules in broken.items():
            if not isinstance(size, str):
                yield self._off(node, size, rules)
            elif self.dynamic:
                rule, place, op = rules[0]
                why = f"size {size}, {place.words}"
                yield self.cannot_tell(node, why, rule_words(rule), op)

    def _off(self, node: Node, size: int, rules: list[tuple[Alignment, SizePlace, str]]) -> Breach:
        refusing = [item for item in rules if item[0].otherwise == "refused"]
        rule, place, op = max(refusing or rules, key=lambda item: item[0].multiple)
        found = f"size {size}, {place.words}"
        step = math.lcm(*(item[0].multiple for item in refusing or rules))
        padded = -(-size // step) * step
        if not refusing:
            share = 100 * (padded - size) / size
            more = f"{share:.0f} % more" if share >= 1 else "less than 1 % more"
            return self.warning(
                node,
                found=found,
                allowed=f"{rule_words(rule)}; the device pads",
                remedy=(
                    f"The device pads it to {padded} ({more}). A size of {padded} costs the same."
                ),
                op=op,
            )
        remedy = pad_words(node, place, size, padded)
        return self.breach(node, found=found, allowed=rule_words(rule), remedy=remedy, op=op)


def _make(device: Device) -> list[Constraint]:
    shapes = device.shapes
    made = ShapeConstraint(
        shapes.alignment,
        max_rank=shapes.max_rank,
        max_size=shapes.max_size,
        dynamic=shapes.dynamic,
    )
    bounded = shapes.max_rank is not None or shapes.max_size is not None
    return [made] if made.alignments or bounded or not shapes.dynamic else []


def _graph(size: int | str) -> Graph:
    return graph(node("mul", "aten.mul.Tensor", tensor((8, size))))


RULE = ConstraintRule(
    id="shape",
    title="Sizes the device supports",
    reads=(
        "shapes.max_rank",
        "shapes.max_size",
        "shapes.dynamic",
        "shapes.alignment.multiple",
        "shapes.alignment.dims",
        "shapes.alignment.ops",
        "shapes.alignment.otherwise",
    ),
    make=_make,
    device='name = "x"\n[[shapes.alignment]]\nmultiple = 16\n',
    sample=Sample(bad=_graph(50), good=_graph(64), unclear=_graph("s0")),
)
