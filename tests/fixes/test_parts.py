"""A function in parts does what it did, whatever line stays outside."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from compilescope.change.fixes.statements.parts import FunctionParts
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

FUNCTIONS = {
    "plain": """
        def f(x, y):
            a = abs(x) + y
            b = max(a, y) * 2
            note(b)
            c = min(a, b) - x
            d = abs(c - b)
            return a + b * c - d
    """,
    "early_return": """
        def f(x, y):
            a = abs(x) * y
            if a > 6:
                note("large")
                return max(a, 3) + min(x, y)
            b = abs(a - 1) + x
            note(b)
            return abs(b) + y
    """,
    "bound_on_one_side": """
        def f(x, y):
            a = abs(x) + 1
            if y > 2:
                b = max(x, y) + a
            note(a)
            a = abs(a - 5) + 1
            if y > 2:
                a = a + abs(b)
            return abs(a) * 2
    """,
    "loops": """
        def f(x, y):
            total, seen = 0, []
            for i in range(abs(x) + 2):
                step = abs(i - y) + max(i, 1)
                total = total + step * 2
                seen.append(step)
                if step > 4:
                    note(step)
                    continue
                total = total + min(step, abs(y))
            else:
                total = total + abs(len(seen))
            while total > 20:
                total = total - abs(y) - 3
                note(total)
            return total + sum(seen)
    """,
    "carried_by_the_loop": """
        def f(x, y):
            last = None
            for i in range(4):
                if last is not None:
                    note(last)
                    y = y + abs(last)
                last = abs(x - i) + max(i, y)
            return last * 2 + abs(y)
    """,
    "with_and_try": """
        def f(x, y):
            with entered(x) as inner:
                a = abs(inner) + max(y, 1)
                note(a)
                b = abs(a - 3) * 2
            try:
                c = 10 // abs(y) + max(b, 1)
                note(c)
            except ZeroDivisionError:
                c = abs(b) + max(a, 2)
            return a + b + abs(c)
    """,
    "nested": """
        def f(x, y, *rest, scale=2, **named):
            def inner(z):
                return abs(z) + scale
            a = inner(x) + inner(y)
            note(a)
            b = [inner(each) + a for each in (*rest, x)]
            c = sum(b) + abs(len(named))
            scale = abs(c - 4)
            return c + inner(scale) * 2
    """,
    "tuples_and_walrus": """
        def f(x, y):
            (a, b), c = (abs(x), abs(y)), max(x, y)
            if (d := abs(a - b)) > 1:
                note(d)
                a, b = b + abs(d), a + abs(c)
            e = d * 2 + abs(a)
            a += e + abs(b)
            note(a)
            a -= abs(c) + 1
            return a, b, c, d, e
    """,
    "deleted": """
        def f(x, y):
            a = abs(x) + abs(y)
            b = max(a, 2) * 3
            del a
            note(b)
            a = abs(b - 4) + 1
            return a + max(b, 1)
    """,
    "method": """
        class C:
            def __init__(self):
                self.kept = []
            def helper(self, x):
                return abs(x) + 1
            def f(self, x, y):
                a = self.helper(x) + abs(y)
                self.kept.append(a)
                b = self.helper(a) * 2
                note(len(self.kept))
                self.kept.append(b)
                return self.helper(b) + sum(self.kept)
        def f(x, y):
            return C().f(x, y)
    """,
}


class Entered:
    def __init__(self, value: int) -> None:
        self.value = value

    def __enter__(self) -> int:
        return self.value + 1

    def __exit__(self, *why: object) -> None:
        pass


def outcome(text: str, x: int, y: int) -> tuple[Any, list[Any]]:
    noted: list[Any] = []
    space: dict[str, Any] = {"note": noted.append, "entered": Entered, "leave": lambda f: f}
    exec(compile(text, "program.py", "exec"), space)
    try:
        result = space["f"](x, y)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return result, noted


def in_parts(text: str, lines: set[int]) -> str:
    module = SourceModule("/program.py", text)
    functions = [each for each in module.walk() if isinstance(each, cst.FunctionDef)]
    inside = [
        each for each in functions if each.name.value == "f" and "note" in module.code(each.body)
    ]
    edit = Edit(module)
    FunctionParts(edit, inside[0], lines).write(cst.Decorator(cst.Name("leave")))
    return edit.text()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_does_what_it_did(name: str) -> None:
    text = textwrap.dedent(FUNCTIONS[name]).strip() + "\n"
    many = 0
    lines = text.splitlines()
    noting = {number for number, line in enumerate(lines, 1) if "note" in line}
    for lost in [noting, *({number} for number in range(2, len(lines) + 1))]:
        try:
            changed = in_parts(text, lost)
        except Refused:
            continue
        many += 1
        for x, y in ((3, -4), (0, 0), (-7, 5), (2, 9)):
            assert outcome(changed, x, y) == outcome(text, x, y), (lost, changed)
    assert many > 2


@pytest.mark.parametrize(
    "body",
    ["yield abs(x) + max(x, 1)", "global counted\n    counted = abs(x) + max(x, 1)\n    note(x)"],
)
def test_what_only_the_function_can_do_is_left_to_it(body: str) -> None:
    with pytest.raises(Refused):
        in_parts(f"def f(x, y):\n    {body}\n    note(y)\n", {99})


@pytest.mark.parametrize("kind", ["staticmethod", "classmethod"])
def test_methods_of_the_class_stay_whole(kind: str) -> None:
    body = "def f(x, y):\n        a = abs(x) + max(x, y)\n        note(a)\n"
    text = f"class C:\n    @{kind}\n    {body}"
    with pytest.raises(Refused):
        in_parts(text, {5})


def test_what_counts_stays_outside() -> None:
    """A graph would be made for one count alone."""
    text = textwrap.dedent("""
        class C:
            def f(self, x, y):
                self.calls += 1
                a = abs(x) + max(x, y)
                self.seen.append(a)
                b = abs(a) * 2
                note(b)
                return b + max(a, y)
        """).strip()
    shell = in_parts(f"{text}\n", {7}).partition("    @leave\n")[2]
    assert "self.calls += 1" in shell and "self.seen.append(a)" in shell
    assert "abs(" not in shell
