"""The graphs that Dynamo handed to a backend, why it made several, and the devices in them."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.findings.compile_ids import compile_key
from compilescope.record.bodies import (
    CompileFailed,
    CompileTime,
    GraphCaptured,
    GuardSet,
    ProcessEnded,
    ProcessStarted,
)
from compilescope.record.event import Event
from compilescope.record.graph import decode_graph
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, place_of

_MOST_GRAPHS = 8
"""To look at: a program rarely changes its device, and each takes time to read. Chosen."""


class DynamoGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One graph."""

    compile_id: str | None
    file: str
    line: int
    function: str
    resumed_at: int | None
    """The line from which its frame goes on after a break."""
    ops: int | None
    backend: str | None
    ended_by_break: bool | None
    reason: str
    """Why it ended where it does, in PyTorch's words."""
    rank: int
    text: str | None
    """Artifact: its code."""


def captured_graphs(run: Run) -> list[DynamoGraph]:
    graphs = []
    for event, body in run.of(GraphCaptured):
        if body.stage != "dynamo":
            continue
        code = body.frame or CodeRef("", 0, "?")
        graphs.append(
            DynamoGraph(
                compile_id=event.compile_id,
                file=code.file,
                line=code.line,
                function=code.function,
                resumed_at=code.resumed_at,
                ops=body.ops,
                backend=body.backend,
                ended_by_break=body.ended_by_break,
                reason=body.reason,
                rank=event.rank,
                text=body.text,
            )
        )
    return graphs


# The devices (cpu, cuda, ...) that a program's tensors were on, as far as its graphs say.


def devices(run: Run) -> tuple[str, ...]:
    """The name of the accelerator where it is known; else its device, or `cpu` where there is no
    other; empty where no graph says."""
    named = dict.fromkeys(body.accelerator for _, body in run.of(ProcessEnded) if body.accelerator)
    seen = dict.fromkeys(device for device in _of_graphs(run) if device != "meta")
    others = [device for device in seen if device != "cpu"]
    if others and named:
        return tuple(named)
    return tuple(others) or tuple(seen)


def _of_graphs(run: Run) -> list[str]:
    kept = [body.graph for _, body in run.of(GraphCaptured) if body.stage == "dynamo"]
    found = []
    for name in [name for name in kept if name][:_MOST_GRAPHS]:
        text = run.artifacts.get(name)
        with suppress(msgspec.DecodeError):
            nodes = decode_graph(text).nodes if text else ()
            found += [out.device for node in nodes for out in node.outputs if out.device]
    return found


# Why Dynamo split a function into several graphs: each graph break once, in PyTorch's words.


class BreakReason(msgspec.Struct, frozen=True, kw_only=True):
    """One graph break."""

    gb_id: str | None
    gb_type: str
    explanation: str
    hints: tuple[str, ...]
    file: str
    line: int
    function: str
    source: str
    count: int
    """How often it was reported."""

    def __str__(self) -> str:
        at = f"{place_of(self.file, self.line)} in {self.function}" if self.file else self.function
        source = f" `{self.source.strip()}`" if self.source.strip() else ""
        name = f"{self.gb_type} ({self.gb_id})" if self.gb_id else self.gb_type
        return f"{at}{source}: {name}: {self.brief}".rstrip(": ")

    @property
    def brief(self) -> str:
        """The first paragraph of the explanation; what follows is how a value was computed."""
        return " ".join(self.explanation.strip().split("\n\n", 1)[0].split())


def break_reasons(run: Run) -> list[BreakReason]:
    """In order of appearance."""
    return [
        BreakReason(
            gb_id=site.gb_id,
            gb_type=site.gb_type,
            explanation=site.explanation,
            hints=site.hints,
            file=site.file,
            line=site.line,
            function=site.function,
            source=site.source,
            count=site.count,
        )
        for site in break_sites(run)
    ]


def graph_count(run: Run) -> int:
    """Graphs that Dynamo handed to a backend."""
    return len(compiled_graphs(run))


def compiled_graphs(run: Run) -> list[tuple[Event, GraphCaptured]]:
    """Those graphs; where a process was killed, without the one whose compilation had only begun:
    a graph is written before the backend gets it."""
    graphs = [each for each in run.of(GraphCaptured) if each[1].stage == "dynamo"]
    ended = {event.pid for event, _ in run.of(ProcessEnded)}
    cut_off = {event.pid for event, _ in run.of(ProcessStarted)} - ended
    if not cut_off or run.live:
        return graphs
    done = {
        compile_key(event, event.compile_id)
        for kind in (CompileTime, GuardSet, CompileFailed)
        for event, _ in run.of(kind)
    }
    return [
        (event, body)
        for event, body in graphs
        if event.pid not in cut_off
        or event.compile_id is None
        or compile_key(event, event.compile_id) in done
    ]
