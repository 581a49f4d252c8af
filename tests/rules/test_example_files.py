"""Example programs of rules and fixes: whose they are, and that each of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.plugins import discover, public_modules
from compilescope.change.fixes import breaks as break_fixes
from compilescope.change.fixes import recompiles as recompile_fixes
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.knowledge.rules import breaks, programs, recompiles
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule, ProgramRule
from compilescope.knowledge.source.examples import (
    Example,
    RefusalExample,
    read_examples,
    read_refusals,
)

PACKAGES = [breaks, recompiles, programs, break_fixes, recompile_fixes]
FILES = [
    path
    for package in PACKAGES
    for path in sorted((Path(package.__path__[0]) / "examples").rglob("*"))
    if path.is_file() and path.suffix != ".pyc"
]


def test_each_file_is_an_example_of_a_rule_or_fix() -> None:
    """A misspelt folder, or `bad_3.py` without `bad_2.py`, would be read by nobody."""
    rules = [
        *discover(breaks, "RULE", BreakRule),
        *discover(recompiles, "RULE", GuardRule),
        *discover(programs, "RULE", ProgramRule),
    ]
    examples = [each for rule in rules for each in rule.examples]
    examples += [each for fix in all_fixes() for each in fix.examples]
    refusals = [each for fix in all_fixes() for each in fix.refusals]
    known = {each.bad for each in examples} | {each.good for each in examples}
    known |= {each.program for each in refusals}
    for path in FILES:
        assert _program(path) in known, path


def _program(path: Path) -> str:
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#: "))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_examples_are_no_member_of_their_package(package: object) -> None:
    assert "examples" not in public_modules(package)


def test_examples_are_python() -> None:
    assert len(FILES) > 300
    for path in FILES:
        compile(path.read_text(), str(path), "exec", dont_inherit=True)


def test_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("#: note: why\n# kept\nf()\n")
    (tmp_path / "good.py").write_text("#: changes: more\ng()\n")
    (tmp_path / "bad_2.py").write_bytes(b"f('\xc3\xa9')\r\n")
    (tmp_path / "refused.py").write_text("#: because: of: this\nh()\n")
    assert read_examples(tmp_path) == (
        Example("# kept\nf()\n", "g()\n", changes="more", note="why"),
        Example("f('é')\r\n"),
    )
    assert read_refusals(tmp_path) == (RefusalExample("h()\n", because="of: this"),)
    assert read_examples(tmp_path / "none") == ()
