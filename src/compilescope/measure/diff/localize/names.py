"""Turns a suspect node into a `GuiltyOperation`: the user's line, the module, inputs and errors."""

from __future__ import annotations

import inspect
import re
from typing import Any

from torch.fx import Node

from compilescope.instrument.torchapi.graphs.fx import portable
from compilescope.measure.diff.localize.probes import PartProber, Probe, WrongResult
from compilescope.measure.diff.localize.records import (
    GuiltyOperation,
    NodePlace,
    ValueRange,
    range_of,
)
from compilescope.measure.diff.localize.search import Hunt, Suspect
from compilescope.measure.tensors.tolerances import relative_error


class Namer:
    """Of the suspects of one graph."""

    def __init__(self, prober: PartProber, hunt: Hunt) -> None:
        self._prober = prober
        self._hunt = hunt
        self._known = {node.name: node for node in portable(prober.graph.module).nodes}

    def name(self, suspect: Suspect) -> GuiltyOperation:
        place = self._place(suspect.node)
        alone = suspect.alone
        worst = _worst(suspect)
        return GuiltyOperation(
            node=place.node,
            target=place.target,
            file=place.file,
            line=place.line,
            function=place.function,
            source=place.source,
            module=place.module,
            stage=suspect.stage,
            graph=self._prober.graph.number,
            compile_id=self._prober.graph.compile.compile_id,
            frame=self._prober.graph.compile.function,
            symbolic=self._prober.graph.compile.symbolic,
            input=self._prober.calls[-1].occasion + 1,
            alone=alone,
            region=self._region(suspect),
            wrong=_words(worst, suspect.probe),
            reason=_reason(suspect, worst),
            input_ranges=self._ranges(suspect),
            error_before=self._before(suspect),
            error_after=worst.error,
        )

    def _place(self, node: Node) -> NodePlace:
        known = self._known[node.name]
        # Functions of torch's own have a class for their home.
        target = known.target.replace("torch._VariableFunctionsClass.", "torch.")
        frame, module = known.frame, module_of(node)
        if frame is None:
            file, line = source_of_module(node)
            return NodePlace(node.name, target, file, line, module=module)
        return NodePlace(
            node.name,
            target,
            frame.file,
            frame.line,
            frame.function,
            frame.source.strip(),
            module,
        )

    def _region(self, suspect: Suspect) -> tuple[NodePlace, ...]:
        if suspect.alone or suspect.whole_graph:
            return ()
        return tuple(self._place(node) for node in suspect.region)

    def _ranges(self, suspect: Suspect) -> tuple[ValueRange, ...]:
        values = self._prober.inputs_of(suspect.node)
        found = [range_of(name, value) for name, value in values.items()]
        return tuple(one for one in found if one is not None)

    def _before(self, suspect: Suspect) -> float | None:
        """As the backend computes the inputs, with nothing wrong before them."""
        wanted = set(suspect.node.all_input_nodes)
        computed = [n for n in wanted if self._prober.anatomy.kinds.get(n) == "tensor"]
        computed = [n for n in computed if n.op.startswith("call_")]
        if not computed or suspect.stage == "backward":
            return 0.0
        errors = [self._error_of(node) for node in computed]
        known = [error for error in errors if error is not None]
        return max(known, default=None)

    def _error_of(self, node: Node) -> float | None:
        probes = [self._hunt.rest, *self._prober.probes(), self._hunt.whole]
        for probe in probes:
            if probe is None or node not in probe.part.outputs or node in probe.wrong_nodes():
                continue
            return _error_in(node, probe)
        return None


def _error_in(node: Node, probe: Probe) -> float | None:
    if probe.results is None or probe.reference is None:
        return None
    number = probe.part.outputs.index(node)
    if number >= len(probe.results.outputs):
        return None
    return relative_error(probe.reference.results.outputs[number], probe.results.outputs[number])


def _worst(suspect: Suspect) -> WrongResult:
    stages = [w for w in suspect.wrong if (w.kind == "gradient") == (suspect.stage == "backward")]
    return max(stages, key=lambda w: -1.0 if w.error is None else w.error)


def _reason(suspect: Suspect, worst: WrongResult) -> str:
    words = worst.judgement.reason
    if suspect.alone:
        return words
    if suspect.whole_graph:
        return f"{words}; only the whole graph shows it: alone the operation is right"
    if len(suspect.region) > 1:
        return (
            f"{words}; only {len(suspect.region)} operations together show it: none is wrong alone"
        )
    return words


def _words(wrong: WrongResult, probe: Probe) -> str:
    if wrong.kind == "output":
        if probe.part.whole:
            return f"result {wrong.number}"
        return f"its result {probe.part.outputs[wrong.number].name}"
    name = probe.part.inputs[wrong.number].node.name
    if wrong.kind == "write":
        return f"{name} after the call: it should have been written to, or left unchanged"
    return f"the gradient of {name}"


_ROOT = re.compile(r"^L\[['\"][^'\"]*['\"]\]\.?")


def module_of(node: Node) -> str:
    """As `model.get_submodule` names it; empty where the node lies in none."""
    name, _ = _innermost(node)
    # Dynamo writes `L['self'].layers.0`, or with brackets where a name is no word.
    return _ROOT.sub("", name).replace("['", ".").replace("']", "").replace("_modules.", "")


def source_of_module(node: Node) -> tuple[str | None, int | None]:
    """The file and line of its `forward`."""
    _, kind = _innermost(node)
    forward = getattr(kind, "forward", None)
    try:
        return inspect.getsourcefile(forward), forward.__code__.co_firstlineno  # type: ignore
    except (TypeError, AttributeError):
        return None, None


def _innermost(node: Node) -> tuple[str, Any]:
    stack = node.meta.get("nn_module_stack") or {}
    for found in reversed(list(stack.values())):
        if isinstance(found, tuple) and len(found) == 2:
            return str(found[0]), found[1]
    return "", None
