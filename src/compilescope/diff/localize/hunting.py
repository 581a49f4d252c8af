"""Hunts down all operations of one graph that the backend gets wrong.

The first is found by bisection. It is then left out: the backend is given the reference's values
for it. When the rest goes right, all are found; else those that go wrong alone are found together,
side by side, and what goes wrong only in company by bisection again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch.fx import Node

from compilescope.diff.localize.company import alike, between, first_causes
from compilescope.diff.localize.comparing import Wrong
from compilescope.diff.localize.probing import Probe, Prober
from compilescope.diff.localize.records import Stage
from compilescope.diff.localize.search import Found, find_first
from compilescope.torchapi.bisecting.drawing import draws_as_eager


@dataclass
class Suspect:
    """A node that goes wrong alone, or nodes that do so together."""

    node: Node
    probe: Probe
    """Shows it."""
    wrong: list[Wrong]
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

    def __init__(self, prober: Prober, limit: int) -> None:
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
        self._take([first, *self._like(first)])
        self._look_at_the_whole()
        if first.alone and not self._prober.backend.inductor:
            # Errors that others hide do not show in the rest. (Inductor would take minutes.)
            self._take(self._without_strangers(self._others()))
        while self._goes_on():
            more = self._others()
            if not more:
                # Nothing else goes wrong alone.
                more = [self._search()]
                more += self._like(more[0])
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

    def _computing(self, found: Found) -> list[Node]:
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
            computing = self._computing(Found(number, number + 1))
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
        if suspect.alone or len(suspect.region) > 16:
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
