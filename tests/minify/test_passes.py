"""Every pass, on many graphs: never grows, keeps the predicate, idempotent, and stays runnable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilescope.change.minify.engine import NotInteresting, Pass, reduce
from compilescope.change.minify.graph.candidate import GraphCandidate, op_count, outputs_of, users
from compilescope.change.minify.graph.minifier import all_passes
from compilescope.record.written_graph import WrittenGraph
from minify.made_graphs import faults, made_graph

PASSES = all_passes()
SEEDS = range(40)
Predicate = Callable[[WrittenGraph], bool]


def _live(graph: WrittenGraph) -> set[str]:
    """Targets of what is computed for an output."""
    needed, found = set(outputs_of(graph)), set()
    for op in reversed(graph.ops):
        if op.name in needed:
            found.add(op.target)
            needed.update(name for name in _names(op))
            for name in _names(op):
                if name in graph.graphs:
                    found |= {each.target for each in graph.graphs[name].ops}
    return found


def _names(op: object) -> list[str]:
    from compilescope.record.written_graph import names_used

    return list(names_used(op))  # type: ignore[arg-type]


def has_culprit(graph: WrittenGraph) -> bool:
    return "torch.culprit" in _live(graph)


def has_two(graph: WrittenGraph) -> bool:
    return {"torch.sin", "torch.add"} <= _live(graph)


def has_chain(graph: WrittenGraph) -> bool:
    """A culprit whose result is added to something."""
    used = users(graph)
    ends = _live(graph)
    return "torch.culprit" in ends and any(
        op.target == "torch.culprit"
        and any(each.target == "torch.add" for each in used.get(op.name, ()))
        for op in graph.ops
    )


def has_large_input(graph: WrittenGraph) -> bool:
    kinds = [each.tensor for each in graph.inputs if each.tensor is not None]
    return any(kind.shape[-1:] > (3,) for kind in kinds) and bool(graph.ops)


PREDICATES = [has_culprit, has_two, has_chain, has_large_input]


def reduced(start: GraphCandidate, passes: list[Pass], keep: Predicate) -> GraphCandidate:
    def judge(candidate: GraphCandidate) -> str:
        assert list(faults(candidate.graph)) == [], candidate.text()
        return "kept" if keep(candidate.graph) else "lost"

    return reduce(start, passes, judge).best  # type: ignore[arg-type]


def subjects(keep: Predicate) -> list[GraphCandidate]:
    made = [GraphCandidate(made_graph(seed)) for seed in SEEDS]
    return [each for each in made if keep(each.graph)][:10]


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.id)
@pytest.mark.parametrize("keep", PREDICATES, ids=lambda keep: keep.__name__)
def test_a_pass_keeps_its_promises(each: Pass, keep: Predicate) -> None:
    starts = subjects(keep)
    assert len(starts) > 3
    for start in starts:
        best = reduced(start, [each], keep)
        assert best.size() <= start.size()
        assert keep(best.graph)
        again = reduced(best, [each], keep)
        assert again.text() == best.text()


@pytest.mark.parametrize("keep", PREDICATES, ids=lambda keep: keep.__name__)
def test_all_together_leave_what_matters(keep: Predicate) -> None:
    least = {has_culprit: 1, has_two: 2, has_chain: 2, has_large_input: 1}[keep]
    for start in subjects(keep):
        best = reduced(start, PASSES, keep)
        assert op_count(best.graph) == least, best.text()
        assert reduced(best, PASSES, keep).text() == best.text()


def test_five_hundred_operations_take_few_questions() -> None:
    graph = made_graph(7, ops=500, nested=False)
    asked = 0

    def judge(candidate: GraphCandidate) -> str:
        nonlocal asked
        asked += 1
        return "kept" if has_culprit(candidate.graph) else "lost"

    found = reduce(GraphCandidate(graph), PASSES, judge)  # type: ignore[arg-type]
    assert op_count(found.best.graph) == 1
    assert asked < 60


def test_what_shows_nothing_is_refused() -> None:
    with pytest.raises(NotInteresting):
        reduced(GraphCandidate(made_graph(1)), PASSES, lambda graph: False)


def test_each_has_its_place() -> None:
    assert len({each.order for each in PASSES}) == len(PASSES)


def test_text_is_what_it_is_and_not_where_it_came_from() -> None:
    first, second = GraphCandidate(made_graph(3)), GraphCandidate(made_graph(3))
    assert first.text() == second.text()
    assert first.size() == second.size()
    assert first.text() != GraphCandidate(made_graph(4)).text()
