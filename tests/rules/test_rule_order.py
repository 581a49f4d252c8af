"""Rules are imported in their order, until one applies."""

from __future__ import annotations

import subprocess
import sys

import index_json
from compilescope.knowledge.rules import recompiles
from compilescope.knowledge.rules.causes import explanations
from compilescope.knowledge.rules.causes.rule import GuardRule

ORDER = explanations._INDEX["recompiles"]


def test_the_indexes_are_what_rules_and_fixes_say() -> None:
    for path, text in index_json.ready().items():
        assert path.read_bytes() == text, index_json.RENEW


def test_rules_after_the_first_that_applies_are_not_imported() -> None:
    code = (
        "import sys; from compilescope.knowledge.rules.causes import explanations; "
        "rules = explanations._GUARD_RULES; "
        "first = next(rule for rule in rules if rule.id == 'grad-mode'); "
        "loaded = {name.rpartition('.')[2] for name in sys.modules}; "
        "assert 'grad_mode' in loaded and 'constant_change' not in loaded; "
        "assert [*rules][-1].id == 'other-change'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_who_looks_at_the_rules_while_another_does_misses_none() -> None:
    rules = explanations._InOrder(recompiles, GuardRule, ORDER)
    outer = iter(rules)
    next(outer)
    assert len([*rules]) == len(ORDER) == 1 + len([*outer])


def test_a_module_that_the_index_lacks_is_a_rule_all_the_same() -> None:
    rules = [*explanations._InOrder(recompiles, GuardRule, dict([*ORDER.items()][1:]))]
    assert rules == [*explanations._GUARD_RULES]
