"""Lists and tuples that the sides of a branch set a name to."""

from __future__ import annotations

from compilescope.fixes.branches.effects import Effect
from compilescope.fixes.subject import Subject
from compilescope.source.flow import liveness
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.purity import operator_of, short
from compilescope.source.refusals import NeedsRun, Refused
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


def is_display(effect: Effect | None) -> bool:
    return effect is not None and isinstance(effect.operand, (cst.List, cst.Tuple))


def items_anew(effect: Effect | None) -> cst.ListComp | None:
    """`[g * 2 for g in parts]` of what sets `parts` to it."""
    node = effect.operand if effect is not None and effect.kind == "name" else None
    if effect is None or not isinstance(node, cst.ListComp):
        return None
    clause = node.for_in
    if clause.ifs or clause.inner_for_in is not None or clause.asynchronous is not None:
        return None
    names = [each.value for each in (clause.iter, clause.target) if isinstance(each, cst.Name)]
    return node if len(names) == 2 and names[0] == effect.target != names[1] else None


def is_listed(effect: Effect | None) -> bool:
    return is_display(effect) or items_anew(effect) is not None


def is_gone_through(module: SourceModule, read: cst.Name) -> bool:
    """Is a list only looked at here, item by item, joined, or returned?"""
    above = module.parent(read)
    if isinstance(above, cst.Arg):
        call = module.parent(above)
        if not isinstance(call, cst.Call):
            return False
        if module.calls(call, *(f"builtins.{each}" for each in ("len", "zip", "enumerate"))):
            return True
        return operator_of(module, call) in ("stack", "cat", "concat", "hstack", "vstack")
    return isinstance(above, (cst.CompFor, cst.For, cst.Return))


def items_of(node: cst.CSTNode | None) -> list[cst.BaseExpression] | None:
    """Of a list or a tuple that is written out; None of another thing, and where one item may be
    several."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return None
    if any(isinstance(each, cst.StarredElement) for each in node.elements):
        return None
    return [each.value for each in node.elements]


def check_list(subject: Subject, function: cst.FunctionDef, branch: cst.If, name: str) -> None:
    """Raises `Refused` unless the name holds a list before the branch, of which nobody else sees
    that it becomes another one."""
    module = subject.module
    if not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show what `{name}` holds")
    seen = subject.facts(name, module.line(branch))
    if not seen or any(fact.type != "builtins.list" for fact in seen):
        raise Refused(f"`{name}` is not known to be a list before the branch")
    end = module.position(branch).end.line
    for where, _ in changes_in_place(module, function.body):
        if module.line(where) > end or module.around(branch, cst.For, cst.While):
            raise Refused(f"`{short(module, where)}` may change what `{name}` holds")
    for read in liveness.reads(module, function.body):
        if read.value == name and module.line(read) > end and not is_gone_through(module, read):
            raise Refused(f"what `{name}` holds may be changed or kept elsewhere")
