"""The script of a graph with everything that is wrong with it, before anything is taken out."""

from __future__ import annotations

import torch

from compilescope.backends.mock.backend import CheckedModule
from compilescope.change.minify.script.graph_script import script_text
from compilescope.change.minify.violations.kinds import facts, setting_of, shown
from compilescope.instrument.torchapi.repros.graph_writer import write_graph


def violation_script(judged: CheckedModule) -> str:
    """Raises Unwritable where the graph or a constraint has no source of its own."""
    written = write_graph(judged.module)
    found = facts(each for graph in judged.checked for each in graph.errors)
    return script_text(
        written.graph,
        setting_of(judged, written),
        shown(judged, found),
        torch_version=torch.__version__,
    )
