"""The mock backend that goes on to real kernels: AOTAutograd, then Inductor, each stage kept.

Constraints are checked on the forward and on the backward graph, at ATen level, after Inductor's
decompositions and before anything is lowered.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from torch.fx import GraphModule

from compilescope.backends.checking import (
    CheckedGraph,
    check_module,
    check_portable,
    graph_of,
)
from compilescope.backends.mock.backend import Judged, MockBackend, Reproduce, judge
from compilescope.backends.mock.configuration import Configuration, configure
from compilescope.backends.mock.kept import Compilation, Draw, KeptStage
from compilescope.model.bodies import GraphStage
from compilescope.model.graph import Graph
from compilescope.rules.constraints.operators import UnsupportedOpsConstraint
from compilescope.rules.graphs.placing import placed
from compilescope.torchapi.compiling.ids import current_compile_id
from compilescope.torchapi.compiling.models import current_model
from compilescope.torchapi.compiling.modes import current_contexts, is_restart
from compilescope.torchapi.graphs.fx import origins, portable
from compilescope.torchapi.inductor.stages import (
    Direction,
    input_positions,
    lower,
    mode_options,
    readable,
)

_WORD = re.compile(r"\W+")
_CHECKED: tuple[GraphStage, ...] = ("aot_forward", "aot_backward", "aot_inference")


class AotMockBackend(MockBackend):
    """Callable by torch as a backend, and by users as its own factory."""

    __name__ = "aot_mock_backend"

    def __init__(
        self,
        configuration: Configuration | None = None,
        reproduce: Reproduce | None = None,
        draw: Draw | None = None,
    ) -> None:
        super().__init__(configuration, reproduce)
        self._draw = draw
        self.graphs: list[Compilation] = []
        """One for each graph that Dynamo handed over, in order."""

    def _configured(self, arguments: dict[str, Any]) -> AotMockBackend:
        return type(self)(configure(**arguments), self._reproduce, self._draw)

    def compile(
        self,
        module: GraphModule,
        inputs: Sequence[Any] = (),
        *,
        options: dict[str, Any] | None = None,
        mode: str | None = None,
    ) -> Callable[..., Any]:
        """What torch calls. `options` and `mode` are Inductor's."""
        configuration = self._configuration_now({})
        kept = Compilation(current_model(), current_compile_id(), draw_with=self._draw)
        self.graphs.append(kept)
        keeper = _Keeper(module, inputs, configuration, kept, self._reproduce)
        try:
            return lower(module, inputs, keeper, {**mode_options(mode), **(options or {})})
        except Exception as error:
            if is_restart(error):
                self.graphs.remove(kept)
            else:
                kept.error = f"{type(error).__name__}: {error}"
            raise

    def clear(self) -> None:
        """Forget what was kept."""
        self.graphs.clear()

    def save(self, folder: str | Path, *, drawings: bool = False) -> Path:
        """Write all that was kept, one folder for each graph. `drawings` adds graphs as SVG."""
        root = Path(folder)
        for number, kept in enumerate(self.graphs):
            name = _WORD.sub("-", kept.model).strip("-") or "graph"
            kept.save(root / f"{number}-{name}", drawings=drawings)
        return root


class _Keeper:
    """Keeps the stages of one compilation, and judges its graphs before they are lowered."""

    def __init__(
        self,
        module: GraphModule,
        inputs: Sequence[Any],
        configuration: Configuration,
        kept: Compilation,
        reproduce: Reproduce | None,
    ) -> None:
        self._configuration = configuration
        self._kept = kept
        self._reproduce = reproduce
        # Inductor changes the graph that it is given; a repro is made of what Dynamo caught.
        self._caught_module = GraphModule(module, copy.deepcopy(module.graph))
        self._caught = portable(module)
        self._hidden = self._operators_caught(module, inputs)
        self._contexts = current_contexts()
        self._unjudged: list[tuple[GraphStage, Graph]] = []
        kept.stages.append(KeptStage("dynamo", "", readable(module), self._caught))

    def keep_graph(self, stage: GraphStage, direction: Direction, module: GraphModule) -> None:
        constraints = self._configuration.constraints if stage in _CHECKED else ()
        graph = placed(
            graph_of(module, constraints), origins(module), input_positions(module), self._caught
        )
        self._kept.stages.append(KeptStage(stage, direction, readable(module), graph))
        if stage in _CHECKED:
            self._unjudged.append((stage, graph))

    def keep_text(self, stage: GraphStage, direction: Direction, text: str) -> None:
        self._kept.stages.append(KeptStage(stage, direction, text))

    def keep_code(self, direction: Direction, text: str) -> None:
        self._kept.stages.append(KeptStage("kernels", direction, text))

    def miss(self, stage: GraphStage, reason: str) -> None:
        self._kept.missing[stage] = reason

    def before_lowering(self, direction: Direction) -> None:
        configuration = self._configuration
        checked = [
            check_portable(graph, configuration.constraints, stage, configuration.name)
            for stage, graph in self._unjudged
        ]
        if self._hidden is not None:
            checked.append(_taken_apart(self._hidden, [graph for _, graph in self._unjudged]))
            self._hidden = None
        self._unjudged.clear()
        self._kept.checked += checked
        self._kept.refused = configuration.strict and any(each.errors for each in checked)
        graphs = Judged(
            self._caught_module,
            tuple(checked),
            configuration,
            "aot_mock_backend",
            self._contexts,
        )
        judge(graphs, self._reproduce, inspect.currentframe())

    def _operators_caught(self, module: GraphModule, inputs: Sequence[Any]) -> CheckedGraph | None:
        """What a device has against operators, before Inductor takes some of them apart."""
        constraints = [
            each
            for each in self._configuration.constraints
            if isinstance(each, UnsupportedOpsConstraint)
        ]
        if not constraints:
            return None
        return check_module(module, constraints, inputs=inputs, device=self._configuration.name)


def _taken_apart(caught: CheckedGraph, lowered: Sequence[Graph]) -> CheckedGraph:
    """Refused operators that are there no more: a device without Inductor would meet them."""
    left = {target for graph in lowered for target in _targets(graph)}
    return msgspec.structs.replace(
        caught,
        found=tuple(
            msgspec.structs.replace(
                each,
                severity="warning",
                found=f"{each.found}; Inductor decomposes it, and the parts are checked",
            )
            for each in caught.errors
            if each.op not in left
        ),
    )


def _targets(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.target
        for inner in node.graphs:
            yield from _targets(inner)
