"""explain compiles anew each time; capture says what was compiled before; neither names a flag."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch._dynamo

import compilescope
from compilescope.record.bodies import CompiledBefore, HookUnavailable
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.report.document import report_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def noisy(x: Any) -> Any:
    print(end="")
    return x * 2


def broken(x: Any) -> Any:
    y = noisy(x) + 1
    if y.sum() > 0:
        return y * 3
    return y


def given_up(x: Any) -> Any:
    for _ in range(2):
        torch._dynamo.graph_break()
        x = x + 1
    return x


def sizes(x: Any) -> Any:
    torch._dynamo.graph_break()
    for size in (2, 3, 4):
        noisy(x[:size])
    return x


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        print(end="")
        return self.layer(x) + 1

    def other(self, x: Any) -> Any:
        return self.layer(x) * 2


def _compiled_inside(x: Any) -> Any:
    torch._dynamo.graph_break()
    return _inner(x) + 1


_inner = torch.compile(noisy, backend="aot_eager")


def _in_place() -> Any:
    model = Model()
    model.compile(backend="aot_eager")
    return model


_SLOW = [pytest.mark.slow]
_SUBJECTS: dict[str, Callable[[], Any]] = {
    "function": lambda: broken,
    "given up": lambda: given_up,
    "recompiles": lambda: sizes,
    "module": Model,
    "bound method": lambda: Model().other,
    "torch's own module": lambda: torch.nn.Linear(4, 4),
    "compiled function": lambda: torch.compile(broken, backend="aot_eager"),
    "compiled module": lambda: torch.compile(Model(), backend="aot_eager"),
    "compiled in place": _in_place,
    "calls a compiled one": lambda: _compiled_inside,
}


def _facts(seen: Any) -> Any:
    return (
        [(graph.ops, graph.backend) for graph in seen.graphs],
        [(site.function, site.line, site.gb_type) for site in seen.breaks],
        [(frame.function, frame.count) for frame in seen.recompiles],
        [(frame.function, frame.cause) for frame in seen.eager_frames],
    )


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(name, marks=[] if name in ("function", "recompiles", "module") else _SLOW)
        for name in _SUBJECTS
    ],
)
def test_every_call_says_the_same(subject: str) -> None:
    """And a notebook's words name no flag."""
    explained = compilescope.explain(_SUBJECTS[subject]())
    first = explained(torch.ones(4, 4))
    assert first.graphs or first.eager_frames
    assert _facts(explained(torch.ones(4, 4))) == _facts(first)
    if subject != "recompiles":
        return
    with compilescope.capture() as empty:
        pass
    for run in (first, empty):
        assert_names_no_flag(run)


def test_more_often_than_the_recompile_limit() -> None:
    with torch._dynamo.config.patch(recompile_limit=2):
        explained = compilescope.explain(broken)
        all_facts = [_facts(explained(torch.ones(3))) for _ in range(4)]
    assert all(facts == all_facts[0] for facts in all_facts) and len(all_facts[0][0]) == 3


def test_a_size_of_an_earlier_call_is_forgotten() -> None:
    first = compilescope.explain(noisy)(torch.ones(3))
    second = compilescope.explain(noisy)(torch.ones(5))
    assert _facts(first) == _facts(second)
    assert not any("s77" in graph.code or "SymInt" in graph.code for graph in second.graphs)


def test_what_is_compiled_keeps_its_backend_unless_told_otherwise() -> None:
    ready = torch.compile(broken, backend="aot_eager")
    backends = {graph.backend for graph in compilescope.explain(ready)(torch.ones(3)).graphs}
    assert backends == {"aot_eager"}
    other = compilescope.explain(ready, backend="eager")(torch.ones(3))
    assert {graph.backend for graph in other.graphs} == {"eager"}
    module = compilescope.explain(torch.compile(Model(), backend="aot_eager"), backend="eager")
    assert {graph.backend for graph in module(torch.ones(4, 4)).graphs} == {"eager"}


def test_other_compiled_code_still_works_and_what_it_knew_of_sizes_stays() -> None:
    step = torch.compile(noisy, backend="eager")
    for size in (2, 3, 4):
        step(torch.ones(size))
    compilescope.explain(broken)(torch.ones(3))
    with compilescope.capture() as again:
        assert step(torch.ones(7)).tolist() == [2.0] * 7
        step(torch.ones(9))
    # It had seen the size change, so one graph does for both.
    assert len(again.graphs) == 1 and not again.recompiles


def test_what_was_dropped_is_named() -> None:
    torch.compile(noisy, backend="eager")(torch.ones(2))
    seen = compilescope.explain(broken)(torch.ones(3))
    [(_, body)] = list(seen.run.of(CompiledBefore))
    assert body.dropped and [each.function for each in body.functions] == ["noisy"]
    assert "`noisy` compiles again on the next call." in _flat(seen.summary())


def test_a_second_capture_says_what_was_compiled_before() -> None:
    step = torch.compile(broken, backend="eager")
    step(torch.ones(3))
    with compilescope.capture() as run:
        step(torch.ones(3))
    text = _flat(run.summary())
    assert "Nothing was compiled while this was captured." in text
    assert "were compiled before (" in text and "`broken`" in text and "`noisy`" in text
    assert "never called" not in text and "torch.compiler.reset()" in text


def test_a_capture_of_what_dynamo_gave_up_does_not_say_that_nothing_was_called() -> None:
    torch._dynamo.reset()
    step = torch.compile(given_up, backend="eager")
    step(torch.ones(3))
    with compilescope.capture() as run:
        step(torch.ones(3))
    text = _flat(run.summary())
    assert "`given_up`" in text and "never called" not in text


def test_a_capture_of_nothing_says_so() -> None:
    with compilescope.capture() as run:
        noisy(torch.ones(2))
    if run.run.count(CompiledBefore):
        assert "Either no compiled function was called" in _flat(run.summary())
    else:
        assert "No compiled function was called" in _flat(run.summary())


def test_where_torch_does_not_tell_that_is_said() -> None:
    header = RunHeader(run="r", tool="0")
    with compilescope.capture() as run:
        pass
    plain = [event for event in run.events if not isinstance(event.body, CompiledBefore)]
    unknown = HookUnavailable("compiled-before", "a.b", "what was compiled before")
    import msgspec

    events = [*plain[:1], msgspec.structs.replace(plain[0], id="x.1", body=unknown), *plain[1:]]
    reading = Reading(Run(header, events, run.run.artifacts), reader="python")
    assert "torch doesn't say which" in _flat(to_text(report_document(reading)))


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["function", "module"])
def test_a_notebooks_words_name_no_flag(subject: str) -> None:
    assert_names_no_flag(compilescope.explain(_SUBJECTS[subject]())(torch.ones(4, 4)))


def assert_names_no_flag(run: Any) -> None:
    page = html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", " ", run._repr_html_(), flags=re.S))
    for text in (run.summary(), repr(run), page):
        assert not re.search(r"(?<![\w-])--[a-z]+", text), text


def test_a_list_that_is_cut_short_is_whole_in_python() -> None:
    run = Run(RunHeader(run="r", tool="0"), [], {})
    assert "--json" in Reading(run).see_all
    assert ".digest" in Reading(run, reader="python").see_all


def _flat(text: str) -> str:
    return " ".join(text.split())
