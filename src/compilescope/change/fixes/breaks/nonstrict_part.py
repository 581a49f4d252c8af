"""A pure piece of a function that Dynamo cannot read, traced by running it (`nonstrict_trace`)."""

from __future__ import annotations

from compilescope.change.fixes.compilation.frames import own_statement, sites_in
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_constant, check_pure
from compilescope.knowledge.source.flow.cuts import Split
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    definitions_of,
    is_of_module,
    is_receiver,
    local_names,
    statements_of,
)
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    body = statements_of(function)
    found = [own_statement(subject, node) for node in sites_in(subject)]
    places = sorted({body.index(each) for each in found if each is not None})
    if not places:
        raise NotMeant("the line is not a statement in the function's own body")
    low, high = places[0], places[-1] + 1
    core = body[low:high]
    if module.function_of(function) is not None:
        raise Refused("the function is nested in another function")
    _check_readable(subject, core)
    for each in core:
        check_pure(subject, each)
    edit = Edit(module)
    split = Split(body[:low], core, body[high:])
    Shell(edit, function, split).write_part(f"{edit.module_name('torch')}._dynamo.nonstrict_trace")
    return Patch(edit.files())


def _check_readable(subject: Subject, core: list[cst.BaseStatement]) -> None:
    """Raises `Refused` where the piece reads what would be taken for a constant."""
    module = subject.module
    for each in core:
        for node in module.walk(each):
            if not isinstance(node, cst.Name) or node.value not in module.names_in(node):
                continue
            if is_receiver(module, node):
                raise Refused("it reads the module, whose tensors would become constants")
            if node.value in local_names(subject.function):
                continue
            if not is_of_module(module, node):
                raise Refused(f"`{node.value}` is a variable of another function")
            if not _is_definition(subject, node):
                check_constant(subject, node)


def _is_definition(subject: Subject, name: cst.Name) -> bool:
    """A module, a function or a class; a builtin."""
    kinds = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef)
    return all(isinstance(each, kinds) for each in definitions_of(subject.module, name))


FIX = Fix(
    id="nonstrict-part",
    title="trace this code by running it (nonstrict_trace)",
    rules=frozenset({"GB0015", "GB0277", "GB0374", "GB0055", "outside-call"}),
    order=95,
    kind="source",
    why="The code only calls torch functions on its inputs. With `nonstrict_trace`, Dynamo "
    "does not trace its Python but puts a call to it in the graph.",
    propose=_propose,
)
