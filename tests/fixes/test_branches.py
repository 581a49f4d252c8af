"""What the toolkit says of branches without running anything: effects, reads, aliases, comments."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from compilescope.change.fixes.branches.returns import read_returning
from compilescope.knowledge.source.flow import liveness, operators
from compilescope.knowledge.source.flow.aliasing import (
    is_buffer,
    is_changed_later,
    is_fresh_local,
    runs_without_grad,
)
from compilescope.knowledge.source.flow.purity import remarks
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule


def _module(text: str) -> SourceModule:
    return SourceModule("/p.py", textwrap.dedent(text))


def _concerns(expression: str) -> set[str]:
    module = _module(
        f"""
        import torch
        import torch.nn.functional as F
        import numpy as np
        value = {expression}
        """
    )
    return {each.concern for each in remarks(module, module.tree.body[-1])}


def _function(module: SourceModule) -> cst.FunctionDef:
    return next(each for each in module.walk() if isinstance(each, cst.FunctionDef))


def _branch(module: SourceModule) -> cst.If:
    return next(each for each in module.walk() if isinstance(each, cst.If))


@pytest.mark.parametrize(
    ("expression", "concerns"),
    [
        ("x * 2 + y.sin().clamp(min=0)", set()),
        ("x / 4 - x ** 2", set()),
        ("F.relu(x)[:, -1]", set()),
        ("x.log()", {"steep"}),
        ("x / y", {"steep"}),
        ("x ** 0.5", {"steep"}),
        ("x.pow(3)", set()),
        ("x // y", {"raises"}),
        ("x[i]", {"raises"}),
        ("x @ y", {"costly"}),
        ("F.linear(x, w)", {"costly"}),
        ("F.dropout(x)", {"random"}),
        ("torch.rand_like(x)", {"random"}),
        ("x.sum().item()", {"by-value"}),
        ("float(x)", {"by-value"}),
        ("print(x)", {"effect"}),
        ("seen.append(x)", {"effect"}),
        ("x.mul_(2)", {"effect"}),
        ("torch.add(x, y, out=z)", {"effect"}),
        ("(y := x)", {"effect"}),
        ("helper(x)", {"unknown"}),
        ("self.layer(x)", {"unknown"}),
        ("self.norm(x)", {"unknown"}),
        ("np.sin(x)", {"unknown"}),
        ("[v for v in x]", {"unknown"}),
    ],
)
def test_what_evaluating_may_do(expression: str, concerns: set[str]) -> None:
    assert _concerns(expression) == concerns


def test_own_functions_are_not_builtins() -> None:
    module = _module(
        """
        def abs(x):
            return x
        value = abs(x)
        """
    )
    assert [each.concern for each in remarks(module, module.tree.body[-1])] == ["unknown"]


def test_tables_do_not_contradict_each_other() -> None:
    harmless = operators.PLAIN
    for table in (operators.STEEP, operators.RAISING, operators.RANDOM, operators.BY_VALUE):
        assert not harmless & table
    assert operators.out_of_place("mul_") == "mul"
    assert operators.out_of_place("normal_") is None
    assert operators.out_of_place("__add__") is None


def test_what_other_branches_read_is_not_needed_after_one() -> None:
    module = _module(
        """
        def f(x, flag):
            if flag:
                if x.any():
                    height, width, depth, kept = x.shape
                width = 2
                found = width
            else:
                height = len(x)
                found = height + kept
            depth = depth + 1
            return found, (lambda: inner)
        """
    )
    function = _function(module)
    branch = next(
        each
        for each in module.walk()
        if isinstance(each, cst.If) and "any" in module.code(each.test)
    )

    def needed(name: str) -> bool:
        return liveness.is_needed_after(module, function, branch, name)

    assert not any(map(needed, ("height", "width", "kept")))
    assert needed("depth")
    assert needed("inner"), "by a function that may be called any time"
    assert liveness.is_read_later(module, function, branch, "height")


def test_reads_after_a_branch_and_around_a_loop() -> None:
    module = _module(
        """
        def f(x):
            early = x
            for _ in range(3):
                again = early + last
                if x.any():
                    last = x
                    own = x
                    again = x
            return x
        """
    )
    function, branch = _function(module), _branch(module)

    def later(name: str) -> bool:
        return liveness.is_read_later(module, function, branch, name)

    assert later("x") and later("last")
    assert not later("own")
    assert not later("again")


def test_a_name_is_set_only_where_every_way_sets_it() -> None:
    module = _module(
        """
        def f(x, *rest, key=None):
            a = 1
            if key:
                b = c = 1
            else:
                b = 2
            with open("f") as file:
                d = 1
            for e in x:
                pass
            if x.any():
                x = 0
        """
    )
    branch = [each for each in module.walk() if isinstance(each, cst.If)][-1]
    function = _function(module)
    found = {
        name
        for name in ("x", "rest", "key", "a", "b", "c", "d", "e", "nowhere")
        if liveness.is_set_before(module, function, branch, name)
    }
    assert found == {"x", "rest", "key", "a", "b", "d"}


def test_who_else_holds_a_tensor() -> None:
    module = _module(
        """
        def f(x):
            own = x + 1
            viewed = x + 1
            view = viewed.view(-1)
            given = x * 3
            keep(given)
            same = x
            held = x * 2
            other = held
            if x.any():
                own = own * 2
            own += 1
            same[0] = 1
            return own
        """
    )
    function, branch = _function(module), _branch(module)
    assert is_fresh_local(module, function, "own")
    for name in ("x", "view", "viewed", "given", "same", "held"):
        assert not is_fresh_local(module, function, name)
    assert is_changed_later(module, function, branch, "own")
    assert is_changed_later(module, function, branch, "same")
    assert not is_changed_later(module, function, branch, "held")


def test_buffers_and_modes() -> None:
    module = _module(
        """
        import torch
        from torch import no_grad as off

        class Net(torch.nn.Module):
            def __init__(self):
                self.register_buffer("mean", torch.zeros(3))
                self.count = 0

            @off()
            def forward(self, x):
                return self.mean + self.count
        """
    )
    attributes = {
        each.attr.value: is_buffer(module, each)
        for each in module.walk()
        if isinstance(each, cst.Attribute)
    }
    assert attributes["mean"] and not attributes["count"]
    returned = next(each for each in module.walk() if isinstance(each, cst.Return))
    assert runs_without_grad(module, returned)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("for y in x:\n        if y.any():\n            return y\n    return x", "a loop"),
        ("with x:\n        if x.any():\n            return x", "a `with`"),
        ("try:\n        if x.any():\n            return x\n    finally:\n        pass", "a `try`"),
        ("if x.any():\n        return x\n    x.add_(1)", "without ending in `return`"),
        ("if x.any():\n        return\n    return x", "returns nothing"),
    ],
)
def test_returns_that_cannot_be_joined(text: str, because: str) -> None:
    module = _module(f"def f(x):\n    {text}\n")
    with pytest.raises(Refused, match=because):
        read_returning(module, _branch(module))


@pytest.mark.parametrize(
    ("written", "is_known"),
    [
        ("@dataclass\nclass Record:\n    x: int = 0", True),
        ("@dataclass(frozen=True)\nclass Record:\n    x: list = field(default_factory=list)", True),
        ("class Record(NamedTuple):\n    x: int", True),
        ("@dataclass\nclass Record:\n    x: int\n    def __post_init__(self): log(self)", False),
        ("@dataclass\nclass Record:\n    x: int = field(default_factory=count)", False),
        ("@dataclass\nclass Record(Base):\n    x: int", False),
        ("class Record:\n    x: int", False),
    ],
)
def test_a_record_of_the_file_only_keeps_what_it_is_given(written: str, is_known: bool) -> None:
    imports = "from dataclasses import dataclass, field\nfrom typing import NamedTuple\n"
    module = SourceModule("/p.py", f"{imports}{written}\n\n\nvalue = Record(x=y)\n")
    found = {each.concern for each in remarks(module, module.tree.body[-1])}
    assert found == (set() if is_known else {"unknown"})
