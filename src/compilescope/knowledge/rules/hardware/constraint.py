"""What a hardware constraint is: it reads a portable graph and says what a device cannot run.

Three-valued: a breach, nothing, or "cannot tell" where a node lacks what the constraint looks at.
`rules.hardware.checks` runs constraints over a graph.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from compilescope.base.package import PACKAGE
from compilescope.knowledge.rules.hardware.op_names import canonical
from compilescope.record.device import Device
from compilescope.record.devicefile import read_device
from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.record.stack import Frame

_FILE = Path(PACKAGE) / "backends" / "devices" / "generic.toml"
Severity = Literal["error", "warning", "unknown"]
_PICK = "_operator.getitem"
_GIVES_NOTHING = re.compile(r"(?:^|\.)(?:setitem|_assert\w*|_check\w*|sym_constrain_range\w*)$")
_INPUTS = ("placeholder", "get_attr")
_STEP = re.compile(r"\['?([^'\]]{0,200})'?\]|\.([A-Za-z]\w*)")
_PARAMETER = re.compile(r"_(?:parameters|buffers)[\[_]|\._(?:parameters|buffers)\[")
_CONTAINERS = ("_modules", "_parameters", "_buffers")


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """One node that a constraint refuses, or cannot judge."""

    rule: str
    node: str
    op: str
    found: str
    allowed: str
    remedy: str = ""
    severity: Severity = "error"
    frame: Frame | None = None
    """The user's line."""


class Constraint:
    """Subclass it and write one of the two checks.

    `check_node` sees one node at a time: an input, a constant or an operation. It may return a
    breach, several, or nothing. `check` sees the whole graph.
    """

    id: ClassVar[str] = ""
    """What its breaches are filed under; the class's name where it is empty."""
    made_with: tuple[tuple[Any, ...], dict[str, Any]]
    """The arguments it was made with, so that a repro can make it again."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Constraint:
        made = super().__new__(cls)
        made.made_with = (args, kwargs)
        return made

    def check(self, graph: Graph) -> Iterable[Breach]:
        for node in values(graph):
            yield from listed(self.check_node(node))

    def check_node(self, node: Node) -> Iterable[Breach] | Breach | None:
        return ()

    @property
    def name(self) -> str:
        return self.id or type(self).__name__

    def breach(
        self, node: Node, *, found: str, allowed: str, remedy: str = "", op: str = ""
    ) -> Breach:
        """A breach at a node."""
        return self._breach(node, found, allowed, remedy=remedy, op=op)

    def warning(
        self, node: Node, *, found: str, allowed: str, remedy: str = "", op: str = ""
    ) -> Breach:
        """Something that runs, but not as its author may believe."""
        return self._breach(node, found, allowed, remedy=remedy, op=op, severity="warning")

    def cannot_tell(self, node: Node, why: str, allowed: str, op: str = "") -> Breach:
        return self._breach(node, why, allowed, op=op, severity="unknown")

    def _breach(
        self,
        node: Node,
        found: str,
        allowed: str,
        *,
        remedy: str = "",
        op: str = "",
        severity: Severity = "error",
    ) -> Breach:
        return Breach(
            rule=self.name,
            node=node.name,
            op=op or shown_op(node),
            found=found,
            allowed=allowed,
            remedy=remedy,
            severity=severity,
            frame=node.frame,
        )


@dataclass(frozen=True)
class Sample:
    """Graphs that a constraint refuses, takes and cannot judge."""

    bad: Graph
    good: Graph
    unclear: Graph


@dataclass(frozen=True)
class ConstraintRule:
    """A kind of constraint, and how a device file asks for it."""

    id: str
    title: str
    reads: tuple[str, ...]
    """The keys of a device file that it looks at."""
    make: Callable[[Device], list[Constraint]]
    """None for a device that asks for nothing of the kind."""
    device: str
    """A device file that asks for it."""
    sample: Sample


def listed(found: Iterable[Breach] | Breach | None) -> Iterable[Breach]:
    """What a check returned, as something to go through."""
    if found is None:
        return ()
    return (found,) if isinstance(found, Breach) else found


def values(graph: Graph) -> Iterator[Node]:
    """The nodes that hold a value of their own.

    Not the output, and not a node that picks one of several results: that is its maker's.
    """
    made: dict[str, tuple[TensorInfo, ...]] = {}
    for node in graph.nodes:
        if node.target == _PICK and _is_pick(node, made):
            continue
        made[node.name] = node.outputs
        if node.op != "output":
            yield node


def _is_pick(node: Node, made: dict[str, tuple[TensorInfo, ...]]) -> bool:
    """`_operator.getitem` takes an item of a tuple, or a part of a tensor: that is an operator."""
    if node.calls is not None:
        return not node.calls
    whole = made.get(node.inputs[0], ()) if node.inputs else ()
    return bool(whole) and set(node.outputs) <= set(whole)


def is_op(node: Node) -> bool:
    """Does it compute? Inputs and constants do not."""
    return node.op.startswith("call_")


def is_input(node: Node) -> bool:
    return node.op in _INPUTS


def is_parameter(node: Node) -> bool:
    """A parameter or buffer of the model, as far as Dynamo tells."""
    return node.op == "get_attr" or bool(_PARAMETER.search(node.source or node.name))


def lacks_value(node: Node) -> bool:
    """Is it an operation of which nobody noted what it gives?"""
    if node.outputs or node.no_tensor or not is_op(node):
        return False
    # Where it is known that no operator was called, there is no tensor either.
    return (node.calls is None or bool(node.calls)) and not _GIVES_NOTHING.search(node.target)


def shown_op(node: Node) -> str:
    """The operator, or which input it is."""
    if not is_input(node):
        return canonical(node.target)
    kind = "parameter" if is_parameter(node) else "input"
    return f"{kind} {_input_name(node)}"


def _input_name(node: Node) -> str:
    """`L['self']._modules['fc']._parameters['weight']` is `fc.weight` to its author."""
    parts = [quoted or plain for quoted, plain in _STEP.findall(node.source)]
    parts = [part for part in parts if part not in _CONTAINERS]
    if parts[:1] == ["self"] and len(parts) > 1:
        del parts[0]
    return ".".join(parts) or node.target


def shown_shape(tensor: TensorInfo) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


@functools.lru_cache(maxsize=1)
def default_device() -> Device:
    return read_device(_FILE)
