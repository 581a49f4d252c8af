"""Which statements a change touches, and which of them ran."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.change.repair.trials.child.line_watcher import read_lines
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.verification.changed_lines import (
    ChangedCode,
    changed_code,
    lines_to_watch,
    places_of,
)

BEFORE = '''"""Doc."""
import os


def f(x):
    """Says nothing."""
    y = (
        x
        + 1
    )
    if y > 2:
        y = y - 1
    return y


def g(x):
    return x


print(f(2))
'''


def _code(before: str, after: str) -> ChangedCode:
    old, new = Version({"/x.py": before}), Version({"/x.py": after})
    return changed_code(changes_between(old, new))


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("Doc.", "Other."),
        BEFORE.replace("Says nothing.", "Says it."),
        BEFORE.replace("print(f(2))", "# A comment.\nprint(f(2))  # Another."),
        BEFORE.replace("y = (\n        x\n        + 1\n    )", "y = x + 1"),
    ],
)
def test_what_is_no_change_of_code(after: str) -> None:
    assert _code(BEFORE, after).is_empty


def test_a_line_within_a_statement_is_the_statement() -> None:
    code = _code(BEFORE, BEFORE.replace("        + 1", "        + 2"))
    assert [(each.line, each.lines) for each in code.new] == [(7, frozenset(range(7, 11)))]


def test_a_header_counts_by_its_body() -> None:
    code = _code(BEFORE, BEFORE.replace("def g(x):", "def g(x, y=1):"))
    assert [each.lines for each in code.new] == [frozenset({17})]


def test_a_line_that_only_moves_into_a_block() -> None:
    code = _code("if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n")
    assert [each.source for each in code.new] == ["c()"]


def test_what_says_how_to_compile() -> None:
    code = _code("@torch.compile\ndef f(): pass\n", "@torch.compile(dynamic=True)\ndef f(): pass\n")
    assert all(each.is_about_compiling for each in (*code.old, *code.new))


def test_neighbours_are_told_together() -> None:
    code = _code("", "a = 1\nb = 2\n\n\nc = 3\n")
    assert places_of(code.new) == ["x.py:1-2", "x.py:5"]


def test_lines_that_run_are_noted_at_once(tmp_path: Path) -> None:
    """Also in a thread, in a forked process, and in a process that is killed."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys, threading\n"
        "def f():\n    return 1\n"
        "def g():\n    return 2\n"
        "def h():\n    return 3\n"
        "thread = threading.Thread(target=f)\nthread.start()\nthread.join()\n"
        "child = os.fork()\n"
        "if not child:\n    g()\n    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    start = (
        "import runpy, sys\nfrom pathlib import Path\n"
        "from compilescope.change.repair.trials.child.line_watcher import watch_lines\n"
        f"watch_lines(Path({str(tmp_path)!r}), {{{str(program)!r}: [3, 5, 7, 13]}})\n"
        f"runpy.run_path({str(program)!r})\n"
    )
    subprocess.run([sys.executable, "-c", start], check=False)
    found = read_lines(tmp_path)
    assert found == {(str(program), 3): False, (str(program), 5): False, (str(program), 13): False}
    code = _code("", program.read_text())
    assert lines_to_watch(code.new)["/x.py"] >= {3, 5, 7}
    assert not [each for each in code.new if each.line == 7 and each.ran(found)]
