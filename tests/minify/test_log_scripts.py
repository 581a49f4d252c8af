"""Scripts made from a log alone: repros of its breaks, and the program with what helps."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope import plugins
from compilescope.errors import ToolError
from compilescope.minify.logged.example import example_parts, taken_apart
from compilescope.minify.logged.fixed import fixed_script
from compilescope.minify.logged.repro import write_repro
from compilescope.model.bodies import GraphBreak
from compilescope.rules import breaks
from compilescope.rules.causes.remedy import config, source
from compilescope.rules.causes.rule import BreakRule
from compilescope.rules.sites import Site, break_sites

RULES = {rule.id: rule for rule in plugins.discover(breaks, "RULE", BreakRule)}
NOT_ONE_CALL = {"exception-in-finally"}
"""Rules whose examples are no single call of one compiled function."""


def site(rule: str, *, line: int = 3, code: str = "print(x)", **fields: object) -> Site:
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
def test_a_repro_breaks_with_eager(tmp_path: Path) -> None:
    made = write_repro(site("print-call"), tmp_path)
    assert made.verified and made.path == tmp_path / "gb0059_train_3.py"
    text = made.path.read_text()
    assert 'xr.set_device_type("TT" if' in text and "model.compile(backend=BACKEND)" in text
    assert f"{ROOT}/train.py:3" in text and "were not at hand" in text
    mended = tmp_path / "mended.py"
    mended.write_text(re.sub(r"^    print\(.*y\)$", "    pass", text, flags=re.M))
    done = subprocess.run([sys.executable, str(mended)], capture_output=True, text=True)
    assert done.returncode == 0 and "No graph break." in done.stdout


@pytest.mark.torch
def test_another_break_is_no_repro(tmp_path: Path) -> None:
    made = write_repro(site("print-call", gb_type="Something else"), tmp_path)
    assert made.path is None and not list(tmp_path.iterdir())


def test_no_example_is_said(tmp_path: Path) -> None:
    made = write_repro(site("no-such-rule"), tmp_path)
    assert made.path is None and "GB0059" in made.reason


SCRIPT = '''\
"""What it does."""
from __future__ import annotations
import torch
def f(x):
    y = x * 2
    print("y", y.shape)
    n = y.sum().item()
    print(n); print(y)
    return y / n
'''


def test_a_fixed_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    flag = config("`torch._dynamo.config.capture_scalar_outputs = True` keeps it.")
    made = fixed_script(
        script,
        [
            site("print-call", line=6, code='print("y", y.shape)'),
            site("scalar-extraction", line=7, code="n = y.sum().item()", remedy=(flag,)),
            site("print-call", line=8, code="print(n); print(y)", remedy=(source("Move it."),)),
        ],
    )
    ast.parse(made.text)
    assert made.text.startswith(
        '"""What it does."""\nfrom __future__ import annotations\n# Made by'
    )
    assert (
        "    if not _torch.compiler.is_compiling():\n"
        '        print("y", y.shape)\n    n = y.sum().item()\n    print(n); print(y)\n'
    ) in made.text
    assert "\ntorch._dynamo.config.capture_scalar_outputs = True\n" in made.text
    assert len(made.done) == 2 and made.left == ("train.py:8 GB0059: Move it.",)
    assert "# Not verified here" in made.text and script.read_text() == SCRIPT


def test_a_line_that_is_not_the_logs_is_not_touched(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    made = fixed_script(script, [site("print-call", line=6, code="print(other)")])
    assert "is_compiling" not in made.text and len(made.left) == 1


@pytest.mark.parametrize(("text", "words"), [("def f(:\n", "is not Python"), (None, "Cannot read")])
def test_a_script_that_cannot_be_read(tmp_path: Path, text: str | None, words: str) -> None:
    script = tmp_path / "train.py"
    if text is not None:
        script.write_text(text)
    with pytest.raises(ToolError, match=words):
        fixed_script(script, [])
