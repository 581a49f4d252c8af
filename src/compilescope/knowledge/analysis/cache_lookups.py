"""Looks into the caches of torch and Triton: for which graph each was, and why one was bypassed."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.stages.staged_graphs import compilation
from compilescope.record.bodies import CacheAccess, GraphCaptured
from compilescope.record.cache_key import KeyPart, decode_key
from compilescope.record.event import Event
from compilescope.record.fingerprint import relative_file
from compilescope.record.graph import Node, decode_graph
from compilescope.record.run import Run

CACHE_NAMES = {
    "fx_graph": "Inductor",
    "aot_autograd": "AOTAutograd",
    "triton": "Triton",
    "remote_fx_graph": "Inductor, remote",
    "remote_aot_autograd": "AOTAutograd, remote",
    "remote_autotune": "autotuning, remote",
    "remote_bundled_autotune": "autotuning of a graph, remote",
    "remote_pgo": "dynamic sizes (PGO), remote",
}
"""Whose each cache is."""
_WORD = late(r"[A-Za-z_]\w*")


class Bypass(msgspec.Struct, frozen=True, kw_only=True):
    """A cache that torch did not ask, and the line because of which it did not."""

    reason: str
    count: int = 1
    file: str = ""
    line: int = 0
    """Of the call that the reason names; else of the function; 0 where neither is known."""
    function: str = ""


class Lookup:
    """One look into one cache, for one graph."""

    def __init__(self, run: Run, body: CacheAccess, rank: int) -> None:
        self._run = run
        self.body = body
        self.rank = rank
        self.captured: GraphCaptured | None = None
        """Dynamo's graph that it was for; None where it is not in the run."""
        self.number = 1
        """Which graph of its function that was, in order."""

    @property
    def place(self) -> tuple[str, int, str]:
        frame = self.captured.frame if self.captured is not None else None
        if frame is None:
            return "", 0, self.body.name
        return frame.file, frame.line, frame.function

    @property
    def graph(self) -> tuple[object, ...]:
        """The same graph in another run, whatever folder the program lay in."""
        file, _, function = self.place
        return self.rank, relative_file(file, self._run.header.root), function, self.number

    @functools.cached_property
    def direction(self) -> str:
        """forward, backward or inference; empty where the key does not tell."""
        given = {part.item: part.value for part in self.own_parts if part.group == "fx_kwargs"}
        if "is_backward" not in given:
            return ""
        if given["is_backward"] == "True":
            return "backward"
        return "inference" if given.get("is_inference") == "True" else "forward"

    @functools.cached_property
    def own_parts(self) -> tuple[KeyPart, ...]:
        return self._parts(self.body.parts)

    @functools.cached_property
    def parts(self) -> tuple[KeyPart, ...]:
        """All that the key was made of; empty where torch did not tell."""
        return self.own_parts + self._parts(self.body.settings)

    def _parts(self, artifact: str | None) -> tuple[KeyPart, ...]:
        text = self._run.artifacts.get(artifact) if artifact else None
        try:
            return decode_key(text).parts if text else ()
        except msgspec.DecodeError:
            return ()

    def text(self, artifact: str | None) -> str:
        return (self._run.artifacts.get(artifact) if artifact else None) or ""


def cache_lookups(run: Run) -> list[Lookup]:
    """In the order in which they were made."""
    found: list[Lookup] = []
    current: dict[tuple[object, ...], tuple[GraphCaptured, int]] = {}
    graphs: dict[tuple[object, ...], int] = {}
    for event in run.events:
        body = event.body
        if isinstance(body, GraphCaptured) and body.stage == "dynamo":
            function = (event.pid, body.frame and (body.frame.file, body.frame.function))
            graphs[function] = graphs.get(function, 0) + 1
            current[compilation(event)] = body, graphs[function]
        elif isinstance(body, CacheAccess):
            found.append(_lookup(run, event, body, current))
    return found


def _lookup(
    run: Run,
    event: Event,
    body: CacheAccess,
    current: dict[tuple[object, ...], tuple[GraphCaptured, int]],
) -> Lookup:
    lookup = Lookup(run, body, event.rank)
    known = current.get(compilation(event))
    if known is not None and not body.name:
        lookup.captured, lookup.number = known
    return lookup


def bypasses(lookups: list[Lookup]) -> dict[str, tuple[Bypass, ...]]:
    """By cache: each reason once a line, the most frequent first."""
    counted: dict[str, dict[Bypass, int]] = {}
    for lookup in lookups:
        if lookup.body.outcome == "bypass":
            of_cache = counted.setdefault(lookup.body.cache, {})
            each = bypass(lookup)
            of_cache[each] = of_cache.get(each, 0) + 1
    return {
        cache: tuple(
            msgspec.structs.replace(each, count=count)
            for each, count in sorted(found.items(), key=lambda pair: -pair[1])
        )
        for cache, found in counted.items()
    }


def bypass(lookup: Lookup) -> Bypass:
    reason = " ".join(lookup.body.reason.split())
    file, line, function = lookup.place
    for node in _named_nodes(lookup, reason):
        if node.frame is not None:
            file, line = node.frame.file, node.frame.line
            function = node.frame.function
            break
    return Bypass(reason=reason, file=file, line=line, function=function)


def _named_nodes(lookup: Lookup, reason: str) -> Iterator[Node]:
    """The calls of Dynamo's graph whose target a reason names."""
    text = lookup.text(lookup.captured.graph) if lookup.captured is not None else ""
    try:
        nodes = decode_graph(text).nodes if text else ()
    except msgspec.DecodeError:
        return
    said = set(_WORD.findall(reason))
    for node in nodes:
        name = node.target.rpartition(".")[2]
        if node.op.startswith("call_") and name in said:
            yield node
