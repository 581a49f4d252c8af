"""Rules are imported in their order, until one applies."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from compilescope.base.plugins import carried, public_modules
from compilescope.knowledge.rules import breaks, programs, recompiles
from compilescope.knowledge.rules.causes import explanations, order
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule, ProgramRule

PACKAGES = [
    (breaks, BreakRule, order.BREAKS),
    (recompiles, GuardRule, order.RECOMPILES),
    (programs, ProgramRule, order.PROGRAMS),
]


@pytest.mark.parametrize(("package", "kind", "known"), PACKAGES)
def test_the_tables_name_every_module_in_the_order_of_its_rule(
    package: ModuleType, kind: type[BreakRule | GuardRule | ProgramRule], known: tuple[str, ...]
) -> None:
    orders = {
        name: carried(f"{package.__name__}.{name}", "RULE", kind)[0].order
        for name in public_modules(package)
    }
    right = tuple(sorted(orders, key=orders.__getitem__))
    assert known == right, f"write in rules/causes/order.py: {right}"


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
    rules = explanations._InOrder(recompiles, GuardRule, order.RECOMPILES)
    outer = iter(rules)
    next(outer)
    assert len([*rules]) == len(order.RECOMPILES) == 1 + len([*outer])


def test_a_module_that_a_table_lacks_is_a_rule_all_the_same() -> None:
    rules = [*explanations._InOrder(recompiles, GuardRule, order.RECOMPILES[1:])]
    assert rules == [*explanations._GUARD_RULES]
