"""What iterators among arguments will give is told without using them up, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compilescope.change.repair.trials.child.iterators import renewing, settled
from compilescope.instrument.torchapi.regions import CompiledRegion

pytestmark = pytest.mark.torch


def _begun() -> Iterator[int]:
    begun = iter([1, 2, 3])
    next(begun)
    return begun


@pytest.mark.parametrize(
    ("make", "items"),
    [
        (lambda: zip([1, 2], "ab", strict=False), [(1, "a"), (2, "b")]),
        (lambda: enumerate(reversed([5, 6])), [(0, 6), (1, 5)]),
        (_begun, [2, 3]),
        (lambda: iter({"a": 1, "b": 2}), ["a", "b"]),
        (lambda: (n * n for n in range(3)), [0, 1, 4]),
        (lambda: (a + b for a, b in zip([1], [2], strict=False)), [3]),
    ],
)
def test_a_plain_one_is_listed_and_left_as_it_is(make: Callable[[], Any], items: list[Any]) -> None:
    given = make()
    args, kwargs, places = settled((given, 7), {"named": make()})
    assert args == (items, 7)
    assert kwargs == {"named": items}
    assert places == {0, "named"}
    assert list(given) == items


_seen: list[int] = []


@pytest.mark.parametrize(
    "make",
    [
        lambda: map(_seen.append, [1]),
        lambda: (abs(n) for n in [1]),
        lambda: (_seen for _ in [1]),
        lambda: (f(1) for f in [_seen.append]),
        lambda: (n for n in range(100_000)),
        lambda: zip([1], map(_seen.append, [1]), strict=False),
    ],
)
def test_one_that_may_do_anything_is_left_alone(make: Callable[[], Any]) -> None:
    given = make()
    assert settled((given,), {}) == ((given,), {}, set())
    assert not _seen


def test_a_region_gets_an_iterator_anew_each_time() -> None:
    region = renewing(CompiledRegion("f", lambda items: (list(items), list(items)), sum), {0})
    assert [region.eager([1, 2]) for _ in range(2)] == [([1, 2], [])] * 2
    assert region.compiled([1, 2]) == 3
