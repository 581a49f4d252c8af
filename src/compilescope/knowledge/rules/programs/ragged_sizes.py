"""Inputs of many sizes: batches padded to their longest, pictures of several sizes."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import assigned, code
from compilescope.knowledge.rules.recompiles._subjects import member, of_a_module, shown, size_of
from compilescope.knowledge.source.outline import dotted
from compilescope.record.stack import Frame, origin_of

_RULES = frozenset({"equal-sizes", "shape-condition", "size-change"})
_PARTS = ("forward", "__call__")
_CACHES = ("past_key_value", "cache", "key_states")


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding) or case.rule not in _RULES:
        return False
    subjects = [finding.subject, *(each.subject for each in finding.together)]
    if any(word in each for each in subjects for word in _CACHES):
        return False
    return size_of(finding.subject) is not None and not of_a_module(finding.subject)


def _words(case: ProgramCase) -> str:
    finding = case.finding
    assert isinstance(finding, RecompileFinding)
    asked = case.compile_call
    part = size_of(finding.subject)
    if asked is None or part is None or asked.option("dynamic") == "True":
        return ""
    if case.compiled is None or case.compiled.resumed or case.passes("transformers/generation"):
        return ""
    if any(each.function in _PARTS for each in _since_asked(case) if each.origin != "torch"):
        return ""  # A part of what was asked for, compiled alone: its sizes may be of its own.
    pad = _padding(case)
    outside = origin_of(case.compiled.file) == "library"
    fixed = asked.option("dynamic") == "False"
    if not (pad or outside) or not (fixed or outside):
        return ""
    if asked.way == "decorator" and asked.target != case.compiled.function:
        return ""
    name, dim = member(shown(part[0])) or shown(part[0]), part[1]
    change = f"dimension {dim} of `{name}` was {finding.expected}, then {finding.actual}"
    more = "and each further size is compiled again" if fixed else "so it is compiled twice"
    dynamic = assigned(case, asked.node, asked.text(dynamic="True"))
    few = f"where {code(pad)} pads, pad further" if pad else "bring the inputs"
    return (
        f"The sizes of the input vary ({change}), {more}. Compile for any size from the start, "
        f"{code(dynamic)}: one graph, whose kernels may be a little slower. Or {few} to one of a "
        "few sizes: a graph for each, and what is padded is computed for nothing."
    )


def _since_asked(case: ProgramCase) -> tuple[Frame, ...]:
    """The stack from the program on: whatever started that is none of its parts."""
    asking = [each for each in case.own_files if (o := case.sources.outline(each)) and o.compiled]
    at = next((at for at, each in enumerate(case.stack) if each.file in asking), 0)
    return case.stack[at:]


def _padding(case: ProgramCase) -> str:
    """Where the user's files pad a batch to its longest; empty where nothing shows it."""
    for outline in case.outlines:
        for call, _ in outline.calls:
            if dotted(call.func).rpartition(".")[2] == "pad_sequence":
                return ast.unparse(call)
            for keyword in call.keywords:
                if keyword.arg == "padding" and ast.unparse(keyword.value) in ("True", "'longest'"):
                    return f"{dotted(call.func)}(…, padding={ast.unparse(keyword.value)})"
    return ""


RULE = ProgramRule(
    id="ragged-sizes",
    order=50,
    applies=_applies,
    words=_words,
)
