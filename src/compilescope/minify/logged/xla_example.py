"""Scripts for breaks of torch_xla's own, which Dynamo on plain torch does not show.

torch_xla records operations and compiles them at the next sync; the script counts what it compiles
in one step. It is run here where torch_xla is installed, and says so where it is not.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from compilescope.analysis.logged.callers import in_module
from compilescope.findings.breaks import Site
from compilescope.minify.script.ending import ending_source, exits
from compilescope.minify.script.verification import write_verified
from compilescope.model.run import Run
from compilescope.rules.causes.device_words import DEVICE_RULES

_SCRIPT = '''\
"""Shows how torch_xla ends a graph: {kind}

The log has it at {place}:

    {source}

This is not that program, but a small one that ends a graph in the same way. {verified}

    PJRT_DEVICE=CPU python {name}    torch_xla on a CPU
    PJRT_DEVICE=TT python {name}     a Tenstorrent device

{exits}
"""

import sys
import traceback

import torch


def compiled():
    import torch_xla.debug.metrics as metrics

    data = metrics.metric_data("CompileTime")
    return data[0] if data else 0


def main():
    import torch_xla

    device = torch_xla.device()
    x = torch.ones(4, 8).to(device)
    torch_xla.sync()
    before = compiled()
{program}
    graphs = compiled() - before
    return graphs > 1, f"graphs that torch_xla compiled: {{graphs}}, 1 is enough."


{ending}

conclude_from(main, thing="graph break")
'''
_PROGRAMS = {
    "host-read": """\
    y = x * 2 + 1
    scale = y.abs().max().item()  # The value is needed here: a graph ends.
    y = y / scale
    torch_xla.sync()""",
    "operator": """\
    y = x * 2 + 1
    y = torch.special.bessel_j0(y)  # No lowering: it runs on the CPU, and a graph ends.
    y = y / 3
    torch_xla.sync()""",
    "inner-sync": """\
    y = x * 2 + 1
    torch_xla.sync()  # Within a step: a graph ends.
    y = y / 3
    torch_xla.sync()""",
    "changing-sync": """\
    for size in (1, 2, 3):
        y = x[:size] * 2 + 1  # Another shape in each step: another graph.
        torch_xla.sync()""",
}
_LIMIT_S = 120.0
"""For one check of the script. Chosen: as long as for the other examples of a log."""
MISSING = "torch_xla is not installed here"


def lazy_program(site: Site) -> str:
    """The program that ends graphs as this break does; empty where there is none."""
    if site.rule == "xla/host-read":
        return _PROGRAMS["operator" if _is_operator(site) else "host-read"]
    if site.rule == "xla/sync":
        inner = "Inside the model" in site.why
        return _PROGRAMS["inner-sync" if inner else "changing-sync"]
    return ""


def shows_in_dynamo(site: Site, run: Run) -> bool:
    """Does the program on plain torch show it too, once it is compiled? A value that a module reads
    breaks Dynamo's graph as well; syncs, operators and training loops don't."""
    if site.rule not in DEVICE_RULES or site.rule == "log/unreported-break":
        return True
    if site.rule != "xla/host-read" or _is_operator(site):
        return False
    return any(in_module(event.stack) for event in run.events if event.id in site.because)


def _is_operator(site: Site) -> bool:
    return "reads no value itself" in site.why


def write_lazy(site: Site, path: Path, kind: str, place: str, source: str) -> tuple[bool, str]:
    """Was it verified, and if it was not, why."""
    values = {
        "kind": kind,
        "place": place,
        "source": source or "(the log does not include the line)",
    }
    values |= {"program": lazy_program(site), "name": path.name}
    values |= {"exits": exits("graph break"), "ending": ending_source()}
    if importlib.util.find_spec("torch_xla") is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _SCRIPT.format(verified=f"Unverified: {MISSING}.", **values)
        path.write_text(text, encoding="utf-8")
        return False, MISSING
    text = _SCRIPT.format(verified="Verified here on torch_xla.", **values)
    made = write_verified(path, text, timeout_s=_LIMIT_S)
    return made.path is not None, made.reason
