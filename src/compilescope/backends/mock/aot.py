"""The mock backend that goes on to real kernels: AOTAutograd, then Inductor, each stage kept.

Constraints are checked on the forward and on the backward graph, at ATen level, before Inductor
takes operators apart and before anything is lowered: a device is described in those operators.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.checks import check_portable, graph_of
from compilescope.backends.mock.backend import CheckedModule, MockBackend, Reproduce, judge, log
from compilescope.backends.mock.configuration import Configuration, configure
from compilescope.backends.mock.kept_stages import Draw, KeptCompilation, KeptStage
from compilescope.graphs.user_lines import placed
from compilescope.model.bodies import GraphStage
from compilescope.model.graph import Graph
from compilescope.torchapi.compilation.current import (
    current_compile_id,
    current_contexts,
    current_model,
    is_restart,
)
from compilescope.torchapi.graphs.fx import origins, portable
from compilescope.torchapi.inductor.graph_compiles import aten_graphs
from compilescope.torchapi.inductor.stages import (
    Direction,
    input_positions,
    lower,
    mode_options,
    readable,
)

_WORD = re.compile(r"\W+")
_STAGES: dict[str, GraphStage] = {
    "forward": "aot_forward",
    "backward": "aot_backward",
    "inference": "aot_inference",
}
_CHECKED = tuple(_STAGES.values())


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
        self.graphs: list[KeptCompilation] = []
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
        configuration = self._configuration_said({})
        kept = KeptCompilation(current_model(), current_compile_id(), draw_with=self._draw)
        self.graphs.append(kept)
        try:
            keeper = _Keeper(module, inputs, configuration, kept, self._reproduce)
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
        kept: KeptCompilation,
        reproduce: Reproduce | None,
    ) -> None:
        self._configuration = configuration
        self._kept = kept
        self._reproduce = reproduce
        # Inductor changes the graph that it is given; a repro is made of what Dynamo caught.
        self._caught_module = GraphModule(module, copy.deepcopy(module.graph))
        self._caught = portable(module)
        self._contexts = current_contexts()
        self._unjudged: list[tuple[GraphStage, Graph]] = []
        self._traced = self._trace(module, inputs)
        kept.stages.append(KeptStage("dynamo", "", readable(module), self._caught))

    def _trace(self, module: GraphModule, inputs: Sequence[Any]) -> bool:
        """Get the graphs that are judged. Where torch cannot, Inductor's own will have to do."""
        if not self._configuration.constraints:
            return True
        try:
            graphs = aten_graphs(module, inputs)
        except Exception as error:  # The border to torch: it may refuse for any reason.
            if is_restart(error):
                raise
            log.debug("the ATen graphs could not be had", exc_info=True)
            return False
        self._unjudged = [
            (_STAGES[name], self._judged_graph(part)) for name, part in graphs.items()
        ]
        return True

    def _judged_graph(self, module: GraphModule) -> Graph:
        graph = graph_of(module, self._configuration.constraints)
        return placed(graph, origins(module), input_positions(module), self._caught)

    def keep_graph(self, stage: GraphStage, direction: Direction, module: GraphModule) -> None:
        judged = stage in _CHECKED and not self._traced
        graph = (
            self._judged_graph(module)
            if judged
            else placed(portable(module), origins(module), input_positions(module), self._caught)
        )
        self._kept.stages.append(KeptStage(stage, direction, readable(module), graph))
        if judged:
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
        self._unjudged.clear()
        self._kept.checked += checked
        self._kept.refused = configuration.strict and any(each.errors for each in checked)
        graphs = CheckedModule(
            self._caught_module,
            tuple(checked),
            configuration,
            "aot_mock_backend",
            self._contexts,
        )
        judge(graphs, self._reproduce, inspect.currentframe())
