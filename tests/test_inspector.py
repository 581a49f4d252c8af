"""The guard inspector on real models."""

from __future__ import annotations

import json
from collections import UserDict
from typing import Any

import msgspec
import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.apps.inspector import GuardReport  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.instrument.torchapi.guards import cost  # noqa: E402
from compilescope.instrument.torchapi.guards.checks import child_nodes  # noqa: E402
from compilescope.report.guards import costliest  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        self.table = {"scale": 2}

    def forward(self, x: Any, y: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x * self.table["scale"] + y


def broken(x: Any) -> Any:
    y = x + 1
    print(end="")
    return y * 2


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


DEAR_NS, CHEAP_NS, WAY_NS = 100.0, 10.0, 1.0
"""Made up: the check of a tensor, any other check, the way to a value."""


def made_up_ns(node: Any) -> float:
    """What a part of a guard tree, with all below it, is made to cost."""
    leaves = [type(leaf).__name__ for leaf in node.get_leaf_guards()]
    own = sum(DEAR_NS if kind == "TENSOR_MATCH" else CHEAP_NS for kind in leaves)
    return WAY_NS + own + sum(map(made_up_ns, child_nodes(node)))


@pytest.fixture(autouse=True)
def made_up_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards are really checked, but no clock says how long that took."""

    def batch(check: Any, f_locals: Any) -> float:
        assert check(f_locals)
        return made_up_ns(check.__self__)

    monkeypatch.setattr(cost, "_batch", batch)
    monkeypatch.setattr(cost, "_SECONDS", 1e6)
    for repeats in ("_REPEATS", "_PART_REPEATS", "_COLD_REPEATS"):
        monkeypatch.setattr(cost, repeats, 1)


_reports: dict[str, GuardReport] = {}
"""Made once: tests only read them."""


@pytest.fixture
def report(made_up_times: None) -> GuardReport:
    if "block" not in _reports:
        inspector = compilescope.GuardInspector(Block())
        _reports["block"] = inspector.inspect(torch.ones(2, 4), torch.ones(2, 4))
    return _reports["block"]


@pytest.fixture
def of_broken(made_up_times: None) -> GuardReport:
    if "broken" not in _reports:
        _reports["broken"] = compilescope.GuardInspector(broken).inspect(torch.ones(3))
    return _reports["broken"]


def test_guards_by_kind_and_by_line(report: GuardReport) -> None:
    [entry] = report.graphs
    graph = entry.graph
    assert graph.function == "forward" and graph.ops and graph.ops >= 5
    assert graph.guards == sum(graph.kinds.values()) == len(graph.all) == report.guards
    assert graph.kinds["TENSOR_MATCH"] >= 8
    assert list(graph.kinds.values()) == sorted(graph.kinds.values(), reverse=True)
    scale = next(line for line in graph.lines if "table" in line.source)
    assert scale.kinds["EQUALS_MATCH"] == 1 and scale.file == __file__
    loop = {"x = layer(x)", "for layer in self.layers:"}
    assert sum(line.guards for line in graph.lines if line.source in loop) >= 6


def test_the_tree_is_nested_and_measured(report: GuardReport) -> None:
    found = report.graphs[0].cost
    assert found is not None
    assert found.warm_ns and found.cold_ns is not None
    nodes = {node.source: node for node in found.tree.walk()}
    assert found.tree.total_ns == found.warm_ns
    x = nodes["L['x']"]
    assert x.type == "torch.Tensor" and not x.children
    [match] = [check for check in x.checks if check.kind == "TENSOR_MATCH"]
    assert "size=[2, 4]" in match.conditions[0]
    below = {node.source for node in nodes["L['self']"].walk()}
    assert "L['self'].table['scale']" in below and "L['x']" not in below
    assert all(node.total_ns is not None for node in nodes.values()) and not found.unmeasured
    scale = nodes["L['self'].table['scale']"]
    assert scale.frame is not None and scale.frame.file == __file__
    assert sum(len(node.checks) for node in nodes.values()) == found.guards == report.guards


def test_the_dearest_come_first(report: GuardReport) -> None:
    entry = report.graphs[0]
    assert entry.cost is not None
    costs = [node.own_ns for node in entry.expensive]
    assert costs == sorted(costs, key=lambda ns: -(ns or 0))
    # Eight tensors to check, each far dearer than all else.
    kinds = [{check.kind for check in node.checks} for node in entry.expensive]
    assert ["TENSOR_MATCH" in each for each in kinds] == [True] * 8 + [False] * (len(kinds) - 8)
    for node in entry.cost.tree.walk():
        others = sum(check.kind != "TENSOR_MATCH" for check in node.checks)
        made = WAY_NS + CHEAP_NS * others + DEAR_NS * (len(node.checks) - others)
        # An empty tree, which has its root alone, costs nothing.
        assert node.own_ns == (made - WAY_NS if node is entry.cost.tree else made), node.source
        below = sum(child.total_ns or 0 for child in node.children)
        assert node.total_ns == node.own_ns + below
    nothing = msgspec.structs.replace(entry.cost.tree, own_ns=0.0, children=())
    assert costliest(msgspec.structs.replace(entry.cost, tree=nothing)) == []


def test_what_time_did_not_reach_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_SECONDS", -1.0)
    found = compilescope.GuardInspector(broken).inspect(torch.ones(3)).graphs[0].cost
    assert found is not None and found.warm_ns and found.unmeasured
    assert {node.total_ns for node in found.tree.walk()} == {None, found.warm_ns}


def test_the_clock_gives_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = compilescope.GuardInspector(broken).inspect(torch.ones(3)).graphs[0].cost
    assert found is not None
    assert isinstance(found.warm_ns, float) and isinstance(found.cold_ns, float)


def test_each_part_of_a_broken_function(of_broken: GuardReport) -> None:
    report = of_broken
    assert report.result.tolist() == [4.0, 4.0, 4.0]
    assert [entry.graph.function for entry in report.graphs] == ["broken", "broken"]
    assert [entry.graph.resumed_at is None for entry in report.graphs] == [True, False]
    assert all(entry.cost is not None for entry in report.graphs)
    assert report.check_ns and report.check_ns > 0


def test_inputs_may_come_as_one_tuple(report: GuardReport) -> None:
    x = torch.ones(2, 4)
    for inputs, named in (((x, x + 1),), {}), ((x,), {"y": x + 1}):
        other = compilescope.GuardInspector(Block()).inspect(*inputs, **named)
        assert other.graphs[0].graph.ops and other.guards == report.guards


def test_graph_breaks_and_their_reasons(of_broken: GuardReport) -> None:
    report = of_broken
    assert (report.graph_count, report.graph_break_count) == (2, 1)
    [reason] = report.break_reasons
    assert reason.source.strip() == 'print(end="")' and reason.file == __file__
    assert reason.gb_id and reason.gb_type in str(reason) and f":{reason.line}" in str(reason)
    text = report.summary()
    assert "2 graphs, 1 graph break" in text and "Graph breaks" in text and reason.gb_type in text
    values = json.loads(report.to_json())
    assert (values["graph_count"], values["graph_break_count"]) == (2, 1)
    assert values["break_reasons"][0]["gb_type"] == reason.gb_type
    assert report["graph_break_count"] == 1
    assert reason.gb_type in report._repr_html_()


def test_inputs_in_every_form_that_the_harness_takes() -> None:
    def scaled(x: Any, scale: Any = 1.0) -> Any:
        return x * scale

    x = torch.ones(2)
    inspector = compilescope.GuardInspector(scaled)
    assert inspector.inspect({"x": x, "scale": 3.0}).result.tolist() == [3.0, 3.0]
    assert inspector.inspect((x,), scale=4.0).result.tolist() == [4.0, 4.0]
    assert inspector.inspect([x, 5.0]).result.tolist() == [5.0, 5.0]
    assert inspector.inspect(x=x, scale=6.0).result.tolist() == [6.0, 6.0]
    encoded = UserDict(x=x, scale=7.0)  # As a tokenizer's output is.
    assert inspector.inspect(encoded).result.tolist() == [7.0, 7.0]


def test_inspecting_twice_measures_twice() -> None:
    from torch._dynamo import guards

    inspector = compilescope.GuardInspector(broken, dynamic=False)
    first, second = inspector.inspect(torch.ones(3)), inspector.inspect(torch.ones(3))
    if len(second.graphs) != len(first.graphs):
        pytest.fail("the second inspection saw other frames")
    assert first.guards == second.guards
    assert guards.guard_manager_testing_hook_fn is None, "torch's hook is put back"


def test_what_was_compiled_before_is_compiled_anew(of_broken: GuardReport) -> None:
    torch.compile(broken, backend="eager")(torch.ones(3))
    report = compilescope.GuardInspector(broken).inspect(torch.ones(3))
    assert len(report.graphs) == 2 and report.backend == "eager"
    assert report.guards == of_broken.guards
    ready = torch.compile(broken, backend="aot_eager")
    ready(torch.ones(3))
    of_ready = compilescope.GuardInspector(ready).inspect(torch.ones(3))
    assert of_ready.backend == "aot_eager" and of_ready.guards == report.guards
    named = compilescope.GuardInspector(ready, backend="eager").inspect(torch.ones(3))
    assert named.backend == "eager"


def test_its_words_name_no_flag(report: GuardReport) -> None:
    graph = report.graphs[0].graph
    many = msgspec.structs.replace(graph, lines=tuple(graph.lines) * 10)
    entries = [msgspec.structs.replace(report.graphs[0], graph=many)]
    text = GuardReport("Block", "eager", entries, None).summary()
    assert "`.graphs` has them all" in " ".join(text.split()) or ".graphs has them all" in text
    assert "--json" not in text


def test_every_form(report: GuardReport) -> None:
    text = str(report)
    assert text == report.summary()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("Guards of Block", "check, warm", "Most expensive guards", "Guard tree"):
        assert words in text
    assert "How it was measured" in text
    assert "Guards of Block" in report._repr_html_()
    values = json.loads(report.to_json())
    assert values["guards"] == report.guards
    [entry] = values["graphs"]
    assert entry["cost"]["tree"]["children"] and entry["expensive"][0]["own_ns"] > 0
    assert repr(report) == f"<GuardReport of Block: 1 frames, {report.guards} guards>"


def test_nothing_compiled_is_said() -> None:
    def plain(x: int) -> int:
        return x

    with pytest.raises(ToolError, match="Nothing in plain was compiled"):
        compilescope.GuardInspector(torch._dynamo.disable(plain)).inspect(1)
