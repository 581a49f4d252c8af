"""A different module in the same place."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    inside,
    member,
    shown,
    uses,
    wrapper_note,
)

_MODULE = re.compile(r"^torch\.nn\.(?!parameter\.)|(?:^|\.)nn\.modules\.")


def _applies(miss: RecompileCase) -> bool:
    inner = inside(miss.finding.subject, "type")
    if not inner or miss.finding.expected == miss.finding.actual:
        return False
    a_part = re.search(r"\._modules\['[^']*'\]$", inner) is not None
    return inner == "self" or a_part or _of_torch(miss) or "call" in uses(miss, member(inner))


def _of_torch(miss: RecompileCase) -> bool:
    """Torch's own modules are compiled through one function of torch's, and share it."""
    classes = (miss.finding.expected, miss.finding.actual)
    return any(_MODULE.search(name) is not None for name in classes)


def _class(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _why(miss: RecompileCase) -> str:
    if inside(miss.finding.subject, "type") == "self":
        return (
            f"`{called(miss)}` was compiled for a {_class(miss.finding.expected)} and is now called "
            f"for a {_class(miss.finding.actual)}, which inherits it from the same base class. They "
            "share its code, and so its compilations, but their other code may differ."
        )
    place = shown(inside(miss.finding.subject, "type"))
    return (
        f"`{place}` was of class {_class(miss.finding.expected)} when `{called(miss)}` was compiled "
        f"and is of class {_class(miss.finding.actual)} now. Its code is traced into the graph, so "
        f"each class needs its own graph. One compiled `{called(miss)}` serves callers that differ "
        f"in it.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    inner = inside(miss.finding.subject, "type")
    if "._modules[" in inner or inner == "self" or _of_torch(miss):
        return [one_module(miss), leave(miss, "class")]
    return [
        source(
            f"Compile the callee rather than its caller: each `{shown(inner)}` once, and leave "
            f"`{called(miss)}` uncompiled."
        ),
        leave(miss, "class"),
    ]


RULE = GuardRule(
    id="module-class",
    order=300,
    needs=("type(",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
