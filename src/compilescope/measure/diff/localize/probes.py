"""Gives parts of one graph to the backend, and says which of them go wrong: by their results,
in-place writes and gradients, from two runs each.

A part is compiled once and called as the program called the graph: first with the values of its
first call, then with those of the call that went wrong, if that was another.

In a part of several operations, a difference that other roundings reach as well is not held to be
wrong.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch.fx import Node

from compilescope.instrument.torchapi.compilation.fresh import uncached
from compilescope.instrument.torchapi.trials.backends import CountedBackend, root_error
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    Anatomy,
    GraphRecord,
    RecordedCall,
)
from compilescope.measure.diff.localize.graph_parts.part_runs import (
    PartCall,
    PartValues,
    RecordedValues,
    Reference,
    Results,
    compile_part,
    run_eagerly,
    run_exact,
    run_jittered,
    run_part,
    run_reference,
    run_saturated,
)
from compilescope.measure.diff.localize.graph_parts.parts import (
    GraphPart,
    part_of,
    side_by_side,
    whole_part,
)
from compilescope.measure.diff.runs.trial import weights_for
from compilescope.measure.tensors.copies import copied_values
from compilescope.measure.tensors.rounding import RoundingJudgement, judge
from compilescope.measure.tensors.tolerances import (
    ComparisonConfig,
    is_same,
    is_same_value,
    relative_error,
)

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


ResultKind = Literal["output", "write", "gradient"]
_SEEDS = (1, 2, 3)
"""Three other roundings: the figures of `_AS_FAR` are measured with these very ones. Each costs a
run of the part."""
_AS_FAR = 4.0
"""Times what other roundings do to the reference: still rounding. The median of what is right is
0.5, of what is wrong 100 (benchmarks/rounding_limits.py); only what `judge` finds wrong in several
operations together is asked."""
_HOPELESS = 256.0
"""Times what one other rounding does: no further one will reach it. Chosen far above `_AS_FAR`,
since three roundings of one computation reach about as far."""


class WrongResult(NamedTuple):
    """A result that is not what it should be."""

    kind: ResultKind
    number: int
    """Of the result, or of the input."""
    judgement: RoundingJudgement
    error: float | None
    """The largest difference, relative to the largest number."""


@dataclass
class PartVerdict:
    """Of one part, on one occasion."""

    wrong: list[WrongResult]
    unknown: list[WrongResult]
    differs: bool = False
    """Something is not the same bit for bit."""


def compare(
    part: GraphPart,
    occasion: PartCall,
    reference: Reference,
    test: Results,
    config: ComparisonConfig,
    *,
    several: bool,
) -> PartVerdict:
    """`several`: errors of one operation reach others, which may enlarge them."""
    verdict = PartVerdict([], [])
    differing = list(_differing(reference.results, test))
    if not differing:
        return verdict
    verdict.differs = True
    exact = run_exact(part, occasion, reference)
    for kind, number, wanted, given in differing:
        truth = _side(exact, kind)[number] if exact is not None else None
        found = _judged(wanted, given, truth, config, reference.reduction)
        wrong = WrongResult(kind, number, found, relative_error(wanted, given))
        if found.verdict == "fail":
            verdict.wrong.append(wrong)
        elif found.verdict == "unknown":
            verdict.unknown.append(wrong)
    if verdict.wrong and reference.overflowing:
        other = run_saturated(part, occasion)
        verdict.wrong = [w for w in verdict.wrong if not _is_other_answer(w, other, test)]
    if verdict.wrong and several:
        _excuse_rounding(part, occasion, reference.results, test, verdict)
    return verdict


def _differing(reference: Results, test: Results) -> Iterator[tuple[ResultKind, int, Any, Any]]:
    for number, wanted in enumerate(reference.outputs):
        given = test.outputs[number] if number < len(test.outputs) else None
        if not _is_equal(wanted, given):
            yield "output", number, wanted, given
    for number, (wanted, given) in enumerate(zip(reference.after, test.after, strict=True)):
        if not _is_equal(wanted, given):
            yield "write", number, wanted, given
    for number, (wanted, given) in enumerate(
        zip(reference.gradients or (), test.gradients or (), strict=False)
    ):
        if not _is_equal(wanted, given):
            yield "gradient", number, wanted, given


def _side(results: Results, kind: ResultKind) -> list[Any]:
    if kind == "output":
        return results.outputs
    return results.after if kind == "write" else (results.gradients or [])


def _judged(
    wanted: Any, given: Any, exact: Any, config: ComparisonConfig, reduction: int | None
) -> RoundingJudgement:
    tensors = isinstance(wanted, torch.Tensor) and isinstance(given, torch.Tensor)
    if not tensors:
        if wanted is None and isinstance(given, torch.Tensor) and not bool(given.any()):
            return RoundingJudgement("pass", "no gradient, or all zeros")
        if given is None and isinstance(wanted, torch.Tensor) and not bool(wanted.any()):
            return RoundingJudgement("pass", "no gradient, or all zeros")
        return RoundingJudgement("fail", f"{_kind(given)}; the reference gives {_kind(wanted)}")
    if config.check_dtype and wanted.dtype != given.dtype:
        return RoundingJudgement(
            "fail", f"its dtype is {given.dtype}, the reference's {wanted.dtype}"
        )
    truth = exact if isinstance(exact, torch.Tensor) and exact.shape == wanted.shape else None
    return judge(wanted, given, truth, config, reduction=reduction)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "a tensor"
    return "nothing" if value is None else repr(value)[:40]


def _is_other_answer(wrong: WrongResult, other: Results | None, test: Results) -> bool:
    """A number that an integer type cannot hold may become any: this one is often chosen."""
    if other is None:
        return False
    return _is_equal(_side(other, wrong.kind)[wrong.number], _side(test, wrong.kind)[wrong.number])


def _excuse_rounding(
    part: GraphPart, occasion: PartCall, reference: Results, test: Results, verdict: PartVerdict
) -> None:
    """What other roundings of the reference do as well is nobody's fault."""
    reach: dict[tuple[ResultKind, int], float] = {}
    far = {
        (w.kind, w.number): _apart(*(_side(r, w.kind)[w.number] for r in (reference, test)))
        for w in verdict.wrong
    }
    for seed in _SEEDS:
        other = run_jittered(part, occasion, seed)
        if other is None:
            return
        for kind, number in far:
            before, now = (_side(r, kind)[number] for r in (reference, other))
            reach[kind, number] = max(reach.get((kind, number), 0.0), _apart(before, now))
        if all(far[key] > _HOPELESS * reach[key] for key in far):
            break
    excused = {key for key in far if far[key] <= _AS_FAR * reach[key]}
    verdict.unknown += [w for w in verdict.wrong if (w.kind, w.number) in excused]
    verdict.wrong = [w for w in verdict.wrong if (w.kind, w.number) not in excused]


def _apart(one: Any, other: Any) -> float:
    """Whole numbers: how many differ. Others: how far the one that is farthest off is."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return 0.0 if one is None and other is None else float("inf")
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if not (one.is_floating_point() or one.is_complex()):
        return float((one != other).sum())
    found = relative_error(one, other)
    return float("inf") if found is None else found


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return is_same(one, other)
    return type(one) is type(other) and is_same_value(one, other, unclear=False)
