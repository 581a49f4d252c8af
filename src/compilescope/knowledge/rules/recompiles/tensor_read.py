"""The value of a 0-dim tensor is read and kept as a constant."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, reader, shown

_READ = re.compile(r"(?<![^\s()])(?P<tensor>[^\s()]+)\.item\(\)(?: == (?P<value>\S+))?")


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "SHAPE" and _READ.search(miss.finding.guard) is not None


def _tensor(miss: RecompileCase) -> str:
    match = _READ.search(miss.finding.guard)
    return shown(match["tensor"]) if match else shown(miss.finding.subject)


def _why(miss: RecompileCase) -> str:
    match = _READ.search(miss.finding.guard)
    value = f" ({match['value']} at compilation)" if match and match["value"] else ""
    return (
        f"{reader(miss)} needs the number in the tensor `{_tensor(miss)}`{value}, so Dynamo read "
        "it and made it a constant in the graph. In this call, the tensor holds another number."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor = _tensor(miss)
    return [
        source(
            f"Do what needs the number in `{tensor}` (such as indexing) in the caller, and pass "
            f"the resulting tensor to `{called(miss)}`."
        ),
        leave(miss, f"number in `{tensor}`"),
    ]


RULE = GuardRule(
    id="tensor-read",
    order=250,
    needs=(".item()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
