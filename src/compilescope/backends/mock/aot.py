"""The mock backend that goes on to real kernels: AOTAutograd, then Inductor, with graphs, IR and
kernel sources of every stage kept.

Constraints are checked on the forward and on the backward graph, at ATen level, before Inductor
takes operators apart and before anything is lowered: a device is described in those operators.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from torch.fx import GraphModule

from compilescope.backends.checks import CheckedGraph, ConstraintViolation, check_portable, graph_of
from compilescope.backends.mock.backend import CheckedModule, MockBackend, Reproduce, judge, log
from compilescope.backends.mock.configuration import Configuration, configure
from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.compilation.current import (
    current_compile_id,
    current_contexts,
    current_model,
    is_restart,
)
from compilescope.instrument.torchapi.graphs.fx import origins, portable
from compilescope.instrument.torchapi.inductor.graph_compiles import (
    Direction,
    aten_graphs,
    input_positions,
    lower,
    mode_options,
    readable,
)
from compilescope.knowledge.analysis.stages.printed_graph import portable_graphs, read_printed
from compilescope.knowledge.rules.hardware.memory import Peak, peak_memory
from compilescope.record.bodies import GraphStage
from compilescope.record.graph import Graph, encode_graph
from compilescope.record.graphs.statistics import GraphStatistics, graph_statistics
from compilescope.record.graphs.user_lines import placed

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


Draw = Callable[[Graph, str, Mapping[str, str]], str]
"""A graph, a title, and nodes to mark with what to say of them -> a picture."""
_LANGUAGES = {"triton": "triton", "cpp": "cpp", "cpp_pybinding": "cpp", "cuda": "cuda"}
_ENDINGS = {"triton": "py", "cpp": "cpp", "cuda": "cu", "metal": "metal"}
_WRAPPER = "cpp_wrapper_src"
"""What Inductor calls the text of a whole graph in C++."""
_NAME = re.compile(r"[^A-Za-z0-9_]+")


class KeptStage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A graph at one stage, or the code made of it."""

    stage: str
    """As in GraphCaptured, or `kernels`: Inductor's output code."""
    direction: str
    """forward, backward, inference, or nothing for a graph that is cut later."""
    text: str
    graph: Graph | None = None
    """None for what is no graph."""

    @property
    def name(self) -> str:
        return f"{self.stage}.{self.direction}" if self._several else self.stage

    @property
    def _several(self) -> bool:
        return bool(self.direction) and not self.stage.startswith("aot_")


class Kernel(msgspec.Struct, frozen=True):
    """The source of one kernel."""

    name: str
    language: str
    """cpp, triton, or what Inductor calls it."""
    source: str
    direction: str


class StageFigures(msgspec.Struct, frozen=True):
    """A graph in numbers."""

    statistics: GraphStatistics
    peak: Peak | None


@dataclass
class KeptCompilation:
    """What became of one graph of Dynamo's."""

    model: str
    compile_id: str | None
    stages: list[KeptStage] = field(default_factory=list)
    """In the order in which they came."""
    missing: dict[str, str] = field(default_factory=dict)
    """Stages that could not be kept, and why."""
    checked: list[CheckedGraph] = field(default_factory=list)
    refused: bool = False
    """Strict mode stopped it: there are no kernels."""
    error: str = ""
    """What ended it before its end."""
    draw_with: Draw | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> KeptStage:
        """A stage by name: `dynamo`, `aot_backward`, `post_grad.forward`, `kernels.inference`."""
        found = [each for each in self.stages if name in (each.name, each.stage)]
        if not found:
            known = ", ".join(dict.fromkeys(each.name for each in self.stages))
            reason = self.missing.get(name)
            raise ToolError(
                f"Stage {name} was not kept" + (f": {reason}." if reason else "."),
                hint=f"The stages are {known}.",
            )
        return found[0]

    def text(self, name: str) -> str:
        """All parts of a stage: a graph with graphs in it is scheduled in several."""
        self[name]
        return "\n\n".join(each.text for each in self.stages if name in (each.name, each.stage))

    @property
    def kernels(self) -> list[Kernel]:
        """In the order of Inductor's code, forward first."""
        codes = [each for each in self.stages if each.stage == "kernels"]
        return [kernel for each in codes for kernel in _kernels(each)]

    def figures(self, name: str) -> StageFigures:
        """Op counts, dtypes, bytes and floating point operations of a graph; its peak memory."""
        stage = self[name]
        if stage.graph is None:
            raise ToolError(f"{name} is not a graph, so it has no statistics.")
        printed = read_printed(stage.text)
        graphs = portable_graphs(printed)
        sources = {node.name: node.source for node in stage.graph.nodes if node.source}
        graphs[0] = msgspec.structs.replace(
            graphs[0],
            nodes=tuple(
                msgspec.structs.replace(node, source=sources.get(node.name, ""))
                for node in graphs[0].nodes
            ),
        )
        return StageFigures(graph_statistics(graphs, printed.returned), peak_memory(stage.graph))

    def draw(self, name: str) -> str:
        """The graph of a stage as SVG, with what breaks a constraint in red."""
        stage = self[name]
        if stage.graph is None or self.draw_with is None:
            raise ToolError(f"{name} is not a graph, so it cannot be drawn.")
        marks: dict[str, str] = {}
        for graph in self.checked:
            for each in graph.errors if graph.stage == stage.stage else ():
                said = f"{each.rule}: {each.found}"
                for name in _nodes_of(each, stage.graph):
                    known = marks.get(name, said)
                    marks[name] = known if said in known else f"{known}; {said}"
        return self.draw_with(stage.graph, f"{self.model or 'graph'}: {stage.name}", marks)

    def save(self, folder: Path, *, drawings: bool = False) -> None:
        """Each stage and kernel as a file."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, ending in dict.fromkeys((each.name, _ending(each)) for each in self.stages):
            (folder / f"{name}.{ending}").write_text(self.text(name), encoding="utf-8")
        for stage in self.stages:
            if stage.graph is None:
                continue
            graph = encode_graph(stage.graph)
            (folder / f"{stage.name}.json").write_text(graph, encoding="utf-8")
            if drawings and self.draw_with is not None:
                picture = self.draw(stage.name)
                (folder / f"{stage.name}.svg").write_text(picture, encoding="utf-8")
        for number, kernel in enumerate(self.kernels):
            home = folder / "kernels" / kernel.direction
            home.mkdir(parents=True, exist_ok=True)
            ending = _ENDINGS.get(kernel.language, "txt")
            name = f"{number:03}-{_NAME.sub('-', kernel.name)}.{ending}"
            (home / name).write_text(kernel.source, encoding="utf-8")
        (folder / "about.json").write_text(self._about(), encoding="utf-8")

    def _about(self) -> str:
        about = {
            "model": self.model,
            "compile_id": self.compile_id,
            "refused": self.refused,
            "error": self.error,
            "missing": self.missing,
            "stages": [each.name for each in self.stages],
            "violations": [each for graph in self.checked for each in graph.found],
            "figures": {
                each.name: self.figures(each.name) for each in self.stages if each.graph is not None
            },
        }
        plain = msgspec.to_builtins(about)
        return json.dumps(plain, indent=1)


def _nodes_of(found: ConstraintViolation, graph: Graph) -> list[str]:
    """The nodes of a kept graph that a violation is about.

    It was found before Inductor took operators apart: the same operator on the same line, or all
    that the line became.
    """
    at = (found.file, found.line)
    line = [n for n in graph.nodes if n.frame and (n.frame.file, n.frame.line) == at]
    same = [node.name for node in line if node.target == found.op]
    inputs = [n.name for n in graph.nodes if n.op == "placeholder" and n.name == found.node]
    return inputs or same or [node.name for node in line if node.op.startswith("call_")]


def _ending(stage: KeptStage) -> str:
    return "txt" if stage.stage.startswith("ir_") else "py"


def _kernels(code: KeptStage) -> Iterator[Kernel]:
    """`name = async_compile.triton(..., '''source''', ...)`: the text is read, never run."""
    try:
        tree = ast.parse(code.text)
    except (SyntaxError, ValueError, RecursionError):
        yield Kernel("wrapper", "cpp", code.text, code.direction)  # Not Python: C++ throughout.
        return
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        language, source = _made_by(value)
        if isinstance(target, ast.Name) and source:
            yield Kernel(target.id, language, source.strip("\n"), code.direction)
        elif isinstance(target, ast.Name) and target.id == _WRAPPER:
            yield Kernel(_WRAPPER, "cpp", _longest([value]).strip("\n"), code.direction)


def _made_by(value: ast.expr) -> tuple[str, str]:
    """The language and the source that Inductor's compiler is given; nothing for other calls."""
    made = value.func if isinstance(value, ast.Call) else None
    if (
        not isinstance(value, ast.Call)
        or not isinstance(made, ast.Attribute)
        or not isinstance(made.value, ast.Name)
        or made.value.id != "async_compile"
    ):
        return "", ""
    return _LANGUAGES.get(made.attr, made.attr), _longest(value.args)


def _longest(arguments: list[ast.expr]) -> str:
    texts = [
        argument.value
        for argument in arguments
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return max(texts, key=len, default="")
