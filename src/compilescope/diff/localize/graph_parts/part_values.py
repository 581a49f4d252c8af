"""The values that a part of a graph is given in a real run.

The graph is run from its beginning each time, on copies of its real inputs: nothing has to be kept
of a large model but what the part needs, and a value that is written to later is still the old one.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import Interpreter, Node

from compilescope.diff.localize.graph_parts.anatomy import Anatomy, is_entry, is_exit
from compilescope.diff.localize.graph_parts.parts import GraphPart, PartInput
from compilescope.diff.localize.graph_parts.recorder import RecordedCall
from compilescope.diff.runs.modes import RandomState, kept_random_state
from compilescope.tensors.copies import copied_values

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
            zip(holders, as_in_program(copied_values(self._call.inputs)), strict=True)
        )
        attributes = [node for node in module.graph.nodes if node.op == "get_attr"]
        values = [self._interpreter.fetch_attr(str(node.target)) for node in attributes]
        env.update(zip(attributes, copied_values(values), strict=True))
        return env

    def _step(self, node: Node, env: dict[Node, Any]) -> Any:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
        return getattr(self._interpreter, node.op)(node.target, args, kwargs)


def as_in_program(values: Sequence[Any]) -> list[Any]:
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
        results = _Hooked(anatomy.module).run(*as_in_program(copied_values(call.inputs)))
        results = results if isinstance(results, (tuple, list)) else (results,)
        pairs = [
            (results[number], cotangent)
            for number, cotangent in call.cotangents.items()
            if isinstance(results[number], torch.Tensor) and results[number].requires_grad
        ]
        if pairs:
            torch.autograd.backward([r for r, _ in pairs], [c for _, c in pairs])
    return found
