"""What is said of a program: its examples get it, and what it says makes them whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.findings.finding import Finding
from compilescope.front import Capture
from compilescope.plugins import discover
from compilescope.rules import programs
from compilescope.rules.causes import explanations
from compilescope.rules.causes.rule import ProgramRule
from compilescope.source.examples import Example
from rules.test_rules import name, play

pytestmark = pytest.mark.torch

RULES = discover(programs, "RULE", ProgramRule)
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]
REMEDIED = [(rule, example) for rule, example in EXAMPLES if example.good]


def causes(run: Capture) -> list[Finding]:
    recompiles = [cause for frame in run.recompiles for cause in frame.causes]
    return [*run.failures, *run.breaks, *recompiles]


def said(run: Capture) -> list[str]:
    """What is said of the program, each once."""
    remedies = [remedy for cause in causes(run) for remedy in cause.remedy]
    return list(dict.fromkeys(each.text for each in remedies if each.kind == "program"))


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=name)
def test_a_program_gets_the_words_of_its_rule(
    rule: ProgramRule, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "_PROGRAM_RULES", [rule])
    run, _ = play(example.bad, tmp_path)
    words = said(run)
    assert words, [cause.title for cause in causes(run)]
    for text in words:
        assert text.endswith(".") and "\n" not in text
        assert text.count("`") % 2 == 0
        assert "recompile_limit" not in text
    first = [cause for cause in causes(run) if any(r.text in words for r in cause.remedy)]
    assert all(cause.remedy[0].kind == "program" for cause in first)


@pytest.mark.parametrize(("rule", "example"), REMEDIED, ids=name)
def test_what_it_says_helps_and_changes_nothing_else(
    rule: ProgramRule, example: Example, tmp_path: Path
) -> None:
    _, before = play(example.bad, tmp_path)
    run, after = play(example.good, tmp_path)
    assert causes(run) == []
    assert before == after != ""
