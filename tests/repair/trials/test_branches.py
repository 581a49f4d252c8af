"""Which sides of branches an eager call takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

_SOURCE = """
import torch

def f(x, flag):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    z = y if (flag and y.max() > 3) else -y
    while z.sum() > 100:
        z = z / 2
    with torch.no_grad():
        z = z * 2
    if flag is None:
        return z
    return [a for a in (1, 2) if a > 1]
"""


def _load(tmp_path: Path) -> tuple[str, Any]:
    file = tmp_path / "program.py"
    file.write_text(_SOURCE)
    scope: dict[str, Any] = {}
    exec(compile(_SOURCE, str(file), "exec"), scope)
    return str(file), scope["f"]


def test_sides_and_who_decides(tmp_path: Path) -> None:
    import torch

    from compilescope.change.repair.trials.child.branches import Coverage

    _, f = _load(tmp_path)
    coverage = Coverage([])
    with coverage:
        f(torch.ones(3), True)
    first = {branch.line: branch for _, branch in coverage.branches()}
    assert first[5].sides == {True}
    assert first[5].by_tensor
    assert first[10].sides == {False}
    assert first[14].sides == {False}
    assert not first[14].by_tensor
    assert 12 not in first  # A `with` is no branch.
    seen = coverage.sides
    with coverage:
        f(-torch.ones(3) * 90, None)
    assert coverage.sides > seen
    again = {branch.line: branch for _, branch in coverage.branches()}
    assert again[5].sides == {True, False}
    assert again[14].sides == {True, False}
    assert sys.gettrace() is None or "Coverage" not in repr(sys.gettrace())


def test_lines_of_the_users_files_only(tmp_path: Path) -> None:
    import torch

    from compilescope.change.repair.trials.child.branches import Coverage

    file, f = _load(tmp_path)
    coverage = Coverage([])
    with coverage:
        f(torch.ones(3), True)
    assert {5, 6, 9} <= coverage.lines[file]
    assert 8 not in coverage.lines[file]
    assert not any("site-packages" in name for name in coverage.lines)


def test_jumps_over_much_code_are_seen(tmp_path: Path) -> None:
    """Their instructions need a prefix for the distance."""
    from compilescope.change.repair.trials.child.branches import Coverage

    many = "".join(f"        x = x * {n} + len(str(x))\n" for n in range(60))
    source = f"def f(x, flag):\n    if flag > 0:\n{many}    else:\n{many}    return x\n"
    file = str(tmp_path / "long.py")
    scope: dict[str, Any] = {}
    exec(compile(source, file, "exec"), scope)
    coverage = Coverage([file])
    for flag in (1, 0):
        with coverage:
            scope["f"](0, flag)
        (branch,) = (each for _, each in coverage.branches())
        assert branch.sides == ({True} if flag else {True, False})


_FLAGGED = """
def f(x, mask, shown):
    flag = {0}
    if flag:
        x = x + 1
    return x
"""


@pytest.mark.parametrize(
    "read", ["mask.any().item()", "bool(mask.any())", "mask.sum().item() > 0", "len(mask) > 0"]
)
@pytest.mark.parametrize("settled", ["True", "not shown or {0}", "{0} or shown"])
def test_a_flag_that_is_set_always_was_true_and_false(
    tmp_path: Path, read: str, settled: str
) -> None:
    from types import SimpleNamespace

    import torch

    from compilescope.change.repair.trials.child.branches import Coverage
    from compilescope.change.repair.trials.child.prober import _described
    from compilescope.change.repair.trials.value_checks import check_branches
    from compilescope.change.repair.trials.version import Version, changes_between

    old, new = _FLAGGED.format(read), _FLAGGED.format(settled.format(read))
    file = str(tmp_path / "flagged.py")
    scope: dict[str, Any] = {}
    exec(compile(old, file, "exec"), scope)
    changes = changes_between(Version({file: old}), Version({file: new}))
    coverage = Coverage([file])
    for mask in (torch.ones(2, dtype=torch.bool), torch.zeros(0, dtype=torch.bool)):
        with coverage:
            scope["f"](1, mask, False)
        record = {"coverage": _described(coverage)}
        before: Any = SimpleNamespace(probed=SimpleNamespace(record=record, collective=False))
        (check,), _ = check_branches(before, changes)
        unknown = len(mask) and not settled.endswith("or shown")
        assert check.verdict == ("unknown" if unknown else "pass"), check.words
        assert ("was never false" in check.words) == bool(unknown)


@pytest.mark.parametrize(
    ("test", "asked", "verdict"),
    [
        ("x.sum() != n", "~(x.sum() != n)", "pass"),
        ("not (x > n).all()", "(x > n).all()", "pass"),
        # Where x is NaN, neither is true.
        ("x.sum() > n", "x.sum() <= n", "unknown"),
        # Of whole numbers, `~1` is -2, which is true.
        ("x.sum()", "~x.sum()", "unknown"),
        ("x.sum() != n", "~(x.sum() != n + 1)", "unknown"),
        ("torch.isnan(x).any()", "~torch.isnan(x).any()", "pass"),
        ("(x.isinf() | ~(x > n)).any()", "~(x.isinf() | ~(x > n)).any()", "pass"),
        # Bytes that are any of them set give a byte, and `~1` is 254.
        ("x.any()", "~x.any()", "unknown"),
        ("n.isnan(x)", "~n.isnan(x)", "unknown"),
    ],
)
def test_a_check_that_never_failed_is_read(test: str, asked: str, verdict: str) -> None:
    from types import SimpleNamespace

    from compilescope.change.repair.trials.value_checks import check_branches
    from compilescope.change.repair.trials.version import Version, changes_between

    old = f"def f(x, n):\n    if {test}:\n        raise ValueError('no')\n    return x\n"
    new = f"def f(x, n):\n    torch._assert_async({asked}, 'no')\n    return x\n"
    # Python asks what stands after the `not`.
    asked_at, was = (11, True) if test.startswith("not ") else (7, False)
    branch = {"file": "/a.py", "line": 2, "column": asked_at, "sides": [was], "by_tensor": True}
    record = {"coverage": {"branches": [branch], "lines": {}}}
    before: Any = SimpleNamespace(probed=SimpleNamespace(record=record, collective=False))
    changes = changes_between(Version({"/a.py": old}), Version({"/a.py": new}))
    (check,), notes = check_branches(before, changes)
    assert check.verdict == verdict, check.words
    assert (verdict == "pass") == any("was never true" in note for note in notes)


@pytest.mark.parametrize(
    ("test", "was", "asked", "verdict"),
    [
        ("torch.isfinite(x).all()", True, "torch.isfinite(x).all()", "pass"),
        ("not x.isnan().any()", False, "~x.isnan().any()", "pass"),
        ("not x.any()", False, "~x.any()", "unknown"),
        ("x.sum() > n", True, "x.sum() >= n", "unknown"),
        ("x.sum() > n", False, "x.sum() > n", "unknown"),
    ],
)
def test_an_assert_that_never_failed_is_read(
    test: str, was: bool, asked: str, verdict: str
) -> None:
    from types import SimpleNamespace

    from compilescope.change.repair.trials.value_checks import check_branches
    from compilescope.change.repair.trials.version import Version, changes_between

    old = f"def f(x, n):\n    assert {test}, 'no'\n    return x\n"
    new = f"def f(x, n):\n    torch._assert_async({asked}, 'no')\n    return x\n"
    asked_at = 15 if test.startswith("not ") else 11
    branch = {"file": "/a.py", "line": 2, "column": asked_at, "sides": [was], "by_tensor": True}
    record = {"coverage": {"branches": [branch], "lines": {}}}
    before: Any = SimpleNamespace(probed=SimpleNamespace(record=record, collective=False))
    changes = changes_between(Version({"/a.py": old}), Version({"/a.py": new}))
    (check,), _ = check_branches(before, changes)
    assert check.verdict == verdict, check.words


def test_parts_of_a_condition_are_told_apart(tmp_path: Path) -> None:
    import torch

    from compilescope.change.repair.trials.child.branches import Coverage

    source = (
        "def f(x, flag):\n    if flag and (\n        x.isinf().any() or x.isnan().any()\n    ):\n"
        "        x = -x\n    y = x.sum() or flag or x.max()\n    return y\n"
    )
    scope: dict[str, Any] = {}
    exec(compile(source, str(tmp_path / "parts.py"), "exec"), scope)
    coverage = Coverage([])
    with coverage:
        scope["f"](torch.ones(3), True)
    found = {(branch.line, branch.column): branch for _, branch in coverage.branches()}
    if sys.version_info < (3, 11):  # No columns: no two jumps are taken for one.
        assert len(coverage.branches()) == 5
        return
    # It was true that there is a flag, and false that there is NaN: the whole was never true.
    sides = {place: branch.sides for place, branch in found.items()}
    assert sides == {
        (2, 7): {True},
        (3, 8): {False},
        (3, 27): {False},
        (6, 8): {True},
        (6, 19): set(),
    }
    assert not found[2, 7].by_tensor and found[3, 27].by_tensor


@pytest.mark.parametrize(
    ("first", "last", "replaced", "verdict"),
    [
        ([False], [False, True], "x.isinf().any() | x.isnan().any()", "pass"),
        ([False], [False], "x.isinf().any() | x.isnan().any()", "unknown"),
        # A part was left out, and nothing was seen in which it mattered.
        ([False], [False, True], "x.isnan().any()", "unknown"),
        ([False], [False, True], "x.isinf().any() & x.isnan().any()", "unknown"),
    ],
)
def test_a_part_that_was_never_true(
    first: list[bool], last: list[bool], replaced: str, verdict: str
) -> None:
    from types import SimpleNamespace

    from compilescope.change.repair.trials.value_checks import check_branches
    from compilescope.change.repair.trials.version import Version, changes_between

    old = "def f(x):\n    if x.isinf().any() or x.isnan().any():\n        x = -x\n    return x\n"
    new = f"def f(x):\n    x = torch.where({replaced}, -x, x)\n    return x\n"
    places = ((7, first), (26, last))
    branches = [
        {"file": "/a.py", "line": 2, "column": column, "sides": sides, "by_tensor": True}
        for column, sides in places
    ]
    record = {"coverage": {"branches": branches, "lines": {}}}
    before: Any = SimpleNamespace(probed=SimpleNamespace(record=record, collective=False))
    changes = changes_between(Version({"/a.py": old}), Version({"/a.py": new}))
    (check,), _ = check_branches(before, changes)
    assert check.verdict == verdict, check.words


@pytest.mark.parametrize(
    ("test", "arguments", "verdict"),
    [
        # The body ran, and the patch leaves alone what did not.
        ("not flag", (False, 1), "pass"),
        ("flag", (True, 1), "pass"),
        ("other is not None", (True, 1), "pass"),
        ("not (flag and other is None)", (True, 1), "pass"),
        # The body, which the patch changes, never ran.
        ("not flag", (True, 1), "unknown"),
        ("flag", (False, 1), "unknown"),
        ("other is not None", (True, None), "unknown"),
        ("other is None", (True, 1), "unknown"),
    ],
)
def test_a_side_that_never_ran_is_known_as_it_is_written(
    tmp_path: Path, test: str, arguments: tuple[Any, ...], verdict: str
) -> None:
    from types import SimpleNamespace

    from compilescope.change.repair.trials.child.branches import Coverage
    from compilescope.change.repair.trials.child.prober import _described
    from compilescope.change.repair.trials.value_checks import check_branches
    from compilescope.change.repair.trials.version import Version, changes_between

    old = f"def f(x, flag, other):\n    if {test}:\n        x = x + 1\n    return x\n"
    new = old.replace(f"if {test}:", f"if bool({test}):").replace("x + 1", "x - -1")
    file = str(tmp_path / "sides.py")
    scope: dict[str, Any] = {}
    exec(compile(old, file, "exec"), scope)
    coverage = Coverage([file])
    with coverage:
        scope["f"](1, *arguments)
    record = {"coverage": _described(coverage)}
    before: Any = SimpleNamespace(probed=SimpleNamespace(record=record, collective=False))
    changes = changes_between(Version({file: old}), Version({file: new}))
    (check,), _ = check_branches(before, changes)
    assert check.verdict == verdict, check.words
