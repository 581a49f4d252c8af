"""What a call passes for a guard's value, and where a line can go before it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import libcst as cst
import pytest

from compilescope.change.fixes.arguments.calls import CallSite, hoisted, is_plain, statement_before
from compilescope.change.fixes.arguments.edits import (
    _given,
    function_at,
    operand,
    split_name,
    split_subject,
)
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.compilation.switches import _test_before
from compilescope.change.fixes.recompiles.first_call_eager import _is_prepared
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from fixes.repertoire import subjects


def site(text: str, callee: str = "f") -> CallSite:
    module = SourceModule("/program.py", text)
    calls = [node for node in module.walk() if isinstance(node, cst.Call)]
    return CallSite(module, next(each for each in calls if module.code(each.func) == callee))


@pytest.mark.parametrize(
    ("call", "name", "place", "found"),
    [
        ("f(a, b)", "x", 1, "b"),
        ("f(a, x=b + 1)", "x", 1, "b + 1"),
        ("f(a, *rest)", "x", 2, "rest[1]"),
        ("f(**batch)", "x", 0, 'batch["x"]'),
        ("f(a, **batch)", "x", 1, 'batch["x"]'),
    ],
)
def test_arguments(call: str, name: str, place: int, found: str) -> None:
    given = _given(site(call + "\n"), name, place, "")
    assert (given.starred or cst.Module([]).code_for_node(given.arg.value)) == found


def test_what_is_not_passed() -> None:
    with pytest.raises(Refused, match="does not pass `x`"):
        _given(site("f(a)\n"), "x", 1, "")


@pytest.mark.parametrize(
    ("value", "split"),
    [("x", ("x", "")), ("batch['a'][0]", ("batch", "['a'][0]")), ("a.b", ("a", ".b"))],
)
def test_subjects(value: str, split: tuple[str, str]) -> None:
    assert split_subject(value) == split


@pytest.mark.parametrize("value", ["0.1", "", "..."])
def test_a_guard_on_what_has_no_name(value: str) -> None:
    """Anyone may have written the run: nothing that compiled code changes is called that."""
    nobody_asked = cast(Subject, None)
    assert not _is_prepared(nobody_asked, value)


@pytest.mark.parametrize("value", ["G['COUNT']", "self.step", "___stack0", "m._modules['a'].n"])
def test_subjects_that_are_not_passed(value: str) -> None:
    with pytest.raises(Refused):
        split_subject(value)


def test_names_for_arguments() -> None:
    assert split_name("kwargs['input_ids']") == "input_ids"
    assert split_name("x") == "x"
    assert [operand(text) for text in ("x", "a + b", "(a + b)", "f(x)")] == [
        "x",
        "(a + b)",
        "(a + b)",
        "f(x)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "y = [f(x) for x in xs]\n",
        "g = lambda x: f(x)\n",
        "y = f(x) if a else b\n",
        "y = a and f(x)\n",
        "while f(x):\n    pass\n",
        "if a:\n    pass\nelif f(x):\n    pass\n",
        "if a: f(x)\n",
    ],
)
def test_no_place_before(text: str) -> None:
    with pytest.raises(Refused):
        statement_before(site(text))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("y = f(make())\n", "x = make()\ny = f(x)\n"),
        ("if f(make()):\n    pass\n", "x = make()\nif f(x):\n    pass\n"),
        ("x = 1\nf(make())\n", "x = 1\nx_2 = make()\nf(x_2)\n"),
        ("def g():\n    return f(make())\n", "def g():\n    x = make()\n    return f(x)\n"),
    ],
)
def test_an_argument_gets_a_name(text: str, after: str) -> None:
    found = site(text)
    edit = Edit(found.module)
    hoisted(edit, found, found.call.args[0], "x")
    assert edit.text() == after


@pytest.mark.parametrize("text", ["y = g() + f(make())\n", "f(first(), make())\n"])
def test_order_is_kept(text: str) -> None:
    found = site(text)
    with pytest.raises(Refused):
        hoisted(Edit(found.module), found, found.call.args[-1], "x")


def test_plain_values() -> None:
    plain = {text: is_plain(cst.parse_expression(text)) for text in ("x", "a.b[0]", "a['k']")}
    assert all(plain.values())
    assert not any(is_plain(cst.parse_expression(text)) for text in ("f()", "a[f()]", "a + b"))


def test_functions_by_their_line() -> None:
    text = "@deco\n@other(1)\ndef f(x):\n    return x\n\n\ng = lambda y: y\n"
    module = SourceModule("/program.py", text)
    assert isinstance(function_at(module, 1, "f"), cst.FunctionDef)
    assert isinstance(function_at(module, 3, "f"), cst.FunctionDef)
    assert isinstance(function_at(module, 7, "<lambda>"), cst.Lambda)
    assert function_at(module, 2, "g") is None


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("def f(self):\n    if self.x is None:\n        work()\n", 3, "self.x is None"),
        (
            "def f(self):\n    if not hasattr(self, 'x'):\n        work()\n",
            3,
            "not hasattr(self, 'x')",
        ),
        ("def f(m):\n    if m._installed:\n        return\n    work()\n", 4, "m._installed"),
        ("def f(m):\n    if k not in m:\n        with a:\n            work()\n", 4, "k not in m"),
        ("def f(x):\n    if x is None:\n        work()\n", 3, None),
        ("def f(x):\n    if x.any():\n        return\n    work()\n", 4, None),
        ("if cache is None:\n    pass\ndef f(x):\n    work()\n", 4, None),
    ],
)
def test_what_runs_once(text: str, line: int, found: str | None) -> None:
    module = SourceModule("/program.py", text)
    test = _test_before(module, line)
    assert (module.code(test) if test is not None else None) == found


@pytest.mark.torch
def test_nothing_is_marked_inside_of_compiled_code(tmp_path: Path) -> None:
    """Dynamo forbids `maybe_mark_dynamic` there: only the call from outside gets one."""
    text = """import torch


@torch.compile(backend="eager")
def inner(x):
    return x * 2


@torch.compile(backend="eager")
def outer(x):
    print("on the way")
    return inner(x)


for size in (3, 5, 7):
    outer(torch.ones(size))
"""
    found = [each for each in subjects(tmp_path, text) if "recompile/size-change" in each.keys]
    assert found
    fix = next(each for each in all_fixes() if each.id == "mark-dynamic")
    for subject in found:
        try:
            (new,) = fix.propose(subject.meant_for(fix.rules)).files.values()
        except Refused:
            continue
        assert "mark_dynamic" not in new[: new.index("for size")]
