"""A buffer of a module that is made in the compiled code, registered by the module's own method."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_BUFFER = ("torch.nn.Buffer", "torch.nn.parameter.Buffer")


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    statement = subject.statement
    inside = (each for each in module.walk(statement) if isinstance(each, cst.Call))
    calls = [each for each in inside if module.calls(each, *_BUFFER)]
    if len(calls) != 1:
        raise NotMeant("no torch.nn.Buffer is made here")
    assign, owner, name = _target(statement, calls[0])
    if subject.function.name.value != "__init__":
        raise Refused("outside of `__init__`, the module may have something of that name")
    arguments = calls[0].args
    if not arguments or arguments[0].keyword is not None or any(arg.star for arg in arguments):
        raise Refused("what the buffer is made of is not its first argument")
    given = arguments[0].value
    if isinstance(given, cst.Name) and any(
        fact.requires_grad for fact in subject.facts(given.value)
    ):
        raise Refused("it requires a gradient, which a Buffer cuts off from what it was made of")
    passed = ", ".join([f'"{name}"', *(module.code(arg).rstrip(", ") for arg in arguments)])
    made = edit.expression(f"{owner}.register_buffer({passed})")
    edit.replace(assign, cst.Expr(made))
    return Patch(edit.files())


def _target(statement: cst.BaseStatement, call: cst.Call) -> tuple[cst.Assign, str, str]:
    """The assignment, `self`, and the name of the attribute."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Assign) and only.value is call and len(only.targets) == 1:
            target = only.targets[0].target
            if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
                return only, target.value.value, target.attr.value
    raise Refused("the buffer is not assigned to one attribute of the module")


FIX = Fix(
    id="register-buffer",
    title="register the buffer by the module's method",
    rules=frozenset({"GB0116"}),
    order=35,
    kind="source",
    why="Dynamo cannot build a `torch.nn.Buffer` in the compiled code (torch 2.13), and traces "
    "`register_buffer`, which is what a module calls where a `Buffer` is assigned to it.",
    propose=_propose,
)
