"""A zero-dimensional tensor used as an index: made to gather, so that Dynamo need not read it."""

from __future__ import annotations

from compilescope.change.fixes.arguments.guarded import cause_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.aliasing import check_unchanged
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module, line = subject.module, subject.statement
    name = _tensor(cause_of(subject).subject)
    found = [
        node
        for node in module.walk(line)
        if isinstance(node, cst.Subscript)
        and len(node.slice) == 1
        and isinstance(node.slice[0].slice, cst.Index)
        and module.code(node.slice[0].slice.value) == name
    ]
    if not found:
        raise Refused(f"`{name}` is not a single index on the line")
    edit = Edit(module)
    for node in found:
        parent = module.parent(node)
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign)) and parent.target is node:
            raise Refused("something is stored at the index")
        target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
        names = [target.value] if isinstance(target, cst.Name) else []
        check_unchanged(module, subject.function, line, [node], names)
        whole = module.code(node.value)
        edit.replace(node, edit.expression(f"{whole}[{name}.view(1)][0]"))
    return Patch(edit.files())


def _tensor(guarded: str) -> str:
    """`n` of `n.item()` or of whatever else the guard does with it."""
    name = guarded.split(".item")[0].strip("()")
    if not name.replace(".", "").replace("_", "").isalnum():
        raise Refused("it is unclear which tensor is read")
    return name


FIX = Fix(
    id="index-by-view",
    title="keep the index a tensor",
    rules=frozenset({"recompile/tensor-read"}),
    order=65,
    kind="source",
    why="`table[n.view(1)][0]` selects the same entry as `table[n]`, with a gather whose index "
    "is not part of the graph. It is a copy where `table[n]` would be a view. Verification "
    "compares what is shared.",
    propose=_propose,
)
