"""Rules are true: `bad` fires its rule, and each remedy makes it silent, under real capture."""

from __future__ import annotations

import contextlib
import io
import logging
import runpy
import warnings
from pathlib import Path

import pytest

import compilescope
from compilescope.front import Capture
from compilescope.plugins import discover
from compilescope.registry.taxonomy import load_taxonomy
from compilescope.rules import breaks, guards
from compilescope.rules.causes.rule import BreakRule, Example, GuardRule

pytestmark = pytest.mark.torch

BREAK_RULES = discover(breaks, "RULE", BreakRule)
GUARD_RULES = discover(guards, "RULE", GuardRule)
BREAKS = [(rule, example) for rule in BREAK_RULES for example in rule.examples]
GUARDS = [(rule, example) for rule in GUARD_RULES for example in rule.examples]


def name(value: object) -> str:
    return getattr(value, "id", "")


def capture(text: str, folder: Path) -> Capture:
    """What capture sees of a program."""
    import torch

    script = folder / "program.py"
    script.write_text(text)
    torch._dynamo.reset()
    quiet = io.StringIO()
    level = logging.getLogger("torch").level
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
            compilescope.capture() as run,
        ):
            warnings.simplefilter("ignore")
            runpy.run_path(str(script), run_name="__main__")
    finally:
        logging.getLogger("torch").setLevel(level)
    return run


@pytest.mark.parametrize(("rule", "example"), BREAKS, ids=name)
def test_break_rules(rule: BreakRule, example: Example, tmp_path: Path) -> None:
    fired = [site for site in capture(example.bad, tmp_path).breaks if site.rule == rule.id]
    assert fired, "the rule does not fire on its own example"
    assert all(site.category == rule.category and site.why and site.remedy for site in fired)
    kinds = {remedy.kind for site in fired for remedy in site.remedy}
    assert ("config" in kinds) == bool(example.configured) or example.good, "an untested remedy"
    for remedied in filter(None, (example.good, example.configured)):
        assert capture(remedied, tmp_path).breaks == []


@pytest.mark.parametrize(("rule", "example"), GUARDS, ids=name)
def test_guard_rules(rule: GuardRule, example: Example, tmp_path: Path) -> None:
    causes = [c for frame in capture(example.bad, tmp_path).recompiles for c in frame.causes]
    fired = [cause for cause in causes if cause.rule == rule.id]
    assert fired, f"the rule does not fire on its own example: {causes}"
    assert all(cause.why and cause.remedy for cause in fired)
    for remedied in filter(None, (example.good, example.configured)):
        run = capture(remedied, tmp_path)
        assert (run.recompiles, run.breaks) == ([], [])


def test_rules_have_their_own_places() -> None:
    for rules in (BREAK_RULES, GUARD_RULES):
        orders = [rule.order for rule in rules]
        assert len(set(orders)) == len(orders), "two rules of one order: which comes first?"
        assert all(rule.examples for rule in rules)


def test_break_rules_name_categories_of_the_taxonomy() -> None:
    known = {category.id for category in load_taxonomy().categories}
    assert {rule.category for rule in BREAK_RULES} <= known
