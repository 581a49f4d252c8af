"""A script with fixes for what a log of it tells: proposed, and honest about being unproven."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.errors import ToolError
from compilescope.fixes.unproven import propose_unproven
from compilescope.model.bodies import GraphBreak
from compilescope.model.run import Run

SCRIPT = '''\
"""What it does."""
from __future__ import annotations
import torch
@torch.compile
def f(x):
    y = x * 2
    print("y", y.shape)
    done = print(y) or y
    return y
'''


def logged(*lines: tuple[int, str]) -> Run:
    """A log of prints at these lines, on a machine where the script has another path."""
    events = []
    for number, (line, source) in enumerate(lines, 1):
        body = GraphBreak(
            "Failed to trace builtin operator",
            gb_id="GB0059",
            context="builtin print []",
            explanation="Dynamo does not know how to trace builtin operator `print`",
        )
        where = frame(
            line, file=f"{ROOT}/train.py", function="f", source=source, column=None, end_column=None
        )
        events.append(event(body, number=number, stack=(where,)))
    return run_of(*events)


def written(folder: Path) -> Path:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    return script


def test_what_fits_is_written_and_what_does_not_is_listed(tmp_path: Path) -> None:
    script = written(tmp_path)
    run = logged((7, '    print("y", y.shape)'), (8, "    done = print(y) or y"))
    made = propose_unproven(script, run)
    ast.parse(made.text)
    assert made.text.startswith(
        '"""What it does."""\nfrom __future__ import annotations\n# Made by'
    )
    assert "# Not verified:" in made.text
    assert len(made.done) == 1 and made.done[0].startswith("train.py:7 GB0059: ")
    assert len(made.left) == 1 and made.left[0].startswith("train.py:8 GB0059: ")
    assert "    done = print(y) or y\n" in made.text
    assert script.read_text() == SCRIPT


def test_a_line_that_is_not_the_logs_is_not_touched(tmp_path: Path) -> None:
    made = propose_unproven(written(tmp_path), logged((7, "    print(other)")))
    assert '\n    print("y", y.shape)\n' in made.text
    assert len(made.left) == 1


@pytest.mark.parametrize("text", ["def f(:\n", None])
def test_a_script_that_cannot_be_read(tmp_path: Path, text: str | None) -> None:
    script = tmp_path / "train.py"
    if text is not None:
        script.write_text(text)
    with pytest.raises(ToolError, match="Cannot change"):
        propose_unproven(script, logged())
