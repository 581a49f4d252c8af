"""A container copied by its own method instead of by `copy.copy`."""

from __future__ import annotations

import re

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst, kinds

_COPIED = re.compile(r"qualname: (dict|list|set)\.copy\b")
_ATOMS = kinds(
    lambda: (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Dict, cst.List, cst.Set)
)


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    call = next(
        (each for each in module.walk(subject.node) if module.calls(each, "copy.copy")), None
    )
    if not isinstance(call, cst.Call):
        raise NotMeant("copy.copy is not called here")
    found = subject.finding
    kind = _COPIED.search(found.context if isinstance(found, BreakFinding) else "")
    if kind is None:
        raise NotMeant("what is copied is not a dict, list or set")
    if len(call.args) != 1 or call.args[0].keyword is not None or call.args[0].star:
        raise Refused("copy.copy is called with other arguments")
    value = call.args[0].value
    shown = module.code(value)
    if not isinstance(value, _ATOMS) and not value.lpar:
        shown = f"({shown})"
    edit.replace(call, edit.expression(f"{shown}.copy()"))
    return Patch(edit.files())


FIX = Fix(
    id="copy-method",
    title="use the .copy() method instead of copy.copy",
    rules=frozenset({"outside-call"}),
    order=30,
    kind="source",
    why="`copy.copy` of a dict, list or set calls that type's `copy` in a way Dynamo cannot trace.",
    propose=_propose,
)
