"""A list of tensors that is longer in each call, and that the function only joins: it is joined
before the graph, which gets one tensor of a size that varies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compilescope.change.fixes.arguments.guarded import cause_of, counted, recompiled_function
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import passed_as_arguments
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import local_names, parameters_of, statements_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_JOINS = {
    "torch.stack": "stacked",
    "torch.cat": "joined",
    "torch.concat": "joined",
    "torch.concatenate": "joined",
    "torch.vstack": "stacked",
    "torch.hstack": "stacked",
}


def _propose(subject: Subject) -> Patch:
    held = counted(subject)
    module, function = recompiled_function(subject)
    if module.path != subject.file or function is not subject.function:
        raise NotMeant("the list is used in a function that is part of another's graph")
    assert isinstance(function, cst.FunctionDef)
    if cause_of(subject).count < 2:
        raise Refused(
            f"`{held}` had two lengths only, and a tensor of two sizes is compiled twice as well"
        )
    uses = list(_uses(module, function, held))
    if not uses:
        raise NotMeant(f"`{held}` is not a list that the function names")
    values: dict[str, cst.BaseExpression] = {}
    for use in uses:
        word, value = _value(module, use)
        name = module.fresh_name(f"{held.rpartition('.')[2]}_{word}")
        while name in values and module.code(values[name]) != module.code(value):
            name = f"{name}_2"
        if name in values:
            raise Refused(f"`{module.code(value)}` is computed twice")
        values[name] = value
    if not any(isinstance(each, cst.Call) and _joins(module, each) for each in values.values()):
        raise NotMeant(f"the function does not join `{held}`")
    _check_unchanged(subject, values.values())
    return passed_as_arguments(subject, values)


def _check_unchanged(subject: Subject, values: Iterable[cst.BaseExpression]) -> None:
    """Raises `Refused` where a tensor may be changed in place before: it may be in the list."""
    module, body = subject.module, statements_of(subject.function)
    last = max(module.line(each) for each in values)
    for statement in body:
        for each in module.walk(statement):
            if isinstance(each, cst.AugAssign) and module.line(each) <= last:
                shown = short(module, each)
                raise Refused(f"`{shown}` comes first, and may change a tensor of the list")


def _uses(
    module: SourceModule, function: cst.FunctionDef, held: str
) -> Iterator[cst.Name | cst.Attribute]:
    """Where the list is named, `past` or `self.past`: what is there when the function begins."""
    root = held.partition(".")[0]
    if root in local_names(function) - set(parameters_of(function)):
        raise NotMeant(f"`{held}` is made by the function itself")
    for each in module.walk(function.body):
        if not isinstance(each, (cst.Name, cst.Attribute)) or module.code(each) != held:
            continue
        above = module.parent(each)
        named = isinstance(above, cst.Attribute) and above.attr is each
        if not named and not (isinstance(above, cst.Arg) and above.keyword is each):
            yield each


def _value(module: SourceModule, use: cst.Name | cst.Attribute) -> tuple[str, cst.BaseExpression]:
    """What is made of the list there, and a word for it. Raises `Refused` where that is more than
    to join it, to count it or to pick an element."""
    joined: cst.BaseExpression = use
    above = module.parent(use)
    if isinstance(above, cst.Subscript) and above.value is use and len(above.slice) == 1:
        index = above.slice[0].slice
        if isinstance(index, cst.Index):
            if number(index.value) is not None:
                return "item", above
        else:
            joined, above = above, module.parent(above)
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call) and call.args[0].value is joined:
        if module.calls(call, "builtins.len"):
            return "length", call
        word = _joins(module, call)
        if word:
            return word, call
    raise Refused(f"the function does more with `{module.code(use)}` than join it")


def _joins(module: SourceModule, call: cst.Call) -> str:
    return next((word for name, word in _JOINS.items() if module.calls(call, name)), "")


FIX = Fix(
    id="join-outside",
    title="join the list before the graph",
    rules=frozenset({"recompile/length-change"}),
    order=84,
    kind="source",
    only_run_tells=True,  # One compilation for a second size may stay: is that fewer?
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), and the function that computes gets one tensor, whose size may vary, instead of "
    "a list with an input for each element.",
    propose=_propose,
)
