"""docs/inside/advice.md tells the kinds that are counted, and every rule is of one kind."""

from __future__ import annotations

from advice.kinds import MECHANICAL_BREAKS, MECHANICAL_RECOMPILES, OTHERS
from compilescope.knowledge.findings.remedy import Advice
from compilescope.knowledge.rules.causes.explanations import break_rules, guard_rules
from docs_pages import page_text

PAGE = page_text("advice")


def test_the_page_lists_every_kind() -> None:
    known = {
        **MECHANICAL_BREAKS,
        **{f"recompile/{name}": words for name, words in MECHANICAL_RECOMPILES.items()},
        **OTHERS,
    }
    for name, words in known.items():
        assert f"| `{name}` | {words} |" in PAGE, name


def test_every_break_rule_is_of_one_kind() -> None:
    for rule in break_rules():
        assert (rule.id in MECHANICAL_BREAKS) != (rule.id in OTHERS), rule.id


def test_the_kinds_are_rules() -> None:
    breaks, guards = {rule.id for rule in break_rules()}, {rule.id for rule in guard_rules()}
    assert {name for name in MECHANICAL_BREAKS if "/" not in name} <= breaks
    assert set(MECHANICAL_RECOMPILES) <= guards
    assert {name for name in OTHERS if "/" not in name} <= breaks


def test_the_page_tells_the_shape() -> None:
    for name in Advice.__struct_fields__:
        assert f"| `{name}` |" in PAGE
