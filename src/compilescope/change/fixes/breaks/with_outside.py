"""A `with` that Dynamo cannot enter, kept outside: what it is around is compiled by itself."""

from __future__ import annotations

from compilescope.change.fixes.compilation.frames import check_root, sites_in
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import only_value
from compilescope.knowledge.source.flow.cuts import Split, is_docstring, is_light, split_around
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_LOCKS = {"threading.Lock", "threading.RLock", "threading.Semaphore", "threading.Condition"}
_HELD = "The lock is held until the function returns."


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    check_root(subject)
    entered = next(
        (
            each
            for each in (subject.node, *module.ancestors(subject.node))
            if isinstance(each, cst.With) and module.parent(each) is function.body
        ),
        None,
    )
    if entered is None:
        raise NotMeant("there is no `with` around it in the function's own body")
    if entered.asynchronous is not None or not isinstance(entered.body, cst.IndentedBlock):
        raise Refused("the `with` statement is on one line")
    edit = Edit(module)
    split = _split(subject, entered)
    states = ""
    if split is None:
        split, states = _whole(subject, entered), _HELD
    Shell(edit, function, split).write()
    return Patch(edit.files(), states=states)


def _split(subject: Subject, entered: cst.With) -> Split | None:
    """The body of the `with` is the work; None where some is done outside of it."""
    module, function = subject.module, subject.function
    body = statements_of(function)
    place = body.index(entered)
    outer = body[:place], body[place + 1 :]
    if not all(is_light(module, each) or is_docstring(each) for part in outer for each in part):
        return None
    inner = entered.body.body
    stopped = [
        each
        for node in sites_in(subject)
        for each in (node, *module.ancestors(node))
        if module.parent(each) is entered.body
    ]
    split = split_around(module, inner, stopped)  # type: ignore[arg-type]
    return Split(split.before, split.core, split.after, entered, outer[0], outer[1])


def _whole(subject: Subject, entered: cst.With) -> Split:
    """A lock may as well be held for all of the function."""
    module, function = subject.module, subject.function
    for item in entered.items:
        value = only_value(subject, item.item)
        if not (isinstance(value, cst.Call) and module.meaning(value.func) & _LOCKS):
            raise Refused("the function also computes something outside the `with`")
        if item.asname is not None:
            raise Refused("the function also computes something outside the `with`")
    body = statements_of(function)
    place = body.index(entered)
    start = 1 if is_docstring(body[0]) else 0
    core = [*body[start:place], *entered.body.body, *body[place + 1 :]]
    return Split([], core, [], entered.with_changes(leading_lines=()), body[:start])


FIX = Fix(
    id="with-outside",
    title="keep the with outside and compile its body separately",
    rules=frozenset({"context-manager", "outside-call", "logging-call", "GB0208", "GB0262"}),
    order=85,
    kind="source",
    why="The function enters and exits the context as before. Dynamo skips its own frame (not "
    "its callees), and the work is in one function that it calls inside the `with`.",
    propose=_propose,
)
