"""Runs a part of a graph with the values that it is given in a real run: by the reference, in
float64, with other roundings, or compiled.

Every run starts from copies of the same values and the same random numbers, in the same modes.

The graph is run from its beginning each time, on copies of its real inputs: nothing has to be kept
of a large model but what the part needs, and a value that is written to later is still the old one.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from compilescope.instrument.torchapi.compilation.current import symbolic_inputs
from compilescope.instrument.torchapi.compilation.fresh import uncached
from compilescope.instrument.torchapi.trials.reruns import (
    Jitter,
    NotReplayable,
    Saturation,
    Survey,
    Tape,
    Widening,
    wide_dtype,
)
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    Anatomy,
    RecordedCall,
    is_entry,
    is_exit,
)
from compilescope.measure.diff.localize.graph_parts.parts import (
    GraphPart,
    PartInput,
    is_dynamic,
    value_of,
)
from compilescope.measure.diff.runs.modes import CallModes, RandomState, kept_random_state
from compilescope.measure.tensors.copies import copied_values


@dataclass
class Results:
    """All that a run gave."""

    outputs: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    """The inputs once it has run: it may have written into them."""
    gradients: list[Any] | None = None
    """Of the inputs; None where there was no backward pass."""


@dataclass
class Reference:
    """What the part should give, and what bears on how near another run can come to it."""

    results: Results
    reduction: int | None = None
    tape: Tape | None = None
    overflowing: bool = False
    """It casts numbers to integers that cannot hold them: any answer is right."""


@dataclass(frozen=True)
class PartCall:
    """One call of a part."""

    values: PartValues
    ambient: CallModes
    cotangents: tuple[Any, ...] | None = None
    """For each result what comes back to it; None: no backward pass."""


def run_part(function: Callable[..., Any], occasion: PartCall, mode: Any = None) -> Results:
    """What the function raises goes to the caller."""
    return _run(function, occasion, copied_values(occasion.values.values), mode)


def run_eagerly(part: GraphPart, occasion: PartCall, mode: Any = None) -> Results:
    """By the reference."""
    module = part.eager if not _has_constants(part) else part.module()
    if part.writes:
        return run_part(module.forward, occasion, mode)
    return _run(module.forward, occasion, list(occasion.values.values), mode)


def _has_constants(part: GraphPart) -> bool:
    return any(node.op in ("get_attr", "call_module") for node in part.graph.nodes)


def run_reference(part: GraphPart, occasion: PartCall) -> Reference:
    survey = Survey()
    try:
        results = run_eagerly(part, occasion, survey)
    except (NotImplementedError, RuntimeError):
        # An operator over operators may not let itself be watched.
        return Reference(run_eagerly(part, occasion))
    reduction = survey.reduction if survey.reduction > 1 else None
    return Reference(results, reduction, survey.tape, bool(survey.overflowing))


def run_exact(part: GraphPart, occasion: PartCall, reference: Reference) -> Results | None:
    """In float64; None where that cannot be done."""
    given = occasion.values.values
    values = [_wide(value) for value in (copied_values(given) if part.writes else given)]
    cotangents = occasion.cotangents
    wide = cotangents and tuple(_wide(value) for value in cotangents)
    occasion = PartCall(occasion.values, occasion.ambient, wide)
    try:
        module = part.module() if _has_constants(part) else part.eager
        return _run(module.forward, occasion, values, Widening(reference.tape))
    except (NotReplayable, NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return None


def run_saturated(part: GraphPart, occasion: PartCall) -> Results | None:
    try:
        return run_eagerly(part, occasion, Saturation())
    except (NotImplementedError, RuntimeError):
        return None


def _wide(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_quantized:
        return value
    needs = value.requires_grad
    made = value.detach().to(wide_dtype(value.dtype))
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=needs)
    return made.requires_grad_(needs) if needs else made


def _run(function: Callable[..., Any], occasion: PartCall, leaves: list[Any], mode: Any) -> Results:
    train = occasion.cotangents is not None
    with (
        kept_random_state(),
        occasion.ambient.entered(),
        mode if mode is not None else contextlib.nullcontext(),
    ):
        occasion.values.random.restore()
        given = _as_in_program(leaves)
        found = function(*given)
        outputs = list(found) if isinstance(found, (tuple, list)) else [found]
        kept = Results([_kept(value) for value in outputs], [_kept(value) for value in given])
        if train:
            kept.gradients = _gradients(outputs, leaves, occasion.cotangents or ())
    return kept


def _kept(value: Any) -> Any:
    # It may lie in memory that the next run writes into.
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _gradients(
    outputs: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    unique = list({id(leaf): leaf for leaf in wanted}.values())
    pairs = [
        (output, cotangent.to(output.dtype))
        for output, cotangent in zip(outputs, cotangents, strict=False)
        if cotangent is not None and isinstance(output, torch.Tensor) and output.requires_grad
    ]
    found: dict[int, Any] = {}
    if pairs and unique:
        gradients = torch.autograd.grad(
            [output for output, _ in pairs], unique, [c for _, c in pairs], allow_unused=True
        )
        found = {id(leaf): g for leaf, g in zip(unique, gradients, strict=True)}
    return [_kept(found.get(id(leaf))) for leaf in leaves]


def run_jittered(part: GraphPart, occasion: PartCall, seed: int) -> Results | None:
    """With other roundings; None where that cannot be done."""
    try:
        return run_eagerly(part, occasion, Jitter(seed))
    except (NotImplementedError, RuntimeError):
        return None


def compile_part(
    backend: Callable[..., Any], part: GraphPart, occasion: PartCall
) -> Callable[..., Any]:
    """What the backend made. What it raises goes to the caller."""
    values = copied_values(occasion.values.values)
    made: Callable[..., Any]
    with kept_random_state(), occasion.ambient.entered(), uncached():
        occasion.values.random.restore()
        examples = _as_in_program(values)
        if not is_dynamic(part):
            made = backend(part.module(), examples)
        else:
            noted = [value_of(given.node) for given in part.inputs]
            with symbolic_inputs(noted, examples) as symbolic:
                made = backend(part.module(), symbolic)
    return made


_COUNT = 64
"""Numbers that both draw. Chosen: that so many agree by chance is out of the question."""


def draws_as_eager(backend: Callable[..., Any], device: torch.device) -> bool | None:
    """None where it cannot tell. Costs one compilation."""
    graph = Graph()
    value = graph.placeholder("value")
    graph.output((graph.call_function(torch.rand_like, (value,)),))
    module = GraphModule(torch.nn.Module(), graph)
    example = torch.zeros(_COUNT, device=device)
    with kept_random_state(), torch.no_grad():
        state = RandomState()
        wanted = torch.rand_like(example)
        state.restore()
        try:
            function = backend(module, [example])
            state.restore()
            [given] = function(example)
        except Exception:  # The border to the backend.
            return None
    return bool(torch.equal(wanted, given))


_MOST_BYTES = 1 << 30
"""All results of a graph up to this size are kept; of larger ones what a part needs is computed
anew each time, which costs a run of the graph. Chosen: memory against time."""


class PartValues:
    """What a part is called with."""

    def __init__(self, values: list[Any], random: RandomState) -> None:
        self.values = values
        self.random = random
        """The random numbers that the part would draw in the whole graph."""


class RecordedValues:
    """Of one call of a graph. All are kept where they are few and never written to."""

    def __init__(self, anatomy: Anatomy, call: RecordedCall) -> None:
        self._anatomy = anatomy
        self._call = call
        self._kept: dict[Node, Any] | None = None
        self._random: dict[int, RandomState] = {}
        self._cotangents: dict[Node, torch.Tensor] | None = None

    def of(self, part: GraphPart) -> PartValues:
        """The real values of its inputs."""
        if part.whole:
            return PartValues(self._call.inputs, self._call.ambient.random)
        if not self._are_kept:
            return _values_for(self._anatomy, self._call, part)
        if self._kept is None:
            self._keep()
        assert self._kept is not None
        first = min((self._anatomy.position[node] for node in part.nodes), default=0)
        random = self._random[max(at for at in self._random if at <= first)]
        return PartValues([self._kept[given.node] for given in part.inputs], random)

    def cotangents(self, part: GraphPart) -> dict[Node, torch.Tensor]:
        """The gradients that come to its results in the program's own backward pass."""
        if not self._are_kept:
            return _cotangents_of(self._anatomy, self._call, part.outputs)
        if self._cotangents is None:
            every = [n for n in self._anatomy.nodes if self._anatomy.kinds[n] == "tensor"]
            self._cotangents = _cotangents_of(self._anatomy, self._call, every)
        return self._cotangents

    @property
    def are_few(self) -> bool:
        return self._anatomy.size_bytes <= _MOST_BYTES

    @property
    def _are_kept(self) -> bool:
        return self.are_few and not self._anatomy.writing

    def _keep(self) -> None:
        kept: dict[Node, Any] = {}
        nodes = self._anatomy.nodes
        walk = _PartialRun(self._anatomy, self._call, [PartInput(n, len(nodes)) for n in nodes])
        holders = [n for n in self._anatomy.module.graph.nodes if n.op == "placeholder"]
        kept.update(zip(holders, self._call.inputs, strict=True))

        def look(at: int, value_of: Callable[[Node], Any]) -> None:
            if at == 0 or nodes[at - 1] in self._anatomy.random:
                self._random[at] = RandomState()
            if at and self._anatomy.kinds[nodes[at - 1]] in ("tensor", "number"):
                kept[nodes[at - 1]] = _cut_off(value_of(nodes[at - 1]))

        walk.run(len(nodes), look)
        self._kept = kept


def _cut_off(value: Any) -> Any:
    """Without its history; and without its memory, where that is shared with others."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _values_for(anatomy: Anatomy, call: RecordedCall, part: GraphPart) -> PartValues:
    wanted: dict[int, list[int]] = collections.defaultdict(list)
    for number, given in enumerate(part.inputs):
        wanted[given.at].append(number)
    first = min((anatomy.position[node] for node in part.nodes), default=0)
    last = max([*wanted, first])
    found: dict[int, Any] = {}
    random: list[RandomState] = []

    def look(at: int, value_of: Callable[[Node], Any]) -> None:
        if at == first:
            random.append(RandomState())
        numbers = wanted.get(at, [])
        # Taken together, so that those which share memory still do.
        for number, value in zip(
            numbers, _taken([value_of(part.inputs[n].node) for n in numbers]), strict=True
        ):
            found[number] = value

    _PartialRun(anatomy, call, part.inputs).run(last, look)
    return PartValues([found[number] for number in range(len(part.inputs))], random[0])


def _taken(values: list[Any]) -> list[Any]:
    with torch.inference_mode(False):
        return copied_values(values)


class _PartialRun:
    """One run of the first nodes of a graph."""

    def __init__(self, anatomy: Anatomy, call: RecordedCall, inputs: Iterable[PartInput]) -> None:
        self._anatomy = anatomy
        self._call = call
        self._last_use = _last_uses(anatomy, inputs)
        self._interpreter = Interpreter(anatomy.module)

    def run(self, until: int, look: Callable[[int, Callable[[Node], Any]], None]) -> None:
        ending = collections.defaultdict(list)
        for node, at in self._last_use.items():
            ending[at].append(node)
        with kept_random_state(), self._call.ambient.entered(), _left(self._env()) as env:
            self._call.ambient.random.restore()
            for at, node in enumerate(self._anatomy.nodes[:until]):
                look(at, env.__getitem__)
                env[node] = self._step(node, env)
                for done in ending[at]:
                    env.pop(done, None)
            look(until, env.__getitem__)

    def _env(self) -> dict[Node, Any]:
        module = self._anatomy.module
        holders = [node for node in module.graph.nodes if node.op == "placeholder"]
        env: dict[Node, Any] = dict(
            zip(holders, _as_in_program(copied_values(self._call.inputs)), strict=True)
        )
        attributes = [node for node in module.graph.nodes if node.op == "get_attr"]
        values = [self._interpreter.fetch_attr(str(node.target)) for node in attributes]
        env.update(zip(attributes, copied_values(values), strict=True))
        return env

    def _step(self, node: Node, env: dict[Node, Any]) -> Any:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
        return getattr(self._interpreter, node.op)(node.target, args, kwargs)


def _as_in_program(values: Sequence[Any]) -> list[Any]:
    """A tensor that was computed may be written to; one that gradients are kept for may not.

    So copies that need gradients and aren't parameters are given a history.
    """
    return [value.clone() if _needs_history(value) else value for value in values]


def _needs_history(value: Any) -> bool:
    is_weight = isinstance(value, torch.nn.Parameter)
    return isinstance(value, torch.Tensor) and value.requires_grad and not is_weight


@contextmanager
def _left(env: dict[Node, Any]) -> Iterator[dict[Node, Any]]:
    """Regions that are still open at the end are left."""
    try:
        yield env
    finally:
        closed = {n for node in env if is_exit(node) for n in node.all_input_nodes}
        for node in reversed([n for n in env if is_entry(n) and n not in closed]):
            leaving = next(user for user in node.users if is_exit(user))
            leaving.target(env[node])


def _last_uses(anatomy: Anatomy, inputs: Iterable[PartInput]) -> dict[Node, int]:
    """After which step a value may be forgotten. Regions are kept to the end."""
    last: dict[Node, int] = {}
    for node in anatomy.module.graph.nodes:
        if node.op == "output" or is_entry(node) or is_exit(node):
            continue
        uses = [anatomy.position[user] for user in node.users if user in anatomy.position]
        last[node] = max([*uses, anatomy.position.get(node, 0)])
    for given in inputs:
        if given.node in last:
            last[given.node] = max(last[given.node], given.at)
    return last


def _cotangents_of(
    anatomy: Anatomy, call: RecordedCall, nodes: Sequence[Node]
) -> dict[Node, torch.Tensor]:
    found: dict[Node, torch.Tensor] = {}
    if not call.cotangents or not call.ambient.grad:
        return found
    wanted = set(nodes)

    class _Hooked(Interpreter):  # type: ignore[misc]
        def run_node(self, n: Node) -> Any:
            value = super().run_node(n)
            if n in wanted and isinstance(value, torch.Tensor) and value.requires_grad:
                # Into the dict only once: a value that is written to later has two.
                value.register_hook(lambda g: found.setdefault(n, g.detach().clone()) and None)
            return value

    with kept_random_state(), call.ambient.entered():
        call.ambient.random.restore()
        results = _Hooked(anatomy.module).run(*_as_in_program(copied_values(call.inputs)))
        results = results if isinstance(results, (tuple, list)) else (results,)
        pairs = [
            (results[number], cotangent)
            for number, cotangent in call.cotangents.items()
            if isinstance(results[number], torch.Tensor) and results[number].requires_grad
        ]
        if pairs:
            torch.autograd.backward([r for r, _ in pairs], [c for _, c in pairs])
    return found
