"""Rules are true: `bad` fires its rule, and what the rule says makes it silent, under capture."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import re
import runpy
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import compilescope
from capabilities import expected
from compilescope.apps.front import Capture
from compilescope.base.plugins import discover
from compilescope.knowledge.findings.remedy import Remedy
from compilescope.knowledge.registry.taxonomy import Category, load_taxonomy
from compilescope.knowledge.rules import breaks
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes import library
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule
from compilescope.knowledge.source.examples import Example
from rules.written_by_fixes import answering, said_by_a_fix

pytestmark = pytest.mark.torch

BREAK_RULES = discover(breaks, "RULE", BreakRule)
GUARD_RULES = discover(guards, "RULE", GuardRule)
RULES = [*BREAK_RULES, *GUARD_RULES]
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]
REMEDIED = [(rule, example) for rule, example in EXAMPLES if example.good]
FIRST_REMEDIED = [
    pytest.param(*each, marks=pytest.mark.slow if each[0] in [rule for rule, _ in before] else ())
    for before, each in ((REMEDIED[:at], each) for at, each in enumerate(REMEDIED))
]


def name(value: object) -> str:
    return getattr(value, "id", "")


def example_name(rule: BreakRule | GuardRule, example: Example) -> str:
    """As a capability: a torch shows it or not."""
    return f"example/rule/{rule.id}/{rule.examples.index(example)}"


def play(text: str, folder: Path) -> tuple[Capture, str]:
    """What capture sees of a program, and what the program prints."""
    import torch

    script = folder / "program.py"
    script.write_text(text)
    torch._dynamo.reset()
    printed, quiet = io.StringIO(), io.StringIO()
    level = logging.getLogger("torch").level
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
            compilescope.capture() as run,
        ):
            warnings.simplefilter("ignore")
            runpy.run_path(str(script), run_name="__main__")
    finally:
        logging.getLogger("torch").setLevel(level)
    return run, printed.getvalue()


def capture(text: str, folder: Path) -> Capture:
    return play(text, folder)[0]


@dataclass(frozen=True)
class Fired:
    """A finding that the rule of an example explains."""

    keys: frozenset[str]
    """What fixes may name it by."""
    why: str
    remedies: tuple[Remedy, ...]


@functools.cache
def findings(rule: BreakRule | GuardRule, program: str) -> tuple[tuple[Fired, ...], str]:
    """The findings in a program that the rule explains, and what the program prints."""
    with tempfile.TemporaryDirectory() as folder:
        run, printed = play(program, Path(folder))
        if isinstance(rule, BreakRule):
            sites = [site for site in run.breaks if site.rule == rule.id]
            assert all(site.category == rule.category for site in sites)
            found = [
                Fired(
                    frozenset({rule.id, site.gb_id or "", f"category/{rule.category}"}),
                    site.why,
                    site.remedy,
                )
                for site in sites
            ]
        else:
            causes = [cause for frame in run.recompiles for cause in frame.causes]
            found = [
                Fired(
                    frozenset(
                        {"recompile", f"recompile/{rule.id}", f"recompile/{cause.guard_kind}"}
                    ),
                    cause.why,
                    cause.remedy,
                )
                for cause in causes
                if cause.rule == rule.id
            ]
    return tuple(found), printed


def template(remedy: Remedy) -> str:
    """The sentence without what is the program's own."""
    return re.sub(r"`[^`]*`|\d+|\btorch\.\w+\b", "_", remedy.text)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=name)
def test_a_rule_fires_on_its_example(rule: BreakRule | GuardRule, example: Example) -> None:
    fired, _ = findings(rule, example.bad)
    assert bool(fired) == expected(example_name(rule, example)), "the rule and its own example"
    for finding in fired:
        assert finding.why
        of_line = [each for each in finding.remedies if each.kind != "program"]
        assert 1 <= len(of_line) <= 2, "one sentence, two at the most"
        for remedy in finding.remedies:
            assert remedy.text.endswith(".") and "\n" not in remedy.text


@pytest.mark.parametrize(("rule", "example"), FIRST_REMEDIED, ids=name)
def test_what_a_rule_says_helps_and_changes_nothing_else(
    rule: BreakRule | GuardRule, example: Example, tmp_path: Path
) -> None:
    fired, before = findings(rule, example.bad)
    if not expected(example_name(rule, example)):
        assert not fired
        return
    assert any(each.kind == "source" for finding in fired for each in finding.remedies), (
        "a changed program that no words of the rule stand for"
    )
    run, after = play(example.good, tmp_path)
    assert (run.breaks, run.recompiles, run.failures) == ([], [], [])
    if example.changes:
        return
    assert before, "an example that prints nothing shows nothing about its results"
    assert after == before


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_every_change_that_a_rule_names_is_tried(rule: BreakRule | GuardRule) -> None:
    """By the sentence, whatever names stand in it: some example applies each."""
    told: dict[str, bool] = {}
    for example in rule.examples:
        for finding in findings(rule, example.bad)[0]:
            for remedy in finding.remedies:
                if remedy.kind == "source":
                    key = template(remedy)
                    told[key] = told.get(key, False) or bool(example.good)
    assert all(told.values()), [text for text, tried in told.items() if not tried]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=name)
def test_no_rule_says_what_a_fix_would_write(rule: BreakRule | GuardRule, example: Example) -> None:
    """A fix that refused has said no to it; its checks are not the rule's."""
    for finding in findings(rule, example.bad)[0]:
        for remedy in finding.remedies:
            assert not said_by_a_fix(remedy.text, finding.keys, example.bad), remedy.text


@pytest.mark.parametrize("category", load_taxonomy().categories, ids=name)
def test_no_category_says_what_a_fix_would_write(category: Category) -> None:
    keys = {f"category/{category.id}", *category.ids}
    keys |= {rule.id for rule in BREAK_RULES if rule.category == category.id}
    assert not said_by_a_fix(category.fix, keys, "")


def test_words_of_fixes_are_found() -> None:
    """The test of the tests: the very advice that fixes give, and refuse, is seen as theirs."""
    keys = {"tensor-if", "category/data-dependent-branch"}
    for text in ("Use `torch.where(a, b, c)`.", "Say it with `torch.cond(a, f, g, (x,))`."):
        assert said_by_a_fix(text, keys, "if x.sum() > 0:\n    y = 1\n")
    assert said_by_a_fix("Set `dynamic=True`.", {"recompile/size-change"}, "f(x)")
    assert said_by_a_fix("`torch._dynamo.mark_dynamic(x, 0)`.", {"recompile/size-change"}, "f(x)")
    assert said_by_a_fix("Set capture_scalar_outputs.", {"scalar-extraction"}, "f(x)")
    assert not said_by_a_fix("Keep `x.where(y)`.", keys, "x.where(y)")
    assert answering({"recompile"}) and not answering({"no-such-rule"})


def test_rules_have_their_own_places() -> None:
    for rules in (BREAK_RULES, GUARD_RULES):
        orders = [rule.order for rule in rules]
        assert len(set(orders)) == len(orders), "two rules of one order: which comes first?"
        assert all(rule.examples for rule in rules)


def test_words_for_libraries_name_rules_that_exist() -> None:
    sets = [each for each in vars(library).values() if isinstance(each, frozenset)]
    assert sets and frozenset().union(*sets) <= {rule.id for rule in GUARD_RULES}


def test_break_rules_name_categories_of_the_taxonomy() -> None:
    known = {category.id for category in load_taxonomy().categories}
    assert {rule.category for rule in BREAK_RULES} <= known
