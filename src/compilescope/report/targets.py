"""Which item of a report explains an event or a compilation: where bars and cells link to."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.findings.compile_ids import CompileKey, compile_key
from compilescope.model.bodies import Recompile
from compilescope.report.section import Reading
from compilescope.report.sections.graphs import drawn_graphs, graph_anchor

_Target = tuple[int, str]
"""How much the item costs, 0 the most, and its anchor."""
_NOWHERE: _Target = (0, "")
_OF_GRAPH = 4
"""After all causes."""


class Targets(msgspec.Struct, frozen=True):
    """Anchors of items that the report really has."""

    events: dict[str, _Target]
    """By event id."""
    compilations: dict[CompileKey, _Target]
    recompiled: set[CompileKey]

    def of_event(self, event_id: str) -> str:
        return self.events.get(event_id, _NOWHERE)[1]

    def of_compilation(self, key: CompileKey | None) -> str:
        return self.compilations.get(key, _NOWHERE)[1] if key is not None else ""


def targets(reading: Reading) -> Targets:
    """Of several items the one that costs most leads: a failure, a recompile, a graph break."""
    ranked: dict[str, _Target] = {}
    for because, target in _causes(reading):
        for event_id in because:
            ranked.setdefault(event_id, target)
    chosen: dict[CompileKey, _Target] = {}
    recompiled = set()
    for event in reading.run.events:
        found = ranked.get(event.id)
        again = type(event.body) is Recompile
        if event.compile_id is None or (found is None and not again):
            continue
        key = compile_key(event, event.compile_id)
        if key is None:
            continue
        if again:
            recompiled.add(key)
        if found is not None and (key not in chosen or found[0] < chosen[key][0]):
            chosen[key] = found
    for graph in drawn_graphs(reading):
        key = compile_key(graph.event, graph.event.compile_id)
        if key is not None:
            chosen.setdefault(key, (_OF_GRAPH, graph_anchor(graph)))
    return Targets(ranked, chosen, recompiled)


def _causes(reading: Reading) -> Iterator[tuple[tuple[str, ...], _Target]]:
    """The events of each with its rank and its anchor, by rank."""
    seen = reading.digest
    if seen.failures or seen.recompiles:
        from compilescope.report.explanation import failure_anchor, recompile_anchor
    for failure in seen.failures:
        yield failure.because, (0, failure_anchor(failure))
    for frame in seen.recompiles:
        yield frame.because, (1, recompile_anchor(frame))
    for site in seen.sites:
        yield site.because, (2, site.fingerprint)
    for eager in seen.eager_frames:
        yield eager.because, (3, f"eager-{eager.because[0]}")
