"""Searches one graph for all operations that the backend gets wrong.

The first is found by bisection (`find_first`). It is then left out: the backend is given the
reference's values for it. When the rest goes right, all are found; else those that go wrong alone
are found together, side by side, and what goes wrong only together by bisection again: which of
the operations matter, and where the same ones recur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.fx import Node

from compilescope.measure.diff.localize.graph_parts.anatomy import Anatomy
from compilescope.measure.diff.localize.graph_parts.part_runs import draws_as_eager
from compilescope.measure.diff.localize.probes import PartProber, Probe, WrongResult
from compilescope.measure.diff.localize.records import Stage


def between(computing: Sequence[Node]) -> list[Node]:
    """Those on a way from the first to the last."""
    inside = set(computing)
    sources = {node: sources_among(node, inside) for node in computing}
    after = {computing[0]}
    for node in computing[1:]:
        if sources[node] & after:
            after.add(node)
    before = {computing[-1]}
    for node in reversed(computing):
        if node in before:
            before |= sources[node]
    return [node for node in computing if node in after and node in before]


def sources_among(node: Node, inside: set[Node]) -> set[Node]:
    """What it uses of these, also by way of parts of tuples and numbers."""
    found: set[Node] = set()
    waiting, seen = list(node.all_input_nodes), set()
    while waiting:
        other = waiting.pop()
        if other in seen:
            continue
        seen.add(other)
        if other in inside:
            found.add(other)
        elif other.op.startswith("call_") and _passes_on(other):
            waiting += other.all_input_nodes
    return found


def _passes_on(node: Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def alike(region: Sequence[Node], nodes: Iterable[Node]) -> list[list[Node]]:
    """Groups of nodes with the same targets, connected in the same way, in order."""
    last, wanted = region[-1], set(region)
    order = {node: at for at, node in enumerate(nodes)}
    groups = []
    for node in order:
        if node is last or node.op != last.op or node.target != last.target:
            continue
        found = {last: node}
        if _matches(last, node, wanted, found) and len(found) == len(region):
            group = [found[one] for one in region]
            if all(one in order for one in group) and len(set(group)) == len(group):
                groups.append(sorted(group, key=order.__getitem__))
    return groups


def _matches(one: Node, other: Node, wanted: set[Node], found: dict[Node, Node]) -> bool:
    mine, theirs = one.all_input_nodes, other.all_input_nodes
    if len(mine) != len(theirs):
        return False
    for a, b in zip(mine, theirs, strict=True):
        inner = a in wanted or (_passes_on(a) and bool(sources_among(a, wanted)))
        if not inner:
            continue
        if a.op != b.op or a.target != b.target or found.get(a, b) is not b:
            return False
        if a in wanted:
            found[a] = b
        if not _matches(a, b, wanted, found):
            return False
    return True


def first_causes(wrong: set[Node], anatomy: Anatomy) -> list[Node]:
    """Those that are wrong though nothing that they are given is."""
    found: list[Node] = []
    computing = set(anatomy.computing(anatomy.nodes))
    for node in anatomy.nodes:
        if node not in wrong:
            continue
        owner = node
        while owner not in computing and owner.all_input_nodes:
            owner = owner.all_input_nodes[0]
        given = _values_before(owner)
        if not given & wrong and owner not in found:
            found.append(owner)
    return found


def _values_before(node: Node) -> set[Node]:
    """Its inputs; for a number or a tuple what that was made of."""
    found: set[Node] = set()
    waiting = list(node.all_input_nodes)
    while waiting:
        other = waiting.pop()
        if other in found:
            continue
        found.add(other)
        if _passes_on(other):
            waiting += other.all_input_nodes
    return found


_MOST_ALIKE = 16
"""Operations in a region that is sought elsewhere too. Chosen: longer ones hardly ever recur, and
finding them costs more."""


@dataclass
class Suspect:
    """A node that goes wrong alone, or nodes that do so together."""

    node: Node
    probe: Probe
    """Shows it."""
    wrong: list[WrongResult]
    region: list[Node] = field(default_factory=list)
    """All that it takes to show it."""
    whole_graph: bool = False
    """It takes the whole graph."""

    @property
    def alone(self) -> bool:
        return self.region == [self.node] and not self.whole_graph

    @property
    def stage(self) -> Stage:
        return "forward" if any(w.kind != "gradient" for w in self.wrong) else "backward"


class Hunt:
    """In one graph that is known to go wrong as a whole."""

    def __init__(self, prober: PartProber, limit: int) -> None:
        self.suspects: list[Suspect] = []
        self.notes: list[str] = []
        self.rest: Probe | None = None
        """All but the suspects: what they were given, as the backend computes it."""
        self.whole: Probe | None = None
        """The whole graph with all its values as results, where it goes wrong like that."""
        self._prober = prober
        self._anatomy = prober.anatomy
        self._limit = limit
        self._lifted: frozenset[Node] = frozenset()
        self._start = 0

    def run(self) -> None:
        if self._anatomy.random and not self._settle_random_numbers():
            return
        first = self._search()
        if not first.wrong:
            self.notes.append("the whole graph goes wrong, but no part of it when asked again")
            return
        self._take([first, *self._like(first)])
        self._look_at_the_whole()
        if first.alone and not self._prober.backend.inductor:
            # Errors that others hide do not show in the rest. (Inductor would take minutes.)
            self._take(self._without_strangers(self._others()))
        while self._goes_on():
            more = self._others()
            if not more:
                # Nothing else goes wrong alone.
                more = [found for found in [self._search()] if found.wrong]
                more += self._like(more[0]) if more else []
            more = self._without_strangers(more)
            if not more:
                break
            self._take(more)

    def look_apart(self) -> None:
        """Where the whole graph is not wrong for sure: what goes wrong alone, all the same."""
        if self._anatomy.random:
            return  # It may draw numbers of its own.
        self._take(self._others())
        if len(self.suspects) == 1:
            [only] = self.suspects
            unit = self._anatomy.unit_of(only.node)
            only.whole_graph = not self._prober.fails(unit, unit + 1)
        if self.suspects:
            self.notes.append(
                "the results of the whole graph cannot be distinguished from rounding, but "
                "what the operation computes from its own inputs can"
            )

    def _take(self, suspects: list[Suspect]) -> None:
        self.suspects += suspects
        nodes = {node for suspect in suspects for node in suspect.region}
        writing = [node for node in nodes if node in self._anatomy.writing]
        if writing:
            # Without its writes the rest would be another program.
            self._start = max([self._start, *(self._anatomy.unit_of(n) + 1 for n in writing)])
        self._lifted |= nodes - set(writing)

    def _goes_on(self) -> bool:
        if self._start >= self._anatomy.units:
            return False
        if self._prober.backend.calls >= self._limit:
            self.notes.append(
                f"the search stopped after {self._prober.backend.calls} compilations: "
                "there may be more"
            )
            return False
        rest = self._prober.span(self._start, self._anatomy.units, self._lifted)
        if not self._start:
            self.rest = rest
        return rest.fails

    def _fails(self, low: int, high: int) -> bool:
        return self._prober.fails(low, high, self._lifted)

    def _settle_random_numbers(self) -> bool:
        """False: nothing is left to search."""
        inputs = self._prober.calls[0].inputs
        devices = {value.device for value in inputs if isinstance(value, torch.Tensor)}
        device = next(iter(devices), torch.device("cpu"))
        if draws_as_eager(self._prober.backend, device) is not False:
            return True
        free = [node for node in self._anatomy.random if node not in self._anatomy.writing]
        self._lifted = frozenset(free)
        names = ", ".join(sorted(node.name for node in self._anatomy.random)[:6])
        self.notes.append(
            f"the backend draws its own random numbers: {names} cannot be compared, so the "
            "reference's values were used instead"
        )
        if self._fails(0, self._anatomy.units):
            return True
        self.notes.append("apart from them, everything is right")
        return False

    def _search(self) -> Suspect:
        found = find_first(self._start, self._anatomy.units, self._fails)
        probe = self._prober.span(found.low, found.high, self._lifted)
        computing = self._computing(found)
        if len(computing) > 1:
            probe, computing = self._without_bystanders(probe, computing)
        wrong = probe.wrong_nodes()
        last = next((node for node in reversed(computing) if node in wrong), computing[-1])
        return Suspect(last, probe, probe.wrong, computing)

    def _computing(self, found: WrongSpan) -> list[Node]:
        nodes = self._anatomy.computing(self._anatomy.span(found.low, found.high))
        return [node for node in nodes if node not in self._lifted]

    def _without_bystanders(self, probe: Probe, computing: list[Node]) -> tuple[Probe, list[Node]]:
        """Operations that only happen to lie between those that matter."""
        needed = between(computing)
        if len(needed) == len(computing) or len(needed) < 2:
            return probe, computing
        fewer = self._prober.nodes(self._anatomy.with_items(needed))
        return (fewer, needed) if fewer.fails else (probe, computing)

    def _others(self) -> list[Suspect]:
        """Each operation that is left, with the values that it had in the program."""
        units = []
        for number in range(self._start, self._anatomy.units):
            computing = self._computing(WrongSpan(number, number + 1))
            if len(computing) == 1 and self._may_be_apart(computing[0]):
                units.append(self._anatomy.unit(number))
        return self._wrong_apart(units)

    def _may_be_apart(self, node: Node) -> bool:
        if self._prober.is_small or not self.suspects:
            return True
        # Of a large model not all values are at hand: only the same operation is looked at.
        return any(s.node.target == node.target for s in self.suspects)

    def _wrong_apart(self, groups: Sequence[Sequence[Node]]) -> list[Suspect]:
        if not groups:
            return []
        probe = self._prober.apart(groups)
        found = []
        for group in groups:
            wrong = [w for w in probe.wrong if probe.concerns(w, group)]
            if wrong:
                computing = self._anatomy.computing(list(group))
                found.append(Suspect(computing[-1], probe, wrong, computing))
        return found

    def _like(self, suspect: Suspect) -> list[Suspect]:
        """The same operations in the same company elsewhere."""
        if suspect.alone or len(suspect.region) > _MOST_ALIKE:
            return []
        groups = alike(suspect.region, [n for n in self._anatomy.nodes if n not in self._lifted])
        taken = set(suspect.region)
        groups = [group for group in groups if not taken & set(group)]
        return self._wrong_apart([self._anatomy.with_items(group) for group in groups])

    def _look_at_the_whole(self) -> None:
        """A backend may go by how often or where it meets an operation. What is right in the whole
        graph is not accused, and what is wrong only there is."""
        forward = [s for s in self.suspects if s.stage == "forward"]
        if not forward or self._anatomy.writing:
            return
        nodes = self._anatomy.nodes
        if not self._prober.is_small:
            nodes = [node for s in forward for node in (s.node, *s.node.all_input_nodes)]
        tensors = [node for node in nodes if self._anatomy.kinds.get(node) == "tensor"]
        free = self._lifted & self._anatomy.random
        whole = self._prober.nodes(
            self._anatomy.nodes, exposed=tensors, lifted=free, backward=False
        )
        if not whole.fails:
            return  # With more results it is another graph: nothing is said against them.
        self.whole = whole
        causes = first_causes(whole.wrong_nodes(), self._anatomy)
        for suspect in self.suspects:
            # Where in a region the error first shows.
            suspect.node = next((n for n in causes if n in suspect.region), suspect.node)
        accused = {node for s in self.suspects for node in s.region}
        kept, self.suspects = self.suspects, []
        self.suspects = self._without_strangers(kept)
        for node in causes:
            own = [w for w in whole.wrong if whole.part.outputs[w.number] is node]
            if own and node not in accused:
                self._take([Suspect(node, whole, own, [node], whole_graph=True)])

    def _without_strangers(self, suspects: list[Suspect]) -> list[Suspect]:
        """Those that go wrong in the whole graph too, or would if it gave them the right values."""
        known = {suspect.node for suspect in self.suspects}
        suspects = [suspect for suspect in suspects if suspect.node not in known]
        whole = self.whole
        if whole is None:
            return suspects
        right = [
            s for s in suspects
            if s.alone and s.stage == "forward" and self._prober.is_right_within(s.node, whole)
        ]  # fmt: skip
        strange = self._prober.wrong_with(self._unit_groups(right), whole) if right else set()
        dropped = [s for s in right if s.node in strange]
        if dropped:
            names = ", ".join(s.node.name for s in dropped)
            self.notes.append(
                f"{names} would also be wrong alone, but not in the whole graph: the result "
                "depends on where or how often the backend meets an operation"
            )
        return [s for s in suspects if s not in dropped]

    def _unit_groups(self, suspects: list[Suspect]) -> list[list[Node]]:
        return [self._anatomy.with_items([s.node]) for s in suspects]


Fails = Callable[[int, int], bool]
"""Compiles the operations from the first number up to the second, and says whether they go wrong.
Every answer costs a compilation, so none is asked for twice."""


class WrongSpan(NamedTuple):
    """The shortest stretch that goes wrong."""

    low: int
    high: int


def find_first(low: int, high: int, fails: Fails) -> WrongSpan:
    """`fails(low, high)` is known. Takes at most about 2 log2(high - low) answers.

    Both halves are asked about, so that each step rests on a stretch that was seen to fail; where
    neither half does, it takes operations of both.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if fails(low, middle):
            high = middle
        elif fails(middle, high):
            low = middle
        else:
            return _across(low, middle, high, fails)
    return WrongSpan(low, high)


def _across(low: int, middle: int, high: int, fails: Fails) -> WrongSpan:
    """What fails only with operations from both sides of the middle."""
    right, end = middle, high
    while end - right > 1:
        probe = (right + end) // 2
        if fails(low, probe):
            end = probe
        else:
            right = probe
    start, left = low, middle
    while left - start > 1:
        probe = (start + left) // 2
        if fails(probe, end):
            start = probe
        else:
            left = probe
    ends = (WrongSpan(end - 1, end), WrongSpan(start, start + 1)) if end - start > 2 else ()
    for single in ends:
        # An error that later operations hide is shown by the shorter stretch only.
        if fails(single.low, single.high):
            return single
    return WrongSpan(start, end)
