"""The devices (cpu, cuda, ...) that a program's tensors were on, as far as its graphs say."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from compilescope.model.bodies import GraphCaptured, ProcessEnded
from compilescope.model.graph import decode_graph
from compilescope.model.run import Run

_MOST_GRAPHS = 8
"""To look at: a program rarely changes its device, and each takes time to read. Chosen."""


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
