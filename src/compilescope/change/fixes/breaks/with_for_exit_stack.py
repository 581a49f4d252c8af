"""A plain `with` instead of an `ExitStack` that enters contexts one after the other."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module = subject.module
    entered, name = _stack_around(subject)
    block = entered.body
    assert isinstance(block, cst.IndentedBlock)
    items: list[str] = []
    rest = list(block.body)
    while rest:
        context = _entered(module, rest[0], name)
        if context is None:
            break
        items.append(context)
        rest = rest[1:]
    if not items:
        raise NotMeant("the stack enters nothing at the start")
    if not rest:
        raise NotMeant("nothing is done inside the stack")
    if any(name in module.names_in(each) for each in rest):
        raise Refused(f"`{name}` is also used later")
    edit = Edit(module)
    made = edit.statements(f"with {', '.join(items)}:\n    pass\n")[0]
    assert isinstance(made, cst.With)
    body = block.with_changes(body=rest)
    new = entered.with_changes(items=made.items, body=body)
    edit.replace(entered, new)
    return Patch(edit.files())


def _stack_around(subject: Subject) -> tuple[cst.With, str]:
    module = subject.module
    for each in (subject.node, *module.ancestors(subject.node)):
        if not isinstance(each, cst.With) or len(each.items) != 1:
            continue
        item = each.items[0]
        if not module.calls(item.item, "contextlib.ExitStack") or item.asname is None:
            continue
        named = item.asname.name
        if isinstance(named, cst.Name) and isinstance(each.body, cst.IndentedBlock):
            return each, named.value
    raise NotMeant("there is no ExitStack around it")


def _entered(module: SourceModule, statement: cst.BaseStatement, stack: str) -> str | None:
    """The context of `stack.enter_context(context)`, with its name where it is given one; where
    that depends on a flag, a context that does nothing otherwise."""
    if isinstance(statement, cst.If):
        return _perhaps(module, statement, stack)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    value = only.value if isinstance(only, (cst.Expr, cst.Assign)) else None
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return None
    owner, method = value.func.value, value.func.attr.value
    if not (isinstance(owner, cst.Name) and owner.value == stack and method == "enter_context"):
        return None
    if len(value.args) != 1:
        return None
    shown = module.code(value.args[0].value)
    if isinstance(only, cst.Expr):
        return shown
    assert isinstance(only, cst.Assign)
    if len(only.targets) != 1 or not isinstance(only.targets[0].target, cst.Name):
        return None
    return f"{shown} as {only.targets[0].target.value}"


def _perhaps(module: SourceModule, statement: cst.If, stack: str) -> str | None:
    block = statement.body
    if statement.orelse is not None or not isinstance(block, cst.IndentedBlock):
        return None
    if len(block.body) != 1:
        return None
    inner = _entered(module, block.body[0], stack)
    known = module.name_of_module("contextlib")
    if inner is None or " as " in inner or known is None:
        return None
    return f"({inner} if {module.code(statement.test)} else {known}.nullcontext())"


FIX = Fix(
    id="with-for-exit-stack",
    title="use a plain with instead of an ExitStack",
    rules=frozenset({"outside-call", "context-manager", "GB0262"}),
    order=45,
    kind="source",
    why="A `with` of several contexts enters them in the same order and exits them in reverse. "
    "Dynamo supports torch's contexts there.",
    propose=_propose,
)
