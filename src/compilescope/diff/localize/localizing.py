"""Records the graphs of a program, tries each with the backend, and hunts where one goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from compilescope.diff import trial
from compilescope.diff.config import ComparisonConfig
from compilescope.diff.copies import Arguments
from compilescope.diff.localize.attributing import Attribution
from compilescope.diff.localize.hunting import Hunt
from compilescope.diff.localize.naming import Namer
from compilescope.diff.localize.passes import RIGHT_ALONE
from compilescope.diff.localize.probing import Probe, Prober
from compilescope.diff.localize.records import Guilty, Localization, budget_for
from compilescope.diff.modes import Randomness, same_world
from compilescope.diff.state import State
from compilescope.diff.training import weights_for
from compilescope.errors import ToolError
from compilescope.torchapi.bisecting.anatomy import examine
from compilescope.torchapi.bisecting.recording import (
    GraphRecorder,
    RecordedGraph,
    everything_recorded,
    graph_of_module,
)
from compilescope.torchapi.trials.backends import (
    CountedBackend,
    compiled_alone,
    eager_random_numbers,
    find_backend,
    uncompiled,
)

_MOST_GUILTY = 8
Backend = str | Callable[..., Any]


def localize(
    model: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    reference: Backend = "eager",
    test_backend: Backend,
    config: ComparisonConfig | None = None,
    train: bool = False,
    loss: Callable[[Any], Any] | None = None,
    dynamic: bool | None = None,
    attribute: bool = True,
    most_compiles: int | None = None,
) -> Localization:
    """Name the operations that `test_backend` gets wrong.

    `model` is a module, a function, or a graph as Dynamo makes them. With `attribute` it is also
    found out which pass or lowering of Inductor is responsible, by compilations of its own.
    """
    search = _Search(test_backend, config or ComparisonConfig(), train, most_compiles)
    with same_world():
        graphs = _record(model, tuple(args), kwargs or {}, reference, train, loss, dynamic)
        with _eager_numbers(search.backend):
            return search.run(graphs, attribute)


def _record(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reference: Backend,
    train: bool,
    loss: Callable[[Any], Any] | None,
    dynamic: bool | None,
) -> list[RecordedGraph]:
    if isinstance(model, GraphModule):
        return [_of_graph(model, args, train)]
    model = uncompiled(model)
    state = State(model, (args, kwargs))
    plan = trial.Plan(model, state, Arguments(args, kwargs, state.own), Randomness(), train, loss)
    recorder = GraphRecorder(None if reference == "eager" else find_backend(reference))
    compiled = compiled_alone(model, CountedBackend(recorder), dynamic=dynamic)
    try:
        with everything_recorded():
            outcome = trial.run(plan, compiled)
    finally:
        state.restore()
    if outcome.error is not None:
        words = " ".join(str(outcome.error).split())[:300]
        raise ToolError(
            f"The program does not run: {type(outcome.error).__name__}: {words}",
            hint="Localizing needs a program that the reference runs to completion.",
        ) from outcome.error
    return [graph for graph in recorder.graphs if graph.calls]


def _of_graph(model: GraphModule, args: tuple[Any, ...], train: bool) -> RecordedGraph:
    graph = graph_of_module(model, args)
    if train:
        found = model(*args)
        for number, value in enumerate(found if isinstance(found, (tuple, list)) else (found,)):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                graph.calls[0].cotangents[number] = weights_for(value, number)
    return graph


@contextlib.contextmanager
def _eager_numbers(backend: CountedBackend) -> Any:
    if not backend.inductor:
        yield
        return
    with eager_random_numbers():
        yield


class _Search:
    """Over all graphs."""

    def __init__(
        self,
        backend: Backend,
        config: ComparisonConfig,
        train: bool,
        most_compiles: int | None,
    ) -> None:
        self.backend = CountedBackend(backend)
        self._function = find_backend(backend)
        self._config = config
        self._train = train
        self._most = most_compiles
        self._notes: list[str] = []
        self._guilty: list[Guilty] = []
        self._unknown: list[str] = []

    def run(self, graphs: list[RecordedGraph], attribute: bool) -> Localization:
        nodes = sum(graph.size for graph in graphs)
        limit = self._most or budget_for(nodes, _MOST_GUILTY, len(graphs))
        probers = [self._prober(graph) for graph in graphs]
        wholes = [prober.whole() for prober in probers]
        for prober, whole in zip(probers, wholes, strict=True):
            hunt = Hunt(prober, limit)
            if whole.fails:
                hunt.run()
            elif whole.differs and not self.backend.inductor:
                hunt.look_apart()
            self._conclude(prober, hunt, attribute)
        self._note_odd(probers, wholes)
        guilty = tuple(self._guilty)
        return Localization(
            guilty=guilty,
            compiles=self.backend.calls,
            reason=self._reason(graphs, wholes),
            nodes=nodes,
            graphs=len(graphs),
            budget=budget_for(nodes, len(guilty), len(graphs)),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _prober(self, graph: RecordedGraph) -> Prober:
        anatomy = examine(graph.module, graph.calls[0])
        return Prober(graph, anatomy, self.backend, self._config, train=self._train)

    def _conclude(self, prober: Prober, hunt: Hunt, attribute: bool) -> None:
        self._notes += hunt.notes
        namer = Namer(prober, hunt)
        attribution = Attribution(prober, self._function, self._config)
        found = [(namer.name(suspect), suspect) for suspect in hunt.suspects]
        if not attribute:
            self._guilty += [guilty for guilty, _ in found]
            return
        named = [attribution.add(*each) for each in found]
        wrong = [guilty for guilty in named if guilty.attribution != RIGHT_ALONE]
        if wrong and len(wrong) < len(named):
            # Tried side by side they are one graph, in which a pass may confuse them.
            self._notes.append(
                f"{len(named) - len(wrong)} operations were wrong beside others but right by "
                "themselves; they are not reported"
            )
        self._guilty += wrong or named

    def _note_odd(self, probers: list[Prober], wholes: list[Probe]) -> None:
        for prober, whole in zip(probers, wholes, strict=True):
            if whole.error:
                self._notes.append(f"graph {prober.graph.number}: {whole.error}")
            elif prober.errors:
                self._notes.append(
                    f"graph {prober.graph.number}: the backend raised on "
                    f"{len(prober.errors)} parts: {prober.errors[0]}"
                )
            if prober.graph.calls_seen > len(prober.graph.calls):
                self._notes.append(
                    f"graph {prober.graph.number} was called {prober.graph.calls_seen} times; "
                    f"the first {len(prober.graph.calls)} calls were tried"
                )

    def _reason(self, graphs: list[RecordedGraph], wholes: list[Probe]) -> str:
        if self._guilty:
            several = len(self._guilty) > 1
            words = (
                f"{len(self._guilty)} operations are wrong" if several else "1 operation is wrong"
            )
            return f"{words} of {sum(g.size for g in graphs)} in {_graphs(len(graphs))}"
        if not graphs:
            return "no graph was captured: everything runs eagerly, and the backend is never called"
        broken = next((whole.error for whole in wholes if whole.error), None)
        if broken:
            return f"inconclusive: the backend raised on a whole graph: {broken}"
        if any(whole.fails for whole in wholes):
            return f"no operation could be identified: {'; '.join(self._notes)}"
        unsure = next((w.judgement.reason for whole in wholes for w in whole.unknown), None)
        if unsure:
            return f"inconclusive: {unsure}"
        each = "it" if len(graphs) == 1 else "each"
        return (
            f"the backend is right on {_graphs(len(graphs))}: compiled in one piece, {each} "
            "matches the reference within rounding"
        )


def _graphs(count: int) -> str:
    return "1 graph" if count == 1 else f"{count} graphs"
