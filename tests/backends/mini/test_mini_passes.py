"""A mistake planted in a pass is found: the pass and the operation."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from compilescope import MiniAdapter  # noqa: E402
from compilescope.measure.diff.localize import localize  # noqa: E402
from compilescope.measure.diff.localize.attribution import RIGHT_ALONE, find_pass, has_passes  # noqa: E402

pytestmark = pytest.mark.torch


def constant_folding(x):
    return torch.tanh(x) + torch.full((3, 4), 2.0).sum(0)


def algebraic(x):
    y = torch.sin(x)
    return torch.sqrt(y * y) + 1


def cse(x):
    return torch.exp(x - x.t()) - torch.sin(x.t() - x)


def dead_code(x):
    return torch.sin(x) * 2, torch.cos(x) + 1


def layout(x):
    return torch.tanh(x) @ x.t()


def fusion(x):
    return torch.softmax(x * 2, -1) + 1


def memory(x):
    a = torch.sin(x) @ x
    b = a @ x
    c = b @ x
    d = c @ a
    return torch.relu(d @ x)


PLANTED = {
    constant_folding: "sum_1", algebraic: "sqrt", cse: "sub_1", dead_code: "mul", layout: "matmul",
    fusion: "softmax", memory: "d",
}  # fmt: skip


def _cases():
    for function, node in PLANTED.items():
        slow = () if function is layout else pytest.mark.slow
        yield pytest.param(function, node, marks=slow, id=function.__name__)


@pytest.mark.parametrize(("function", "node"), list(_cases()))
def test_a_planted_mistake_is_found(library, function, node):
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    adapter = MiniAdapter(planted=function.__name__, runs="interpreted")
    found = localize(function, (x,), test_backend=adapter)
    assert {each.pass_name for each in found.guilty} == {function.__name__}
    assert found.guilty[0].node == node
    assert found.guilty[0].trials
    right = localize(function, (x,), test_backend=adapter.without([function.__name__]))
    assert not right.guilty


def test_every_pass_has_a_planted_mistake(library):
    assert {function.__name__ for function in PLANTED} == set(library.passes)


def test_without_keeps_the_other_settings(library):
    adapter = MiniAdapter(off=["cse"], planted="fusion", runs="interpreted", min_island_ops=3)
    other = adapter.without(["layout"])
    assert "cse" not in adapter.passes
    assert not {"cse", "layout"} & set(other.passes)
    assert (other._planted, other.min_island_ops, other._runs) == ("fusion", 3, "interpreted")


class Passes:
    """A backend whose answer depends on the passes that are left."""

    passes = ("a", "b", "c")

    def __init__(self, off=()):
        self.left = tuple(name for name in self.passes if name not in off)

    def without(self, names):
        return Passes(names)


@pytest.mark.parametrize(
    ("right", "name", "words"),
    [
        (lambda left: "b" not in left, "b", "right without the pass b"),
        (lambda left: False, None, "wrong even without any"),
        (lambda left: True, None, RIGHT_ALONE),
        (lambda left: not {"a", "b"} & set(left), None, "right only without the passes a and b"),
        (lambda left: not {"a", "c"} <= set(left), "c", "c makes it wrong"),
        (lambda left: 1 / 0, None, "leaving out passes failed: ZeroDivisionError"),
    ],
)
def test_a_pass_is_named_only_where_it_decides(right, name, words):
    assert has_passes(Passes())
    blame = find_pass(lambda backend: right(backend.left), Passes(), limit_s=60)
    assert blame.name == name
    assert words in blame.words


def test_backends_without_passes():
    assert not has_passes(lambda graph, inputs: graph)
    assert not has_passes("eager")
