"""Records the graphs of a program, tries each with the backend, and searches those that fail."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.compilation.settings import everything_compiled
from compilescope.instrument.torchapi.trials.backends import (
    Compile,
    CountedBackend,
    compiled_alone,
    eager_random_numbers,
    find_backend,
    uncompiled,
)
from compilescope.measure.diff.localize.attribution import RIGHT_ALONE, Attribution
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    GraphRecord,
    GraphRecorder,
    examine,
    graph_of_module,
)
from compilescope.measure.diff.localize.names import Namer
from compilescope.measure.diff.localize.probes import PartProber, Probe
from compilescope.measure.diff.localize.records import GuiltyOperation, Localization, budget_for
from compilescope.measure.diff.localize.search import Hunt
from compilescope.measure.diff.runs import trial
from compilescope.measure.diff.runs.model_state import BackendState, State
from compilescope.measure.diff.runs.modes import Randomness, same_world
from compilescope.measure.diff.runs.trial import weights_for
from compilescope.measure.tensors.copies import CopiedArguments
from compilescope.measure.tensors.tolerances import ComparisonConfig

_MOST_GUILTY = 8
"""The search may compile as often as so many wrong operations would take; then it says so. Chosen;
the user may give a budget instead."""
Backend = str | Callable[..., Any]
Before = Callable[[GraphRecord], None]


@dataclass
class Moment:
    """When a backend was asked about a graph."""

    compile: Compile
    state: BackendState | None = None

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Within the block the backend is as it was then."""
        if self.state is not None:
            self.state.restore()
        with self.compile.again():
            yield


GraphMoment = tuple[GraphRecord, Moment]


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
    asking = _Asking(test_backend, config or ComparisonConfig(), train, attribute, most_compiles)
    with same_world():
        if isinstance(model, GraphModule):
            graphs = [_of_graph(model, tuple(args), train)]
        else:
            plan = _plan(uncompiled(model), tuple(args), kwargs or {}, train, loss)
            graphs = _record([plan], reference, {"dynamic": dynamic})
        found, moments = asking.plainly(graphs)
        if not found.guilty and moments:
            return asking.as_then(moments, found.compiles)
        return found


def localize_plans(
    plans: Sequence[trial.TrialPlan],
    *,
    reference: Backend,
    test_backend: Backend,
    config: ComparisonConfig,
    options: dict[str, Any],
    moments: Sequence[Moment] = (),
) -> Localization:
    """The same for a program that runs several times, with other inputs, and goes wrong the last
    time: a graph of then may be one that Dynamo compiled anew. `moments` are those at which the
    test backend was asked when it went wrong."""
    asking = _Asking(test_backend, config, plans[-1].train, True, None)
    last = len(plans) - 1
    with same_world():
        graphs = _record(plans, reference, options)
        known = list(_at_their_moments(graphs, moments))
        for graph, moment in known:
            # The recorder's own compilations have other numbers than the test's.
            graph.compile = moment.compile
        wanted = [graph for graph in graphs if _is_called(graph, last)]
        then = [(graph, moment) for graph, moment in known if _is_called(graph, last)]
        found = Localization()
        if then and len(then) == len(wanted) and not asking.inductor:
            found = asking.as_then(then)
        if not found.guilty:
            plain, _ = asking.plainly(wanted)
            return dataclasses.replace(plain, compiles=found.compiles + plain.compiles)
        return found


def _is_called(graph: GraphRecord, occasion: int) -> bool:
    return any(call.occasion == occasion for call in graph.calls)


def _at_their_moments(
    graphs: Sequence[GraphRecord], moments: Sequence[Moment]
) -> Iterator[GraphMoment]:
    """Both are in the order of compilation; the same graph may come twice."""
    left = list(moments)
    for graph in graphs:
        at = next((n for n, m in enumerate(left) if m.compile.code == graph.compile.code), None)
        if at is not None:
            yield graph, left.pop(at)


class _Asking:
    """A backend that keeps something between its calls may answer otherwise when it is asked again
    about a graph, or about a part of it. So it can be asked in two ways."""

    def __init__(
        self,
        backend: Backend,
        config: ComparisonConfig,
        train: bool,
        attribute: bool,
        most: int | None,
    ) -> None:
        self._function = find_backend(backend)
        self._settings = (backend, config, train, most)
        self._attribute = attribute
        self.inductor = CountedBackend(backend).inductor

    def _search(self) -> _GraphSearch:
        return _GraphSearch(*self._settings)

    def plainly(self, graphs: list[GraphRecord]) -> tuple[Localization, list[GraphMoment]]:
        """As it is. And the moments, where whole graphs went wrong and no part of them did."""
        search = self._search()
        moments: list[GraphMoment] = []

        def note(graph: GraphRecord) -> None:
            moments.append((graph, Moment(graph.compile, BackendState(self._function))))

        with _eager_numbers(search.backend):
            found = search.run(graphs, self._attribute, None if self.inductor else note)
        return found, moments if search.some_fail else []

    def as_then(self, moments: list[GraphMoment], compiles: int = 0) -> Localization:
        """Each graph, and each part of it, with the backend's state and compile id of then."""
        now = BackendState(self._function)
        search = self._search()
        try:
            for graph, moment in moments:
                graph.asked = moment.again
            with _eager_numbers(search.backend):
                found = search.run([graph for graph, _ in moments], self._attribute)
            return dataclasses.replace(found, compiles=compiles + found.compiles)
        finally:
            for graph, _ in moments:
                graph.asked = contextlib.nullcontext
            now.restore()


def _plan(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    train: bool,
    loss: Callable[[Any], Any] | None,
) -> trial.TrialPlan:
    state = State(model, (args, kwargs))
    own = CopiedArguments(args, kwargs, state.own)
    return trial.TrialPlan(model, state, own, Randomness(), train, loss)


def _record(
    plans: Sequence[trial.TrialPlan], reference: Backend, options: dict[str, Any]
) -> list[GraphRecord]:
    """Of the last run all calls, of those before it what a graph was compiled for."""
    recorder = GraphRecorder(None if reference == "eager" else find_backend(reference))
    own = {name: options[name] for name in ("dynamic", "fullgraph") if name in options}
    compiled = compiled_alone(plans[0].model, CountedBackend(recorder), **own)
    try:
        with everything_compiled():
            for number, plan in enumerate(plans):
                recorder.occasion, recorder.thorough = number, plan is plans[-1]
                outcome = trial.run(plan, compiled)
                _check(outcome)
    finally:
        plans[0].state.restore()
    return [graph for graph in recorder.graphs if graph.calls]


def _check(outcome: trial.TrialOutcome) -> None:
    if outcome.error is not None:
        words = " ".join(str(outcome.error).split())[:300]
        raise ToolError(
            f"The program does not run: {type(outcome.error).__name__}: {words}",
            hint="Localizing needs a program that the reference runs to completion.",
        ) from outcome.error


def _of_graph(model: GraphModule, args: tuple[Any, ...], train: bool) -> GraphRecord:
    graph = graph_of_module(model, args)
    if train:
        found = model(*args)
        for number, value in enumerate(found if isinstance(found, (tuple, list)) else (found,)):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                graph.calls[0].cotangents[number] = weights_for(value, number)
    return graph


@contextlib.contextmanager
def _eager_numbers(backend: CountedBackend) -> Iterator[None]:
    if not backend.inductor:
        yield
        return
    with eager_random_numbers():
        yield


class _GraphSearch:
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
        self._guilty: list[GuiltyOperation] = []
        self.some_fail = False
        """Some graph goes wrong as a whole."""

    def run(
        self, graphs: list[GraphRecord], attribute: bool, before: Before | None = None
    ) -> Localization:
        """`before` the backend is first asked about a graph."""
        nodes = sum(graph.size for graph in graphs)
        limit = self._most or budget_for(nodes, _MOST_GUILTY, len(graphs))
        probers = [self._prober(graph) for graph in graphs]
        wholes = []
        for prober in probers:
            if before is not None:
                before(prober.graph)
            wholes.append(prober.whole())
        self.some_fail = any(whole.fails for whole in wholes)
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

    def _prober(self, graph: GraphRecord) -> PartProber:
        anatomy = examine(graph.module, graph.calls[0])
        return PartProber(graph, anatomy, self.backend, self._config, train=self._train)

    def _conclude(self, prober: PartProber, hunt: Hunt, attribute: bool) -> None:
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

    def _note_odd(self, probers: list[PartProber], wholes: list[Probe]) -> None:
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

    def _reason(self, graphs: list[GraphRecord], wholes: list[Probe]) -> str:
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
