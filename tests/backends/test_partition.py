"""A graph that is cut up computes what it computed whole, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.utils._pytree as pytree

from backends.toy_adapters import Emulator, denying, lottery
from compilescope.backends.islands.pieces import propose_islands, run_order

pytestmark = pytest.mark.torch
F = torch.nn.functional


def writes_inputs(x, w):
    y = x.view(-1)
    x.add_(1)
    z = y * 2
    v = x[0]
    v.mul_(3)
    return y, z + x.sum(), v


def writes_in_chain(x, w):
    h = x @ w
    h.add_(1.5)
    h[:, 0] = 1.0
    h[1] += h[0]
    return h.t(), h


def several_results(x, w):
    a, b = x.split(2, dim=1)
    m, i = x.max(dim=1)
    top = torch.topk(x, 2, dim=1)
    rows = torch.unbind(x)
    return a + b, m, i, top.values, top.indices, rows[0] * rows[1], torch.cat([a, b, x], 1)


def returns_inputs(x, w):
    return x, w, x + 1, x


def does_nothing(x, w):
    return x


def constants(x, w):
    fixed = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x + fixed, torch.arange(4), torch.ones(3).sum() * x.shape[0]


def random_numbers(x, w):
    a = torch.rand(3)
    h = torch.relu(x @ w)
    b = torch.randn_like(h)
    c = F.dropout(h + b, 0.5, True)
    return a, b, c, torch.bernoulli(torch.sigmoid(c)), torch.rand(2) + a[:2]


def sizes(x, w):
    n = x.shape[0]
    h = (x @ w).reshape(n * 2, -1)
    wide = h.expand(3, n * 2, h.shape[1]).contiguous() * n
    return wide, h.view(-1)[: n + 1], torch.zeros(n, 2) + h.sum(), n * 3


def strides(x, w):
    h = (x @ w).t()
    k = h.permute(1, 0).contiguous().t()
    seen = torch.as_strided(h + 1, (2, 2), (1, 2))
    return seen, (k * 2).t().reshape(-1), (h + 1).expand(2, *h.shape).sum(0)


def indexing(x, w):
    i = torch.tensor([1, 0])
    y = x[i].index_put((i,), torch.zeros(4))
    m = x > 0
    first = torch.zeros(x.shape[0], 1, dtype=torch.int64)
    return torch.where(m, x, -x), y, x.gather(1, first), m.any()


def one_value_thrice(x, w):
    h = x.sin()
    return h, h, h.cos(), h.view(-1), h.t()


def nested(x, w):
    return {"a": x + 1, "b": [x * 2, (x - 1).relu()]}


def complex_numbers(x, w):
    f = torch.fft.rfft(x)
    return torch.view_as_real(f), f.abs()


def no_gradient_here(x, w):
    return (x.detach() * w.sum()).sum(), x.sum() * 2


def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = x @ w
    return h.float() + 1, x @ w


def attention(x, w):
    q = (x @ w).view(1, x.shape[0], 2, 3).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q)


def branches(x, w):
    return torch.cond(x.sum() > 0, lambda a: a.sin() @ w, lambda a: a.cos() @ w, (x,)) + 1


@torch.library.custom_op("compilescope_tests::scale_", mutates_args={"a"})
def scale_(a: torch.Tensor, k: float) -> None:
    a.mul_(k)


def own_operator_that_writes(x, w):
    h = x @ w
    g = h + 1
    scale_(h, 2.0)
    return h, g, h * 2


def batch_norm(x, w):
    mean, variance = torch.zeros(4), torch.ones(4)
    return F.batch_norm(x, mean, variance, training=True), mean, variance


PROGRAMS = [
    writes_inputs, writes_in_chain, several_results, returns_inputs, does_nothing, constants,
    random_numbers, sizes, strides, indexing, one_value_thrice, nested, complex_numbers,
    no_gradient_here, autocast, attention, branches, own_operator_that_writes, batch_norm,
]  # fmt: skip
WAYS = [
    ("aten", True, True, 0.5),
    ("aten", True, False, 0.5),
    ("dynamo", False, True, 0.5),
    ("aten", False, False, 0.3),
    ("aten", False, True, 0.0),
    ("dynamo", False, False, 0.0),
]
"""Level, gradients, dynamic sizes, and the chance that a node is refused."""
FREE_SIZES = (sizes, constants, attention)
"""By default these are cut with sizes that are free, which takes twice as long; others without."""


def ways() -> Iterator[Any]:
    for program in PROGRAMS:
        default = WAYS[0] if program in FREE_SIZES else WAYS[1]
        for way in WAYS:
            marks = () if way is default else pytest.mark.slow
            yield pytest.param(program, *way, marks=marks, id=f"{program.__name__}-{way}")


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def run(
    function: Callable[..., Any], x: torch.Tensor, w: torch.Tensor, grad: bool
) -> tuple[list[Any], torch.Tensor, Any]:
    x, w = x.clone(), w.clone().requires_grad_(grad)
    torch.manual_seed(3)
    with torch.set_grad_enabled(grad):
        leaves = pytree.tree_leaves(function(x, w))
        sums = [t.sum() for t in leaves if torch.is_tensor(t) and t.requires_grad]
        if sums:
            sum(sums).backward()
    return leaves, x, w.grad


def same(one: Any, other: Any) -> bool:
    if torch.is_tensor(one) and torch.is_tensor(other):
        return torch.equal(one, other) and one.stride() == other.stride()
    return one == other


@pytest.mark.parametrize(("program", "level", "grad", "dynamic", "chance"), list(ways()))
def test_cut_graphs_compute_the_same(program, level, grad, dynamic, chance) -> None:
    adapter = Emulator(lottery(1, chance), level=level)
    compiled = torch.compile(program, backend=adapter, dynamic=dynamic)
    for rows in (4, 6) if dynamic else (4,):
        x, w = torch.randn(rows, 4), torch.randn(4, 6)
        wanted, found = run(program, x, w, grad), run(compiled, x, w, grad)
        assert all(map(same, wanted[0], found[0]))
        assert torch.equal(wanted[1], found[1])
        if wanted[2] is not None:
            torch.testing.assert_close(wanted[2], found[2])


def test_random_numbers_keep_their_order_around_islands() -> None:
    def program(x):
        h = (x * 2).relu()  # An island with what follows, if nothing forbids it.
        late = torch.rand(3)
        early = torch.rand_like(h) + (x * 3)
        return early, late, (h + 1).relu()

    adapter = Emulator()
    x = torch.randn(2, 2)
    torch.manual_seed(5)
    wanted = program(x)
    torch.manual_seed(5)
    found = torch.compile(program, backend=adapter)(x)
    assert all(map(torch.equal, wanted, found))
    [graph] = adapter.report.graphs
    assert {op.rule for op in graph.host} == {"randomness"}
    assert graph.islands


def test_random_numbers_go_to_the_device_where_that_is_asked_for() -> None:
    adapter = Emulator(random="device")
    torch.compile(lambda x: F.dropout(x, 0.5, True) + 1, backend=adapter)(torch.ones(8))
    [graph] = adapter.report.graphs
    assert not graph.host and len(graph.islands) == 1


def test_dropout_that_is_off_is_not_random() -> None:
    adapter = Emulator()
    q = torch.randn(1, 2, 4, 8)
    with torch.no_grad():
        torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), backend=adapter)(q)
    assert not adapter.report.graphs[0].host


def test_a_region_keeps_a_dynamo_graph_whole() -> None:
    adapter = Emulator(level="dynamo")
    with torch.no_grad():
        torch.compile(autocast, backend=adapter)(torch.randn(4, 4), torch.randn(4, 6))
    [graph] = adapter.report.graphs
    assert not graph.islands
    assert {op.rule for op in graph.host} == {"region"}


def test_dynamo_level_is_for_inference() -> None:
    adapter = Emulator(level="dynamo")
    with pytest.raises(Exception, match="have no backward pass"):
        torch.compile(torch.nn.Linear(2, 2), backend=adapter)(torch.ones(1, 2))


def test_small_islands_stay_on_the_host() -> None:
    def program(x):
        a = torch.sort(x + 1).values
        return torch.sort(((a * 2) + 1).relu()).values

    capabilities = denying("aten.sort")
    counts = []
    for least in (1, 2, 4):
        adapter = Emulator(capabilities, min_island_ops=least)
        torch._dynamo.reset()
        torch.compile(program, backend=adapter)(torch.randn(4, 4))
        [graph] = adapter.report.graphs
        counts.append(len(graph.islands))
    assert counts == [2, 1, 0]
    assert {op.rule for op in graph.host} == {"operators", "small-island"}


def test_views_are_no_island_and_do_not_cross_for_nothing() -> None:
    def program(x, w):
        return torch.sort(x.t()).values, w.t(), x @ w.t()

    adapter = Emulator(denying("aten.sort"))
    torch.compile(program, backend=adapter)(torch.randn(4, 4), torch.randn(4, 4))
    [graph] = adapter.report.graphs
    [island] = graph.islands
    assert island.by_op == {"aten.mm.default": 1}
    assert len(island.outward) == 1, "w.t() is the host's own"


def test_an_island_that_does_not_fit_stays_on_the_host() -> None:
    def program(x):
        return torch.sort((x @ x).relu()).values + 1

    adapter = Emulator(denying("aten.sort", max_memory_bytes=9000))
    torch.compile(program, backend=adapter)(torch.randn(32, 32))
    [graph] = adapter.report.graphs
    assert [island.by_op for island in graph.islands] == [{"aten.add.Tensor": 1}]
    memory = [op for op in graph.host if op.rule == "memory"]
    assert {op.op for op in memory} == {"aten.mm.default", "aten.relu.default"}
    assert "island" in memory[0].found


def test_values_that_the_device_does_not_take_are_not_handed_to_it() -> None:
    def program(table, i):
        return F.embedding(i, table) * 2

    table, i = torch.randn(5, 3), torch.tensor([1, 2])
    adapter = Emulator(denying(supported_dtypes=["float32"]))
    torch.compile(program, backend=adapter)(table, i)
    [graph] = adapter.report.graphs
    assert [(op.op, op.rule) for op in graph.host] == [("aten.embedding.default", "input")]
    assert "int64" in graph.host[0].found and graph.islands[0].by_op == {"aten.mul.Tensor": 1}


def test_what_cannot_be_told_stays_on_the_host_unless_told_otherwise() -> None:
    def program(x):
        return (x @ x.t()).relu()

    for unsure, islands in (("host", 0), ("device", 1)):
        adapter = Emulator(denying(max_memory_bytes="1 GiB"), unsure=unsure)
        torch._dynamo.reset()
        torch.compile(program, backend=adapter, dynamic=True)(torch.randn(5, 7))
        [graph] = adapter.report.graphs
        assert len(graph.islands) == islands
    assert not graph.host


def random_graph(seed: int) -> tuple[dict[str, list[str]], set[str]]:
    dice = random.Random(seed)
    inputs: dict[str, list[str]] = {}
    for number in range(dice.randint(1, 60)):
        near = list(inputs)[-6:]
        inputs[f"n{number}"] = dice.sample(near, min(len(near), dice.choice([0, 1, 1, 2, 3])))
    chance = dice.random()
    return inputs, {name for name in inputs if dice.random() < chance}


def is_runnable(inputs: dict[str, list[str]], islands: list[list[str]]) -> bool:
    unit = {name: f"island {k}" for k, names in enumerate(islands) for name in names}
    needs: dict[str, set[str]] = {}
    for name, before in inputs.items():
        own = unit.get(name, name)
        needs.setdefault(own, set()).update(unit.get(o, o) for o in before)
        needs[own].discard(own)
    return len(run_order(needs)) == len(needs)  # It raises where something needs itself.


@pytest.mark.parametrize("seed", range(60))
def test_islands_never_need_one_another_in_a_circle(seed: int) -> None:
    inputs, device = random_graph(seed)
    by_torch, way = propose_islands(inputs, device)
    by_level, other = propose_islands(inputs, device, largest_sketch=-1)
    assert way == "torch" and (other == "levels" or not device)
    for islands in (by_torch, by_level):
        assert sorted(name for island in islands for name in island) == sorted(device)
        assert is_runnable(inputs, islands)
    assert len(by_level) <= len(by_torch)


def test_large_graphs_are_cut_by_level_and_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = propose_islands.__kwdefaults__
    assert defaults["largest_sketch"] >= 100
    monkeypatch.setitem(defaults, "largest_sketch", 10)

    def program(x):
        for _ in range(12):
            x = torch.sort(x + 1).values * 0.99
        return x

    adapter = Emulator(denying("aten.sort"))
    x = torch.randn(4, 4)
    assert torch.equal(torch.compile(program, backend=adapter)(x), program(x))
    [graph] = adapter.report.graphs
    assert graph.cut_by == "levels"
    assert len(graph.islands) == 13
