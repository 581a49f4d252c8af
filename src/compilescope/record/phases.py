"""Phases of a compilation as they are seen, live or in a trace, and how they become one event."""

from __future__ import annotations

from compilescope.record.bodies import Phase


class SeenPhase:
    """A phase that has begun."""

    __slots__ = ("compile_id", "depth", "detail", "end_ns", "name", "start_ns", "unended")

    def __init__(self, name: str, start_ns: int, depth: int, compile_id: str | None) -> None:
        self.name = name
        self.start_ns = start_ns
        self.depth = depth
        self.compile_id = compile_id
        self.detail = ""
        self.end_ns: int | None = None
        self.unended = False


def by_compilation(phases: list[SeenPhase]) -> list[tuple[str | None, list[SeenPhase]]]:
    """Each outermost compilation alone; what lies outside any, together."""
    groups: list[tuple[str | None, list[SeenPhase]]] = []
    for phase in phases:
        outer, group = groups[-1] if groups else (None, [])
        if not groups or (phase.depth == 0 and (outer or phase.compile_id)):
            groups.append((phase.compile_id, [phase]))
            continue
        group.append(phase)
        if outer is None and phase.compile_id is not None:
            groups[-1] = (phase.compile_id, group)
    return groups


def recorded(outer: str | None, group: list[SeenPhase]) -> tuple[Phase, ...]:
    """The phases of one outermost compilation, as an event keeps them."""
    return tuple(
        Phase(
            name=phase.name,
            start_ns=phase.start_ns,
            duration_ns=max((phase.end_ns or 0) - phase.start_ns, 0),
            depth=phase.depth,
            compile_id=None if phase.compile_id == outer else phase.compile_id,
            detail=phase.detail,
            ended=not phase.unended,
        )
        for phase in group
    )
