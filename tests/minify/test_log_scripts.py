"""Scripts made from a log alone: repros of its breaks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope.base import plugins
from compilescope.change.minify.logged_repros import example_parts, taken_apart, write_stock_repro
from compilescope.knowledge.findings.breaks import BreakFinding, break_sites
from compilescope.knowledge.rules import breaks
from compilescope.knowledge.rules.causes.rule import BreakRule
from compilescope.record.bodies import GraphBreak

RULES = {rule.id: rule for rule in plugins.discover(breaks, "RULE", BreakRule)}
NOT_ONE_CALL = {"exception-in-finally", "own-raise"}
"""Rules whose examples are no single call of one compiled function."""


def site(rule: str, *, line: int = 3, code: str = "print(x)", **fields: object) -> BreakFinding:
    body = GraphBreak("Failed to trace builtin operator", gb_id="GB0059")
    where = frame(line, file=f"{ROOT}/train.py", source=f"    {code}")
    (found,) = break_sites(run_of(event(body, number=1, stack=(where,))))
    return msgspec.structs.replace(found, rule=rule, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", sorted(set(RULES) - NOT_ONE_CALL))
def test_examples_come_apart(rule: str) -> None:
    for parts in example_parts(rule):
        ast.parse(parts.prelude)
        ast.parse(f"({parts.compiled})({parts.arguments})")
    assert example_parts(rule)


def test_a_program_of_another_form_is_left_alone() -> None:
    assert taken_apart("import torch\nprint(1)\n") is None


@pytest.mark.torch
@pytest.mark.slow
def test_a_repro_breaks_with_eager(tmp_path: Path) -> None:
    made = write_stock_repro(site("print-call"), tmp_path)
    assert made.verified and made.path == tmp_path / "gb0059_train_3.py"
    text = made.path.read_text()
    assert 'xr.set_device_type("TT" if' in text and "model.compile(backend=BACKEND)" in text
    assert f"{ROOT}/train.py:3" in text and "were not available" in text
    mended = tmp_path / "mended.py"
    mended.write_text(re.sub(r"^    print\(.*y\)$", "    pass", text, flags=re.M))
    done = subprocess.run([sys.executable, str(mended)], capture_output=True, text=True)
    assert done.returncode == 0 and "The graph break is fixed" in done.stderr


@pytest.mark.slow
@pytest.mark.torch
def test_another_break_is_no_repro(tmp_path: Path) -> None:
    made = write_stock_repro(site("print-call", gb_type="Something else"), tmp_path)
    assert made.path is None and not list(tmp_path.iterdir())


def test_no_example_is_said(tmp_path: Path) -> None:
    made = write_stock_repro(site("no-such-rule"), tmp_path)
    assert made.path is None and "GB0059" in made.reason
