"""What of a change was seen at work: statements that ran, conditions that came to both answers."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from compilescope.change.repair.trials.child import truths
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.verification.changed_lines import changed_code
from compilescope.change.repair.verification.seen_code import (
    numbers_in,
    one_sided,
    unseen_statement,
    unseen_tie,
)

OLD = "def f(x, n):\n    if x > n:\n        x = n\n    return x\n\n\ny = f(1, 2)\n"
FILE = "/w/m.py"


def _changes(new: str) -> Any:
    return changes_between(Version({FILE: OLD}), Version({FILE: new}))


def _asked(new: str, *calls: tuple[Any, ...]) -> str:
    """What is not seen of `f` when it is called so."""
    changes = _changes(new)
    truths._seen.clear()
    truths._ties.clear()
    lines = range(1, new.count("\n") + 2)
    code = compile(truths.note_truths(ast.parse(new), FILE, lines), FILE, "exec")
    space: dict[str, Any] = {}
    exec(code, space)
    with truths.listening():
        for call in calls:
            assert space["f"](*call) == _plain(new)(*call), "it does what it did"
    return one_sided(changes, truths.truths()) or unseen_tie(changes, truths.ties())


def _plain(text: str) -> Any:
    space: dict[str, Any] = {}
    exec(text, space)
    return space["f"]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("old", "new", "calls", "words"),
    [
        ("x > n:", "x > n and n < 9:", [(1, 2), (3, 2)], "`n < 9` on line 2 of m.py was never fal"),
        ("x = n\n", "x = n if n else 7\n", [(1, 2), (3, 2)], "`n` on line 3 of m.py was never fal"),
        ("return x", "return x + 0 * (x == 5)", [(1, 2)], "was never true"),
        ("return x", "return x + 0 * (x == 5)", [(1, 2), (5, 9)], ""),
        ("x > n:", "x >= n:", [(1, 2), (3, 2)], "both sides of `x >= n` on line 2 of m.py were ne"),
        ("x > n:", "x >= n:", [(1, 2), (3, 2), (2, 2)], ""),
        ("x > n:", "n < x:", [(1, 2), (3, 2)], ""),
        ("x > n:", "x + 0 > n:", [(1, 2), (3, 2)], ""),
        ("x > n:", "x > 2.5:", [(1, 2), (3, 2)], "never equal"),
        ("return x", "return [x, 0][isinstance(x, str)]", [(1, 2)], "`isinstance(x, str)` on line"),
    ],
)
def test_a_condition_of_the_change_has_to_be_both(
    old: str, new: str, calls: list[tuple[Any, ...]], words: str
) -> None:
    found = _asked(OLD.replace(old, new), *calls)
    assert words in found and bool(words) == bool(found)


@pytest.mark.parametrize(
    ("new", "replayed", "words"),
    [
        (OLD.replace("return x", "return x * 1"), (4,), ""),
        (OLD.replace("return x", "return x * 1"), (), "never ran in a call that was compared"),
        (f"{OLD}TABLE = [1, 2]\n", (), ""),
        (f"{OLD}y = 3\n", (), "never ran"),
        (f"{OLD}z = y.pop()\n", (), "never ran"),
        (f"import math\n{OLD}", (), ""),
        (f'{OLD}print("y", y, flush=True)\n', (), ""),
        (f'{OLD}print("y", file=None)\n', (), "never ran"),
        (f"{OLD}for each in ():\n    print(each)\n", (), "never ran"),
    ],
)
def test_a_statement_of_the_change_has_to_run(
    new: str, replayed: tuple[int, ...], words: str
) -> None:
    changes = _changes(new)
    code = changed_code(changes)
    found = unseen_statement(changes, code.new, {}, {FILE: replayed}, is_new=True)
    assert words in found and bool(words) == bool(found)


def test_what_it_takes_away_from_outside_of_compiled_code_is_not_seen() -> None:
    changes = _changes(OLD.replace("y = f(1, 2)\n", ""))
    code = changed_code(changes)
    found = unseen_statement(changes, code.old, {(FILE, 7): False}, {}, is_new=False)
    assert "runs where only output would show what it does" in found


def test_the_numbers_of_a_change() -> None:
    found = numbers_in(_changes(OLD.replace("return x", "return x * 40 + 1 - 2.5")))
    assert sorted(found) == [2.5, 40.0]
