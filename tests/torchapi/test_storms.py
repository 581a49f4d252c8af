"""A frame that is compiled again and again: every entry is accounted for, little is written."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("torch")

import torch
import torch._dynamo

import compilescope
from compilescope.instrument.torchapi.guards.misses import Misses, topic
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import (
    CacheEntryMiss,
    FailedGuard,
    GraphCaptured,
    GuardSet,
    Recompile,
)
from compilescope.record.event import encode
from compilescope.record.run import Run
from compilescope.record.storms import MOST_KEPT, MOST_WALKED
from compilescope.report.document import report_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

pytestmark = pytest.mark.torch
TIMES = MOST_KEPT + 6


def storm(call, times: int) -> Run:
    torch._dynamo.reset()
    limits = {"recompile_limit": 10_000, "accumulated_recompile_limit": 10_000}
    with torch._dynamo.config.patch(**limits), compilescope.capture() as capture:
        for number in range(times + 1):
            call(number)
    torch._dynamo.reset()
    return capture.run


@pytest.fixture(scope="module")
def sizes() -> Run:
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    return storm(lambda number: double(torch.ones(number + 2)), TIMES)


def recompiles(run: Run) -> list[Recompile]:
    return [body for _, body in run.of(Recompile)]


def test_every_entry_is_listed_or_counted(sizes: Run) -> None:
    found = recompiles(sizes)
    assert len(found) == TIMES
    for number, body in enumerate(found, 1):
        counted = body.unlisted + sum(entry.folded for entry in body.entries)
        assert len(body.entries) + counted == number
        assert (counted == 0) == (number <= MOST_WALKED)


def test_a_folded_recompile_names_the_guard_that_failed_last(sizes: Run) -> None:
    body = recompiles(sizes)[-1]
    (entry,) = body.entries
    assert entry.compile_id.endswith(f"/{TIMES - 1}")
    (failed,) = entry.failed
    assert (failed.subject, failed.expected, failed.actual) == (
        "x.size()[0]",
        str(TIMES + 1),
        str(TIMES + 2),
    )
    assert failed.frame is not None
    assert failed.frame.file == __file__
    assert entry.newest.endswith(f"/{TIMES - 2}")


def test_what_a_recompile_writes_does_not_grow(sizes: Run) -> None:
    written = [len(encode(event)) for event, _ in sizes.of(Recompile)]
    assert written[-1] <= written[MOST_WALKED + 1] + 50


def test_graphs_and_guards_are_counted_when_they_are_not_kept(sizes: Run) -> None:
    graphs = [body for _, body in sizes.of(GraphCaptured)]
    guards = [body for _, body in sizes.of(GuardSet)]
    assert len(graphs) == len(guards) == TIMES + 1
    assert {(body.ops, body.nodes) for body in graphs} == {(1, 3)}
    assert [bool(body.text and body.graph) for body in graphs].count(True) == MOST_KEPT
    assert len({(body.count, str(body.kinds)) for body in guards}) == 1
    assert [bool(body.artifact) for body in guards].count(True) == MOST_KEPT


def test_the_views_say_what_was_folded(sizes: Run) -> None:
    (frame,) = digest(sizes).recompiles
    assert frame.count == TIMES
    assert [(cause.subject, cause.count) for cause in frame.causes] == [("x.size()[0]", TIMES)]
    entries = sum(range(1, TIMES + 1))
    listed = sum(len(body.entries) for body in recompiles(sizes))
    assert frame.folded == entries - listed
    drawn = report_document(Reading(sizes, full=True))
    said = f"{frame.folded} earlier cache entries were checked for their first failed guard only"
    text = " ".join(to_text(drawn).split())
    assert said in text
    assert f"after compilation {MOST_KEPT} were counted, not stored" in text


def test_each_guard_that_fails_is_listed_once() -> None:
    def label(x: torch.Tensor, one: str, other: str) -> torch.Tensor:
        return x + len(one) + len(other)

    compiled = torch.compile(label, backend="eager")
    run = storm(
        lambda number: compiled(torch.ones(2), f"a{number // 5}", f"b{number % 5}"), MOST_WALKED + 4
    )
    last = recompiles(run)[-1]
    assert len(last.entries) == len({entry.failed[0].subject for entry in last.entries}) <= 2
    assert sum(1 + entry.folded for entry in last.entries) == MOST_WALKED + 4
    (frame,) = digest(run).recompiles
    assert {cause.subject for cause in frame.causes} == {"one", "other"}


def test_a_call_that_may_not_recompile_is_no_recompile() -> None:
    torch._dynamo.reset()
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    with compilescope.capture() as capture:
        double(torch.ones(2))
        with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError):
            double(torch.ones(3))
        double(torch.ones(4))
    (body,) = recompiles(capture.run)
    assert [entry.failed[0].actual for entry in body.entries] == ["4"]


@pytest.mark.parametrize(
    ("reason", "about"),
    [
        ("0/7: self.calls == 7     # if a == b  # m.py:3 in f\nUser stack", "self.calls"),
        (
            "0/1: tensor 'x' size mismatch at index 0. expected 2, actual 42",
            "tensor 'x' size mismatch at index 0.",
        ),
        (
            "0/1: ___check_obj_id(f.__code__, 140559428600688), type=<class 'code'>  # f(x)",
            "___check_obj_id(f.__code__",
        ),
        ("0/1: BACKEND_MATCH failure: Cached backend: a (id=0x1).", "BACKEND_MATCH"),
        ("0/1: GLOBAL_STATE changed: grad_mode ", "GLOBAL_STATE changed: grad_mode "),
    ],
)
def test_what_a_reason_is_about(reason: str, about: str) -> None:
    assert topic(reason) == about


def misses_of(reasons: list[str]) -> Misses:
    misses = Misses()
    misses.storm = True
    for number, reason in enumerate(reasons):
        if not misses.fold(None, reason):
            miss = CacheEntryMiss(f"0/{number}", (FailedGuard(reason, reason),), reason)
            misses.list(miss, reason)
    return misses


def test_more_reasons_than_are_listed_are_counted() -> None:
    misses = misses_of([f"0/{n}: name_{n % 100} == {n}" for n in range(1000)])
    entries = misses.entries()
    assert len(entries) == 4
    assert len(entries) + sum(entry.folded for entry in entries) + misses.unlisted == 1000


def test_sizes_of_two_dimensions_are_not_one() -> None:
    reasons = [f"0/{n}: tensor 'x' size mismatch at index {n % 2}. expected {n}" for n in range(9)]
    assert [entry.folded for entry in misses_of(reasons).entries()] == [4, 3]
    limits = [f"0/{n}: x.size()[{n % 2}] <= {n}" for n in range(9)]
    assert [entry.folded for entry in misses_of(limits).entries()] == [4, 3]


WORDS = (
    "self.calls == {n}",
    "self.calls == {n}  # if a == b",
    "tensor 'x' size mismatch at index 0. expected {n}, actual 3",
    "tensor 'x' size mismatch at index 1. expected {n}, actual 3",
    "tensor 'x' expected {n} == 3",
    "___check_obj_id(f, {n}), type=<class 'code'>",
    "___check_obj_id(f, g, {n}), type=<class 'code'>",
    "x.size()[0] <= {n}",
    "list(dict.keys(v)) == ['k {n}', 'a == b']",
    "a == b == {n}",
    "q{n} == 3",
    "not v",
    "not v  # if a == b",
    "not v\nUser stack trace:\n  File {n}  # a",
    "GLOBAL_STATE changed: grad_mode ",
    "GLOBAL_STATE changed: grad_mode autocast(cpu)_enabled ",
)


@pytest.mark.parametrize("seed", range(50))
def test_an_entry_is_counted_alike_whatever_came_before_it(seed: int) -> None:
    """Most entries are known by how torch's words begin; the rest are looked at closely."""
    random = Random(seed)
    words = random.sample(WORDS, random.randint(1, 4))
    ways = [Misses(), Misses()]
    for number in range(60):
        reason = f"0/{number}: {random.choice(words).format(n=random.randint(0, 99))}"
        for misses in ways:
            misses.storm = True
        ways[1]._beginnings = []
        folded = [misses.fold(None, reason) for misses in ways]
        assert folded[0] == folded[1], reason
        for misses in ways if not folded[0] else ():
            misses.list(CacheEntryMiss(f"0/{number}", (), reason), reason)
    assert ways[0].entries() == ways[1].entries()
    assert ways[0].unlisted == ways[1].unlisted
