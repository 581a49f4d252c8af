"""The guard tree of a cache entry, and what checking it costs."""

from __future__ import annotations

import msgspec

from compilescope.model.stack import CodeRef, Frame


class GuardCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """A leaf: something about one value that has to hold."""

    kind: str
    conditions: tuple[str, ...] = ()


class GuardNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that is guarded, and the values reached through it."""

    source: str
    """The value, as Dynamo writes it."""
    type: str = ""
    checks: tuple[GuardCheck, ...] = ()
    total_ns: float | None = None
    """Reaching the value and checking it and all below it; None where it was not measured."""
    own_ns: float | None = None
    """The same, less what is below it."""
    frame: Frame | None = None
    """The user's line that made Dynamo guard it."""
    children: tuple[GuardNode, ...] = ()

    def walk(self) -> list[GuardNode]:
        """This node and all below it, in the order in which they are checked."""
        return [self, *(node for child in self.children for node in child.walk())]


class GuardCost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cache entry: its tree and what checking it costs at each call."""

    compile_id: str | None
    frame: CodeRef | None
    tree: GuardNode
    warm_ns: float | None = None
    """One check of all guards, caches warm: the median over repeats."""
    cold_ns: float | None = None
    """The same with the processor's caches flushed first, as torch's own profiler measures it."""
    guards: int = 0
    unmeasured: int = 0
    """Nodes for which there was no time left."""
