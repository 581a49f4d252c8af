"""What a mock backend keeps of a compilation: graphs and IR of every stage, and kernel sources."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from compilescope.analysis.stages.printed_graph import read_printed
from compilescope.analysis.stages.tensors import portable_graphs
from compilescope.backends.checks import CheckedGraph, ConstraintViolation
from compilescope.errors import ToolError
from compilescope.graphs.statistics import GraphStatistics, graph_statistics
from compilescope.model.graph import Graph, encode_graph
from compilescope.rules.hardware.memory import Peak, peak_memory

Draw = Callable[[Graph, str, Mapping[str, str]], str]
"""A graph, a title, and nodes to mark with what to say of them -> a picture."""
_LANGUAGES = {"triton": "triton", "cpp": "cpp", "cpp_pybinding": "cpp", "cuda": "cuda"}
_ENDINGS = {"triton": "py", "cpp": "cpp", "cuda": "cu", "metal": "metal"}
_WRAPPER = "cpp_wrapper_src"
"""What Inductor calls the text of a whole graph in C++."""
_WORD = re.compile(r"[^A-Za-z0-9_]+")


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
            name = f"{number:03}-{_WORD.sub('-', kernel.name)}.{ending}"
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
