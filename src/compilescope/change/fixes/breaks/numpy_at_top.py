"""A table that NumPy makes of constants, made once for the module."""

from __future__ import annotations

import re

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.toplevel import check_movable, top_statement
from compilescope.knowledge.source.trees import cst

_IMPURE = re.compile(
    r"^numpy\.(random|load|save|savez|fromfile|genfromtxt|loadtxt|memmap|set|err|show|seterr|lib)"
)


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    call = _outermost(subject)
    top = top_statement(module, function)
    check_movable(module, [call], top, "the array")
    edit = Edit(module)
    word = call.func.attr.value if isinstance(call.func, cst.Attribute) else module.code(call.func)
    name = module.fresh_name(re.sub(r"\W", "_", f"{word}_in_{function.name.value}").upper())
    body = list(module.tree.body)
    place = next(i for i, each in enumerate(body) if each is top)
    if place == 0:
        raise Refused("the function is at the very top of its file")
    made = edit.statements(f"{name} = {module.code(call)}")
    made[0] = made[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    previous = body[place - 1]
    assert isinstance(previous, cst.BaseStatement)
    edit.put_after(previous, made)
    # A copy: who changes it changes nothing for the next call.
    edit.replace(call, edit.expression(f"{name}.copy()"))
    return Patch(edit.files())


def _outermost(subject: Subject) -> cst.Call:
    """The largest call of NumPy around what Dynamo stopped at."""
    module = subject.module
    inside = [each for each in module.walk(subject.node) if _is_numpy(module, each)]
    if not inside:
        raise NotMeant("no NumPy function that only computes is called here")
    found = inside[0]
    for above in module.ancestors(found):
        if isinstance(above, cst.BaseStatement):
            break
        if _is_numpy(module, above):
            found = above
    assert isinstance(found, cst.Call)
    for each in module.walk(found):
        if isinstance(each, cst.Call) and not _is_numpy(module, each):
            raise Refused(f"`{module.code(each)}` may return a different value each time")
    return found


def _is_numpy(module: SourceModule, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    names = module.meaning(node.func)
    return any(each.startswith("numpy.") for each in names) and not any(
        _IMPURE.match(each) for each in names
    )


FIX = Fix(
    id="numpy-at-top",
    title="compute the NumPy array once, at the top of the file",
    rules=frozenset({"numpy-call", "GB0294"}),
    order=50,
    kind="source",
    why="NumPy computes the same from constants in every call. Each call gets a copy.",
    propose=_propose,
)
