"""A break that someone asked for, taken out: for the author to say whether it was on purpose."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_BREAKS = ("torch._dynamo.graph_break", "torch.compiler.graph_break")
_DISABLES = {
    "torch.compiler.disable",
    "torch._dynamo.disable",
    "torch._dynamo.eval_frame.disable",
    "torch._disable_dynamo",
}


def _propose(subject: Subject) -> Patch:
    module, node, found = subject.module, subject.node, subject.finding
    edit = Edit(module)
    if any(module.calls(each, *_BREAKS) for each in module.walk(subject.statement)):
        _drop_call(edit, subject)
        return Patch(edit.files(), needs_human="Is the call to graph_break() there on purpose?")
    call = next((each for each in module.walk(node) if isinstance(each, cst.Call)), None)
    if call is None or not isinstance(found, BreakFinding) or "disable" not in found.gb_type:
        raise Refused("torch itself requests the break, inside what is called here")
    name = _enable(edit, module, call)
    return Patch(edit.files(), needs_human=f"Is `{name}` still disabled for a reason?")


def _drop_call(edit: Edit, subject: Subject) -> None:
    line = subject.statement
    if not isinstance(line, cst.SimpleStatementLine):
        raise Refused("the call shares a line with the statement around it")
    kept = [
        part
        for part in line.body
        if not (isinstance(part, cst.Expr) and subject.module.calls(part.value, *_BREAKS))
    ]
    if len(kept) == len(line.body):
        raise Refused("the call is part of a larger expression")
    if not kept:
        edit.remove_statement(line)
        return
    kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    edit.replace(line, line.with_changes(body=kept))


def _enable(edit: Edit, module: SourceModule, call: cst.Call) -> str:
    """Undo what disables the function that is called. Gives its name."""
    for definition in _definitions(module, call.func):
        if isinstance(definition, cst.FunctionDef):
            for decorator in definition.decorators:
                if _disables(module, decorator.decorator):
                    edit.replace(decorator, cst.RemoveFromParent())  # type: ignore[arg-type]
                    return definition.name.value
        wrapped = _wrapped(module, definition)
        if wrapped is not None:
            edit.replace(wrapped, wrapped.args[0].value)
            return module.code(call.func)
    raise NotMeant("the function is not disabled in this file")


def _definitions(module: SourceModule, func: cst.BaseExpression) -> list[cst.CSTNode]:
    if isinstance(func, cst.Name):
        found = definitions_of(module, func)
        return [
            module.parent(each) or each if isinstance(each, cst.Name) else each for each in found
        ]
    if isinstance(func, cst.Attribute):
        # A method; which class it is of, the name alone must tell.
        same = [
            each
            for each in module.walk()
            if isinstance(each, cst.FunctionDef) and each.name.value == func.attr.value
        ]
        return list(same) if len(same) == 1 else []
    return []


def _disables(module: SourceModule, decorator: cst.BaseExpression) -> bool:
    named = decorator.func if isinstance(decorator, cst.Call) else decorator
    return bool(module.meaning(named) & _DISABLES)


def _wrapped(module: SourceModule, definition: cst.CSTNode) -> cst.Call | None:
    """The call in `helper = torch.compiler.disable(plain)`."""
    above = definition
    while above is not None and not isinstance(above, (cst.Assign, cst.AnnAssign)):
        if isinstance(above, cst.BaseStatement):
            return None
        above = module.parent(above)  # type: ignore[assignment]
    value = above.value if above is not None else None
    if isinstance(value, cst.Call) and _disables(module, value) and value.args:
        return value if value.args[0].keyword is None else None
    return None


FIX = Fix(
    id="explicit-break-removed",
    title="remove the requested graph break",
    rules=frozenset({"explicit-break"}),
    order=210,
    kind="source",
    why="Without the call or the decorator, Dynamo continues tracing. Somebody added it: only "
    "they know whether it is still needed.",
    propose=_propose,
)
