"""A name on a module chooses which of its parts are used: each choice is compiled."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code, listed
from compilescope.knowledge.rules.recompiles._subjects import member, value_kind
from compilescope.knowledge.source.outline import Function, dotted

_RULES = frozenset({"module-flag", "module-number", "string-change"})


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding) or case.rule not in _RULES:
        return False
    kinds = {value_kind(finding.expected), value_kind(finding.actual)}
    return (
        kinds <= {"int", "str"} and finding.is_placed and (finding.count > 1 or finding.limit_hit)
    )


def _words(case: ProgramCase) -> str:
    finding = case.finding
    name = member(getattr(finding, "subject", ""))
    function = case.function_around(finding.file, finding.line)
    if function is None or function.owner is None or finding.file not in case.own_files:
        return ""
    parts = _chosen(function, name)
    setters = _setters(case, name)
    if not parts or not setters:
        return ""
    holders = listed(f"`{each}`" for each in parts)
    entries = listed(f"`{each}[self.{name}]`" for each in parts)
    where = listed(f"`{each}`" for each in setters)
    return (
        f"`self.{name}` chooses from {holders}, and each choice is a graph of its own: beyond the "
        f"limit the rest runs eagerly. Make the choice data: in `{function.name}` use one tensor in "
        f"place of each of {entries}, and in {where} fill it with {code('copy_')} from the chosen "
        "one, under `torch.no_grad()`. All choices then share one graph, if they have one shape. Or stack them in one tensor "
        "and pass the choice as a tensor that indexes it. With few choices, accept a compilation "
        "for each."
    )


def _chosen(function: Function, name: str) -> list[str]:
    """What it is the key of."""
    found: dict[str, None] = {}
    for node in function.own_nodes:
        if isinstance(node, ast.Subscript) and dotted(node.slice) == f"self.{name}":
            holder = dotted(node.value)
            if holder.startswith("self."):
                found[holder] = None
    return list(found)


def _setters(case: ProgramCase, name: str) -> list[str]:
    """Functions that set it to something that they are given; not constructors."""
    found: dict[str, None] = {}
    for outline in case.outlines:
        for function in outline.functions:
            if function.name in ("__init__", "__new__"):
                continue
            for node in function.own_nodes:
                if isinstance(node, ast.Assign) and any(
                    isinstance(each, ast.Attribute) and each.attr == name for each in node.targets
                ):
                    found[function.name] = None
    return list(found)


RULE = ProgramRule(
    id="module-switch",
    order=42,
    applies=_applies,
    words=_words,
)
