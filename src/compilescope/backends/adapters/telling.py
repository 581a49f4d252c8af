"""Tells captures how much of a graph went to the device."""

from __future__ import annotations

from compilescope.backends.islands.records import GraphIslands, share
from compilescope.model.bodies import Measurement
from compilescope.torchapi.sinks import active_sinks


def tell_shares(graph: GraphIslands, device: str) -> None:
    """Two figures: the islands of the graph, and its ops on the device."""
    sinks = active_sinks()
    if not sinks:
        return
    subject = f"{graph.stage} graph {graph.compile_id or ''}".strip()
    figures = [("islands", float(len(graph.islands)), "parts of the graph given to the adapter")]
    part = share(graph.device_ops, graph.ops)
    if part is not None:
        how = f"{graph.device_ops} of {graph.ops} compute ops, counted in the graph"
        figures.append(("device_ops_percent", 100 * part, how))
    for sink in sinks:
        for name, value, how in figures:
            body = Measurement(name, value, subject=subject, variant=device, how=how)
            sink.emit(body, compile_id=graph.compile_id)
