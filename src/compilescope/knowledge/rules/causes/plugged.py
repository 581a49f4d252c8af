"""Rules that installed packages bring: asked before ours, and harmless where they fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from compilescope.base.plugins import plugged
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule, ProgramRule

GROUP = "compilescope.rules"
"""The entry points; a module's `RULE` is of any of the three kinds."""
_Rule = TypeVar("_Rule", BreakRule, GuardRule, ProgramRule)
_Any = BreakRule | GuardRule | ProgramRule


def plugged_rules(kind: type[_Rule]) -> list[_Rule]:
    """Return the rules of this kind, by their order."""
    found = [rule for rule in _all_rules() if isinstance(rule, kind)]
    return sorted(found, key=lambda rule: (rule.order, rule.id))


@cache
def _all_rules() -> tuple[_Any, ...]:
    kinds: Any = (BreakRule, GuardRule, ProgramRule)
    found = plugged(GROUP, "RULE", kinds, several="RULES")
    return tuple(harmless(rule) for rules in found.values() for rule in rules)


def harmless(rule: _Any) -> _Any:
    """Return the rule so that one that raises does not apply: a report must not end there."""
    if isinstance(rule, ProgramRule):
        applies = _try(rule.id, rule.applies, False)
        return msgspec.structs.replace(rule, applies=applies, words=_try(rule.id, rule.words, ""))

    def applies_whole(case: Any) -> bool:
        # Its words are made here too: who asks for them next may count on them.
        return bool(rule.applies(case)) and bool(rule.why(case)) and rule.remedies(case) is not None

    return msgspec.structs.replace(rule, applies=_try(rule.id, applies_whole, False))


def _try(name: str, asked: Callable[[Any], Any], otherwise: object) -> Callable[[Any], Any]:
    def answer(case: Any) -> Any:
        try:
            return asked(case)
        except Exception:
            import logging

            logging.getLogger(__name__).debug("rule %s failed", name, exc_info=True)
            return otherwise

    return answer
