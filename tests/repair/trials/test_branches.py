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

    from compilescope.repair.trials.child.branches import Coverage

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

    from compilescope.repair.trials.child.branches import Coverage

    file, f = _load(tmp_path)
    coverage = Coverage([])
    with coverage:
        f(torch.ones(3), True)
    assert {5, 6, 9} <= coverage.lines[file]
    assert 8 not in coverage.lines[file]
    assert not any("site-packages" in name for name in coverage.lines)


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
    ],
)
def test_a_check_that_never_failed_is_read(test: str, asked: str, verdict: str) -> None:
    from types import SimpleNamespace

    from compilescope.repair.trials.changes import changes_between
    from compilescope.repair.trials.value_checks import check_branches
    from compilescope.repair.trials.version import Version

    old = f"def f(x, n):\n    if {test}:\n        raise ValueError('no')\n    return x\n"
    new = f"def f(x, n):\n    torch._assert_async({asked}, 'no')\n    return x\n"
    branch = {"file": "/a.py", "line": 2, "column": 7, "sides": [False], "by_tensor": True}
    record = {"coverage": {"branches": [branch], "lines": {}}}
    before: Any = SimpleNamespace(probed=SimpleNamespace(record=record))
    changes = changes_between(Version({"/a.py": old}), Version({"/a.py": new}))
    (check,), notes = check_branches(before, changes)
    assert check.verdict == verdict, check.words
    assert (verdict == "pass") == any("was never true" in note for note in notes)
