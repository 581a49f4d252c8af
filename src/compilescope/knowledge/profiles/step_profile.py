"""The profile of a run: each process's, with its bar."""

from __future__ import annotations

from statistics import median

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.profiles.calls import UnfusedPair, read_places, read_unfused
from compilescope.knowledge.profiles.causes import Cause, causes_of
from compilescope.knowledge.profiles.kernel_rows import KernelRow, kernel_rows, read_roof
from compilescope.knowledge.profiles.step import StepBar, bar_of
from compilescope.knowledge.profiles.trace import read_stored
from compilescope.record.bodies import StepsProfiled
from compilescope.record.run import Run

_GRAPH_SETUP = "cudagraphify.get_container"
"""What torch calls it: once for each new combination of the sizes that a graph was left open for.
The call runs without a CUDA graph; the next one of these sizes records it."""


class StepProfile(msgspec.Struct, frozen=True):
    """What is known of one process's steps."""

    rank: int
    told: StepsProfiled
    bar: StepBar | None = None
    causes: list[Cause] = []
    kernels: list[KernelRow] = []
    graph_launches: bool = False
    """CUDA graphs are used."""
    graph_setups: float = 0.0
    """How often a step CUDA graphs are set up for sizes that they do not know yet."""
    unfused: list[UnfusedPair] = []


def profiles_of(run: Run) -> list[StepProfile]:
    """One a process that was asked for one, by rank."""
    read: dict[tuple[object, ...], StepProfile] = {}
    found = []
    for event, body in run.of(StepsProfiled):
        step_us = median(body.step_ns) / 1e3 if body.step_ns else None
        # A run from anywhere may name one trace in each of its events.
        key = (body.trace, body.places, body.unfused, step_us, body.matmul_precision, body.reason)
        if key not in read:
            read[key] = _profile(run, event.rank, body, step_us)
        told = msgspec.structs.replace(body, reason=read[key].told.reason)
        found.append(msgspec.structs.replace(read[key], rank=event.rank, told=told))
    return sorted(found, key=lambda profile: profile.rank)


def _profile(run: Run, rank: int, body: StepsProfiled, step_us: float | None) -> StepProfile:
    text = run.artifacts.get(body.trace) if body.trace else None
    if not text:
        return StepProfile(rank, body)
    try:
        trace = read_stored(text)
    except ToolError:
        damaged = msgspec.structs.replace(body, reason="its record is damaged")
        return StepProfile(rank, damaged)
    places = read_places(run.artifacts.get(body.places) if body.places else None)
    roof = read_roof(body.roof)
    causes = causes_of(trace, places, step_us, body.matmul_precision, roof)
    graphs = any("GraphLaunch" in span.name for span in trace.host)
    setups = sum(span.name == _GRAPH_SETUP for span in trace.host) / max(len(trace.steps), 1)
    bar = bar_of(trace, step_us, places)
    kernels = kernel_rows(trace, places, step_us)
    unfused = read_unfused(run.artifacts.get(body.unfused) if body.unfused else None)
    return StepProfile(rank, body, bar, causes, kernels, graphs, setups, unfused)
