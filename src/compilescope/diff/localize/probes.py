"""Gives parts of one graph to the backend, and says which of them go wrong.

A part is compiled once and called as the program called the graph: first with the values of its
first call, then with those of the call that went wrong, if that was another.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from compilescope.diff.localize.graph_parts.anatomy import Anatomy
from compilescope.diff.localize.graph_parts.part_runs import (
    PartCall,
    Reference,
    Results,
    compile_part,
    run_eagerly,
    run_part,
    run_reference,
)
from compilescope.diff.localize.graph_parts.part_values import PartValues, RecordedValues
from compilescope.diff.localize.graph_parts.parts import (
    GraphPart,
    part_of,
    side_by_side,
    whole_part,
)
from compilescope.diff.localize.graph_parts.recorder import GraphRecord, RecordedCall
from compilescope.diff.localize.verdicts import PartVerdict, WrongResult, compare
from compilescope.diff.runs.trial import weights_for
from compilescope.tensors.copies import copied_values
from compilescope.tensors.tolerances import ComparisonConfig
from compilescope.torchapi.compilation.fresh import uncached
from compilescope.torchapi.trials.backends import CountedBackend, root_error

_SHIFT = 1 + 2.0**-5
"""What inputs are multiplied by to ask for other values: beyond all rounding, near enough to stay
in the range that the model expects, and exact in nearly every dtype."""


@dataclass
class Probe:
    """What came of one part."""

    part: GraphPart
    wrong: list[WrongResult] = field(default_factory=list)
    unknown: list[WrongResult] = field(default_factory=list)
    differs: bool = False
    """Something is not the same bit for bit."""
    error: str = ""
    """What the backend raised; or why the part could not be run at all."""
    occasion: PartCall | None = None
    """The one on which it went wrong; else the last."""
    reference: Reference | None = None
    results: Results | None = None
    call: int = 0
    function: Any = None
    """What the backend made of it."""

    @property
    def fails(self) -> bool:
        return bool(self.wrong)

    def wrong_nodes(self) -> set[Node]:
        """The nodes whose results are wrong."""
        return {self.part.outputs[w.number] for w in self.wrong if w.kind == "output"}

    def concerns(self, wrong: WrongResult, group: Sequence[Node]) -> bool:
        """Is it one of this group's, where groups stand side by side?"""
        if wrong.kind == "output":
            return self.part.outputs[wrong.number] in group
        return self.part.inputs[wrong.number].owner is group[0]


class PartProber:
    """Of one graph."""

    def __init__(
        self,
        graph: GraphRecord,
        anatomy: Anatomy,
        backend: CountedBackend,
        config: ComparisonConfig,
        *,
        train: bool,
    ) -> None:
        self.graph = graph
        self.anatomy = anatomy
        self.backend = backend
        self.calls: list[RecordedCall] = list(graph.calls)
        self.errors: list[str] = []
        """What the backend raised on parts."""
        self._config = config
        self._train = train
        self._spans: dict[Any, Probe] = {}
        self._values: dict[int, RecordedValues] = {}

    @property
    def grad(self) -> bool:
        return self.calls[0].ambient.grad

    def whole(self) -> Probe:
        """Called as often as the program did; from then on only with the calls that matter."""
        part = whole_part(self.anatomy)
        probe = self._probe(part, several=True)
        if not probe.fails and not probe.error and len(self.calls) == 1:
            # Right with the program's values: is something kept from the time of compilation?
            self.calls.append(_moved_call(self.calls[0]))
            probe = self._probe(part, several=True, function=probe.function)
            if not probe.fails:
                self.calls.pop()
        if probe.fails:
            self.calls = [self.calls[number] for number in sorted({0, probe.call})]
        return probe

    def fails(self, low: int, high: int, lifted: frozenset[Node] = frozenset()) -> bool:
        """Do the units from `low` up to `high` go wrong, with `lifted` nodes left out?"""
        return self.span(low, high, lifted).fails

    def span(self, low: int, high: int, lifted: frozenset[Node] = frozenset()) -> Probe:
        nodes = self.anatomy.span(low, high)
        kept = lifted & set(nodes)
        key = (low, high, frozenset(kept))
        if key not in self._spans:
            self._spans[key] = self.nodes(nodes, lifted=frozenset(kept))
        return self._spans[key]

    def probes(self) -> list[Probe]:
        """All stretches that were tried."""
        return list(self._spans.values())

    def nodes(
        self,
        nodes: Sequence[Node],
        *,
        lifted: frozenset[Node] = frozenset(),
        exposed: Sequence[Node] = (),
        backward: bool = True,
    ) -> Probe:
        computing = [n for n in self.anatomy.computing(list(nodes)) if n not in lifted]
        part = part_of(self.anatomy, nodes, grad=self.grad, exposed=exposed, lifted=lifted)
        if not computing or not part.graph.nodes:
            return Probe(part)
        return self._probe(part, several=len(computing) > 1, backward=backward)

    def again(self, nodes: Sequence[Node]) -> Probe:
        """What these nodes are given and should give, without asking the backend."""
        whole = self.anatomy.with_items(nodes)
        probe = Probe(part_of(self.anatomy, whole, grad=self.grad))
        probe.occasion = self._occasion(probe.part, self.calls[-1], True)
        probe.reference = run_reference(probe.part, probe.occasion)
        return probe

    def whole_again(self) -> Probe:
        """The same for the whole graph."""
        probe = Probe(whole_part(self.anatomy))
        probe.occasion = self._occasion(probe.part, self.calls[-1], True)
        probe.reference = run_reference(probe.part, probe.occasion)
        return probe

    def apart(self, groups: Sequence[Sequence[Node]]) -> Probe:
        """Groups of nodes side by side, each with the values that it had."""
        part = side_by_side(self.anatomy, groups, grad=self.grad)
        return self._probe(part, several=False)

    @property
    def is_small(self) -> bool:
        """All its values can be held at once."""
        return self._values_of(self.calls[-1]).are_few

    def inputs_of(self, node: Node) -> dict[str, Any]:
        """What the node was given in the program, by name."""
        part = part_of(self.anatomy, self.anatomy.with_items([node]), grad=self.grad)
        values = self._values_of(self.calls[-1]).of(part).values
        wanted = set(node.all_input_nodes)
        pairs = zip(part.inputs, values, strict=True)
        return {given.node.name: value for given, value in pairs if given.node in wanted}

    def is_right_within(self, node: Node, whole: Probe) -> bool:
        """Does a node give what it should, from what it is given in the compiled whole?"""
        assert whole.results and whole.occasion
        alone = part_of(self.anatomy, self.anatomy.with_items([node]), grad=self.grad)
        before = whole.occasion.values
        given = dict(zip(whole.part.outputs, whole.results.outputs, strict=False))
        given.update({i.node: v for i, v in zip(whole.part.inputs, before.values, strict=True)})
        if any(n not in given for n in (*(i.node for i in alone.inputs), *alone.outputs)):
            return False
        values = PartValues([given[i.node] for i in alone.inputs], before.random)
        occasion = PartCall(values, whole.occasion.ambient)
        reference = run_reference(alone, occasion)
        test = Results([given[n] for n in alone.outputs], reference.results.after)
        return not compare(alone, occasion, reference, test, self._config, several=False).wrong

    def wrong_with(self, groups: Sequence[Sequence[Node]], whole: Probe) -> set[Node]:
        """The nodes of these groups that go wrong side by side, given what they are given in the
        compiled whole."""
        assert whole.results and whole.occasion
        before = whole.occasion.values
        given = dict(zip(whole.part.outputs, whole.results.outputs, strict=False))
        given.update({i.node: v for i, v in zip(whole.part.inputs, before.values, strict=True)})
        part = side_by_side(self.anatomy, groups, grad=self.grad)
        if any(i.node not in given for i in part.inputs):
            return set()
        values = PartValues([given[i.node] for i in part.inputs], before.random)
        probe = Probe(part, occasion=PartCall(values, whole.occasion.ambient))
        probe.reference = run_reference(part, probe.occasion)  # type: ignore[arg-type]
        if self._run(probe, None) is None:
            return set()
        probe.wrong = self._verdict(probe, several=False).wrong
        return probe.wrong_nodes()

    def _run(self, probe: Probe, function: Any) -> Any:
        """Compiles it unless that was done, and runs it; None where the backend raised."""
        assert probe.occasion is not None
        try:
            with uncached(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if function is None:
                    with self.graph.asked():
                        function = compile_part(self.backend, probe.part, probe.occasion)
                probe.results = run_part(function, probe.occasion)
        except Exception as error:  # The border to the backend, which may raise anything.
            probe.error = _words(root_error(error))
            self.errors.append(probe.error)
            return None
        return function

    def _probe(
        self, part: GraphPart, *, several: bool, backward: bool = True, function: Any = None
    ) -> Probe:
        """`function` is what the backend made of it, where it has been asked before."""
        probe = Probe(part)
        for number, call in enumerate(self.calls):
            try:
                occasion = self._occasion(part, call, backward)
                reference = run_reference(part, occasion)
            except Exception as error:  # The border to the program's own operators.
                probe.error = f"the part cannot run alone: {_words(error)}"
                return probe
            probe.call, probe.occasion, probe.reference = number, occasion, reference
            function = self._run(probe, function)
            probe.function = function
            if function is None:
                return probe
            verdict = self._verdict(probe, several)
            probe.wrong, probe.unknown = verdict.wrong, [*probe.unknown, *verdict.unknown]
            probe.differs = probe.differs or verdict.differs
            if verdict.wrong:
                break
        return probe

    def _verdict(self, probe: Probe, several: bool) -> PartVerdict:
        assert probe.occasion and probe.reference and probe.results
        return compare(
            probe.part,
            probe.occasion,
            probe.reference,
            probe.results,
            self._config,
            several=several,
        )

    def _occasion(self, part: GraphPart, call: RecordedCall, backward: bool) -> PartCall:
        values = self._values_of(call).of(part)
        occasion = PartCall(values, call.ambient)
        if not (self._train and backward and call.ambient.grad and call.cotangents):
            return occasion
        return dataclasses.replace(occasion, cotangents=self._cotangents(part, call))

    def _values_of(self, call: RecordedCall) -> RecordedValues:
        if id(call) not in self._values:
            self._values[id(call)] = RecordedValues(self.anatomy, call)
        return self._values[id(call)]

    def _cotangents(self, part: GraphPart, call: RecordedCall) -> tuple[Any, ...]:
        if part.whole:
            count = max(call.cotangents, default=-1) + 1
            return tuple(call.cotangents.get(number) for number in range(count))
        try:
            found = self._values_of(call).cotangents(part)
        except RuntimeError:  # Some graphs cannot be run backward from within.
            occasion = PartCall(self._values_of(call).of(part), call.ambient)
            results = run_eagerly(part, occasion)
            return tuple(
                weights_for(value, number)
                if isinstance(value, torch.Tensor) and value.is_floating_point()
                else None
                for number, value in enumerate(results.outputs)
            )
        return tuple(found.get(node) for node in part.outputs)


def _moved_call(call: RecordedCall) -> RecordedCall:
    """The same call with other values. Weights stay: a compiler may take them as they are."""
    moved = [_moved(value) for value in copied_values(call.inputs)]
    return RecordedCall(moved, call.ambient, call.occasion)


def _moved(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
        return value
    if not value.is_floating_point() or value.layout is not torch.strided:
        return value
    moved = value.detach().clone() * _SHIFT
    return moved.to(value.dtype).requires_grad_(value.requires_grad)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
