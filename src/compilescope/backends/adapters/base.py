"""The adapter: subclass it, write `compile`, and it is a backend for torch.compile.

It checks every graph, gives the device what the device takes, leaves the rest to the host, and
keeps a report of both. Nothing falls back in silence.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.comparison import IslandObserver
from compilescope.backends.adapters.contract import IslandCompiler
from compilescope.backends.adapters.custom_checks import FoundBreaches, custom_breaches
from compilescope.backends.adapters.island import (
    AdapterError,
    AdapterWork,
    check_live,
    compile_island,
    host_function,
)
from compilescope.backends.adapters.verification import AdapterVerification, verify
from compilescope.backends.checks import ConstraintViolation, check_portable, tell_captures
from compilescope.backends.islands.calls import IslandCall
from compilescope.backends.islands.pieces import (
    Assembly,
    IslandPlan,
    Piece,
    is_view_node,
    plan_islands,
    take_apart,
    value_of,
)
from compilescope.backends.islands.records import (
    AdapterReport,
    GraphEntry,
    GraphIslands,
    IslandEntry,
    Ledger,
    Sizes,
    share,
)
from compilescope.backends.islands.support import NodeJudgement, NodeRefusal
from compilescope.backends.mock.messages import ConstraintError
from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.calls.operators import Effects, find_effects, find_input_views
from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.graphs.described_graph import DynamoLines, describe_graph
from compilescope.instrument.torchapi.graphs.fx import portable
from compilescope.instrument.torchapi.inductor.graph_compiles import compile_through_aot
from compilescope.instrument.torchapi.sinks import active_sinks
from compilescope.instrument.torchapi.stacks import callers
from compilescope.knowledge.rules.hardware.checks import check_graph
from compilescope.knowledge.rules.hardware.constraint import Breach
from compilescope.record.bodies import GraphStage, Measurement
from compilescope.record.graph import Graph


class AcceleratorAdapter(IslandCompiler):
    """A device behind torch.compile: `torch.compile(model, backend=MyAdapter())`.

    Settings are attributes of the class, or arguments of its constructor.
    """

    def check(
        self, graph: GraphModule | Graph, inputs: Sequence[Any] | None = None
    ) -> list[ConstraintViolation]:
        """What the device has against a graph, live or portable, without compiling anything."""
        capabilities = self._read_capabilities()
        if isinstance(graph, Graph):
            constraints = capabilities.portable_constraints
            return list(check_portable(graph, constraints, "dynamo", capabilities.name).found)
        if not isinstance(graph, GraphModule):
            raise TypeError(f"check() takes a GraphModule or a Graph, not {type(graph).__name__}")
        return list(check_live(graph, capabilities, inputs).found)

    def check_constraints(
        self, graph: GraphModule | Graph, inputs: Sequence[Any] | None = None
    ) -> list[ConstraintViolation]:
        """`check`, under its older name."""
        return self.check(graph, inputs)

    def verify(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> AdapterVerification:
        """Compile a model with this adapter, run it, and look for silent wrongness.

        The model runs with these arguments and with changed ones, and backward where something
        asks for gradients. Neither the model nor this adapter's report is touched.
        """
        examiner = copy.copy(self)
        examiner.__dict__["_ledger"] = Ledger()
        examiner.checked = True
        return verify(examiner, model, args, kwargs)

    @property
    def report(self) -> AdapterReport:
        """What became of the graphs so far."""
        return self._log.report(self._read_capabilities().name, type(self).__name__)

    def forget(self) -> None:
        """Begin the report anew."""
        self.__dict__["_ledger"] = Ledger()

    def __call__(
        self, gm: GraphModule, inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]:
        """The backend, as torch.compile calls it."""
        name = type(self).__name__
        if any(options.values()):
            raise AdapterError(
                name,
                f"{name} does not accept mode or options from torch.compile.",
                f"Set them on the adapter: {name}(fallback='inductor').",
            )
        try:
            self._check_settings()
            capabilities = self._read_capabilities()
        except (ToolError, TypeError, ValueError) as error:
            hint = error.hint if isinstance(error, ToolError) else ""
            raise AdapterError(name, str(error), hint) from error
        return AdapterCompilation(self, capabilities, self._log).run(gm, inputs)

    @property
    def _log(self) -> Ledger:
        # A subclass need not call our constructor.
        ledger: Ledger = self.__dict__.setdefault("_ledger", Ledger())
        return ledger


log = logging.getLogger(__name__)


class AdapterCompilation:
    """Of one Dynamo graph, and of the graphs that AOTAutograd makes of it."""

    def __init__(
        self, adapter: IslandCompiler, capabilities: AcceleratorCapabilities, ledger: Ledger
    ) -> None:
        self.adapter = adapter
        self.name = type(adapter).__name__
        self.capabilities = capabilities
        self.ledger = ledger
        self._lines: DynamoLines | None = None
        self._compile_id: str | None = None

    def run(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self._compile_id = current_compile_id()
        above = callers()
        self._lines = DynamoLines(portable(module), above[-1] if above else None)
        if self.adapter.level == "dynamo":
            if _needs_gradients(inputs):
                raise ToolError(
                    f"{self.name} works on Dynamo's graphs, which have no backward pass, but "
                    "gradients are needed here.",
                    hint="Call the model under torch.no_grad(), or use level='aten'.",
                )
            return self._compile(module, inputs, stage="dynamo")
        stage = functools.partial
        return compile_through_aot(
            module,
            inputs,
            forward=stage(self._compile, stage="aot_forward"),
            backward=stage(self._compile, stage="aot_backward"),
            inference=stage(self._compile, stage="aot_inference"),
            decompositions=self.adapter.decompositions,
        )

    def _compile(
        self, module: GraphModule, inputs: Sequence[Any], *, stage: GraphStage
    ) -> Callable[..., Any]:
        adapter = self.adapter
        judgement, effects = self._judge(module, stage)
        plan = plan_islands(
            module,
            judgement,
            effects.ordered,
            min_ops=adapter.min_island_ops,
            unsure=adapter.unsure,
        )
        entry = GraphEntry(
            stage,
            self._compile_id,
            Sizes(judgement, is_view_node),
            plan.host,
            plan.cut_by,
            adapter.fallback,
        )
        self.ledger.graphs.append(entry)
        self._tell(judgement, plan, stage)
        assembly = take_apart(
            module,
            plan.islands,
            effects.ordered,
            host_pieces=adapter.fallback == "inductor",
        )
        self._fill_in(assembly, entry)
        if active_sinks():
            _tell_shares(entry.record(), self.capabilities.name)
        log.info("%s: %s, %d islands", self.name, stage, len(plan.islands))
        run: Callable[..., Any] = assembly.module.forward
        return run

    def _judge(self, module: GraphModule, stage: GraphStage) -> tuple[NodeJudgement, Effects]:
        adapter, lines = self.adapter, self._lines
        graph = describe_graph(module, lines)
        effects = find_effects(module, graph, random_is_free=adapter.random == "device")
        kept = dict(effects.kept)
        if stage == "dynamo":
            kept = {**find_input_views(graph), **kept}
        judgement = NodeJudgement(
            graph,
            self.capabilities.constraints,
            kept={
                name: NodeRefusal(rule=effect.rule, found=effect.words)
                for name, effect in kept.items()
            },
            extra=custom_breaches(self.capabilities.custom_checks, module, graph),
            unsure=adapter.unsure,
            called_at=lines.called_at if lines is not None else None,
        )
        return judgement, effects

    def _tell(self, judgement: NodeJudgement, plan: IslandPlan, stage: GraphStage) -> None:
        """Captures hear of every violation. Who refuses to leave anything to the host raises."""
        found = judgement.breaches
        if self.adapter.fallback == "refuse":
            told = {breach.node for breach in found if breach.severity == "error"}
            found += [
                _as_breach(judgement, name, refusal)
                for name, refusal in plan.host.items()
                if judgement.is_counted(name) and name not in told
            ]
        if self.adapter.strict:
            found += check_graph(judgement.graph, judgement.of_graphs)
        device = self.capabilities.name
        checked = check_portable(judgement.graph, [FoundBreaches(found)], stage, device)
        tell_captures(checked)
        left = self.adapter.fallback == "refuse" and any(map(judgement.is_counted, plan.host))
        if left or (self.adapter.strict and checked.errors):
            raise ConstraintError([checked], backend=self.name, frame=inspect.currentframe())

    def _fill_in(self, assembly: Assembly, entry: GraphEntry) -> None:
        work = AdapterWork(self.adapter, self.capabilities, self.ledger)
        for piece in assembly.host:
            run = host_function(piece, self.adapter.fallback, entry.notes)
            self._put(assembly, piece, IslandCall(piece.name, run, _expected(piece)))
        for number, piece in enumerate(assembly.islands):
            label = f"{self.name}: island {number} of the {entry.stage} graph"
            island = IslandEntry([node.name for node in piece.nodes])
            entry.islands.append(island)
            compiled = compile_island(work, piece, island, label, entry)
            call = IslandCall(
                label,
                compiled.run,
                _expected(piece),
                fallback=compiled.fallback,
                on_fallback=functools.partial(_fell_back, island),
            )
            if self.adapter.checked:
                place = len(self.ledger.graphs) - 1
                call.observer = IslandObserver(work, piece, number, place, entry)
                call.observer.watch(compiled.run)
            self._put(assembly, piece, call)

    def _put(self, assembly: Assembly, piece: Piece, call: IslandCall) -> None:
        setattr(assembly.module, piece.name, call)


def _as_breach(judgement: NodeJudgement, name: str, refusal: NodeRefusal) -> Breach:
    return Breach(
        rule=refusal.rule,
        node=name,
        op=judgement.nodes[name].target,
        found=refusal.found,
        allowed=refusal.allowed or "no ops on the host",
        remedy=refusal.remedy,
        frame=judgement.lines.get(name),
    )


def _expected(piece: Piece) -> list[Any]:
    return [value_of(node) for node in piece.outputs]


def _fell_back(island: IslandEntry, why: str) -> None:
    island.status = "failed"
    island.reason = f"{why}; its fallback ran"


def _needs_gradients(inputs: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in inputs
    )


def _tell_shares(graph: GraphIslands, device: str) -> None:
    """Captures get two figures: the islands of the graph, and its ops on the device."""
    subject = f"{graph.stage} graph {graph.compile_id or ''}".strip()
    figures = [("islands", float(len(graph.islands)), "parts of the graph given to the adapter")]
    part = share(graph.device_ops, graph.ops)
    if part is not None:
        how = f"{graph.device_ops} of {graph.ops} compute ops, counted in the graph"
        figures.append(("device_ops_percent", 100 * part, how))
    for sink in active_sinks():
        for name, value, how in figures:
            body = Measurement(name, value, subject=subject, variant=device, how=how)
            sink.emit(body, compile_id=graph.compile_id)
