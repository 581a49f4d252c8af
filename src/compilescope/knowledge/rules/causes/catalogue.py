"""What the rule of a finding is about, whatever program it was found in.

A finding's own words speak of the user's line; these stand in a code scanner's list of rules.
"""

from __future__ import annotations

import importlib

import msgspec

from compilescope.base.plugins import public_modules
from compilescope.knowledge.registry.taxonomy import Category, load_taxonomy
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES

# A function may be eager for reasons that are categories of the taxonomy under another name.
_EAGER: dict[str, tuple[str, str | None]] = {
    "disabled": ("A function marked to run eagerly", "explicit"),
    "generator": ("A generator that was compiled on its own", "generator"),
    "dispatch-mode": ("A call under a torch dispatch mode", "tensor-subclass"),
    "backend": ("A function that the backend declined", "backend-failure"),
    "torch-module": ("A module of PyTorch's own that is compiled in place", None),
    "error": ("A function that fell back to eager after a compiler error", "compiler-bug"),
    "recompile-limit": ("A function recompiled too often", "recompile-limit"),
    "graph-break": ("A function that fell back to eager at a graph break", None),
}


_AGAIN = (
    "Compiled code is valid for values like those it was compiled with; guards check them on each "
    "call. A call that fails a guard is recompiled. At the recompile limit, Dynamo stops and runs "
    "such calls eagerly."
)


class RuleWords(msgspec.Struct, frozen=True):
    """A rule in general."""

    title: str
    why: str = ""
    fix: str = ""
    category: str = ""
    """Of the registry's taxonomy."""


def rule_words(rule: str) -> RuleWords:
    """For the `rule` of any finding, of kinds that this version does not know too."""
    family, _, name = rule.partition("/")
    if family == "recompile":
        title = _guard_title(name) or f"A guard that failed: {name}"
        return msgspec.structs.replace(_words(title, _category("recompile-limit")), why=_AGAIN)
    if family == "eager":
        title, known = _EAGER.get(name, (f"A function that runs eagerly: {name}", None))
        return _words(title, _category(known))
    if family == "failure":
        return _words(f"Compilation raised {name}", load_taxonomy().category_of(None, name))
    if rule in DEVICE_RULES:
        return RuleWords(DEVICE_RULES[rule].title, category=DEVICE_RULES[rule].category)
    if rule == "unregistered-break":
        return RuleWords("A graph break that has no PyTorch id")
    category = load_taxonomy().category_of(rule)
    return _words(category.ids.get(rule, rule) if category is not None else rule, category)


def _category(name: str | None) -> Category | None:
    return load_taxonomy().get(name) if name else None


def _words(title: str, category: Category | None) -> RuleWords:
    if category is None:
        return RuleWords(title)
    return RuleWords(title, category.why, category.fix, category.id)


def _guard_title(name: str) -> str:
    """The first line of the rule's own file: one file a rule, named for it."""
    module = name.replace("-", "_")
    if module not in public_modules(guards):
        return ""
    text = importlib.import_module(f"{guards.__name__}.{module}").__doc__ or ""
    return text.strip().split("\n", 1)[0].rstrip(".")
