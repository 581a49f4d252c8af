"""A truth that is read from the arguments alone: read before the graph, and handed to it.

`full = bool(mask.all())` at the entrance of a function, or `if x.sum() > 0:` around sides that no
graph can hold both of. After a break Dynamo compiles the rest of the function for the value that
was read; here the whole function is. So a number is not read first: each would have a graph of its
own, and past the recompile limit the whole function would run in eager mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from compilescope.change.fixes.branches.branch import RULES
from compilescope.change.fixes.compilation.frames import check_root, own_statement, sites_in
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import DRAWS, is_test, passed_as_arguments
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_early
from compilescope.change.fixes.values.extraction import is_of_symbol
from compilescope.change.fixes.values.tensors import is_one_number
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import local_names, parameters_of, statements_of
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_NUMBERS = ("builtins.int", "builtins.float")
_MOST_STEPS = 2
"""From the arguments to the value, each one number. Chosen: what is moved out of the graph is a name
for a test, and no work."""
_MOST_TRUTHS = 2
"""Of one function. Chosen: each doubles the graphs, and Dynamo makes eight at most."""


def _propose(subject: Subject) -> Patch:
    check_root(subject)
    if is_of_symbol(subject):
        raise Refused("the value is a symbol in the graph")
    found = dict.fromkeys([_read(subject, subject.node), *_others(subject)])
    values = sorted(found, key=subject.module.line)
    if len(values) > _MOST_TRUTHS:
        raise Refused("each condition doubles the number of graphs, and there are several")
    named: dict[str, cst.BaseExpression] = {}
    for value in values:
        named[_name(subject, value, named)] = value
    steps = dict.fromkeys(step for value in values for step in _steps(subject, value))
    made = passed_as_arguments(subject, named, steps=list(steps))
    graphs = "True and false each have a graph of their own, as after a break."
    return Patch(made.files, states=graphs)


def _others(subject: Subject) -> Iterator[cst.BaseExpression]:
    """What Dynamo stops at elsewhere in the function, where the same can be done about it."""
    for node in sites_in(subject):
        try:
            value = _read(subject, node)
            passed_as_arguments(subject, {"value": value}, steps=_steps(subject, value))
        except Refused:
            continue
        yield value


def _read(subject: Subject, node: cst.CSTNode) -> cst.BaseExpression:
    """`mask.all()` of `if mask.all():`, all of its test; `bool(t)`."""
    module = subject.module
    if isinstance(node, (cst.If, cst.IfExp)):
        return node.test
    for each in (node, *module.ancestors(node)):
        if is_test(subject, each):
            assert isinstance(each, cst.BaseExpression)
            return each
        if isinstance(each, cst.BaseStatement):
            break
    calls = module.walk(node) if isinstance(node, cst.BaseStatement) else [node]
    found = [each for each in calls if isinstance(each, cst.Call)]
    if any(_reads_number(subject, each) for each in found):
        raise Refused("each number that is read here would have a graph of its own")
    truths = [x for x in found if module.calls(x, "builtins.bool") and len(x.args) == 1]
    if not truths:
        raise NotMeant("no condition is read from a tensor here by itself")
    return truths[0]


def _reads_number(subject: Subject, call: cst.Call) -> bool:
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in ("item", "tolist"):
        return not call.args
    return subject.module.calls(call, *_NUMBERS) and len(call.args) == 1


def _steps(
    subject: Subject, value: cst.BaseExpression, depth: int = _MOST_STEPS
) -> list[cst.BaseStatement]:
    """The statements that it needs: `empty = ~mask.any()` of `if empty:`. Raises `Refused` where
    evaluating all that earlier shows, or is work for the graph."""
    module, function = subject.module, subject.function
    own, body = own_statement(subject, value), statements_of(function)
    found = first(module, [value], "effect", "unknown", "random", "costly")
    if found is not None and not _is_draw(subject, value):
        raise Refused(found.words.replace("the branch", "it"))
    before = list(itertools.takewhile(lambda each: each is not own, body))
    for where, _ in itertools.chain(*(changes_in_place(module, each) for each in before)):
        raise Refused(f"`{short(module, where)}` changes something first, which could affect it")
    steps: list[cst.BaseStatement] = []
    made = module.names_in(value) & (local_names(function) - set(parameters_of(function)))
    for name in sorted(made):
        given = only_value(module, function, name)
        step = own_statement(subject, given) if given is not None else None
        if given is None or step is None or step not in before or not depth:
            raise Refused(f"it needs `{name}`, which the function computes first")
        if not is_one_number(subject, given) or _is_part(subject, step, given):
            raise Refused(f"it needs `{name}`, which the function computes first")
        earlier = _steps(subject, given, depth - 1)
        check_early(subject, given, [each for each in before if each not in (*earlier, step)])
        steps += [*earlier, step]
    return steps


def _is_draw(subject: Subject, value: cst.BaseExpression) -> bool:
    """`random.random() < p`: the same draw a little earlier, if no other comes before it."""
    module = subject.module
    if not isinstance(value, cst.Comparison) or len(value.comparisons) != 1:
        return False
    sides = [value.left, value.comparisons[0].comparator]
    drawn = [each for each in sides if module.calls(each, *DRAWS) and not each.args]  # type: ignore[attr-defined]
    rest = [each for each in sides if each not in drawn]
    plain = all(number(x) is not None or isinstance(x, (cst.Name, cst.Attribute)) for x in rest)
    return len(drawn) == 1 and plain


def _is_part(subject: Subject, statement: cst.BaseStatement, value: cst.BaseExpression) -> bool:
    """Is it not all that the statement does?"""
    only = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return len(only) != 1 or subject.module.parent(value) is not only[0]


def _name(subject: Subject, value: cst.BaseExpression, taken: dict[str, cst.BaseExpression]) -> str:
    word = "taken" if is_test(subject, value) else "value"
    known = local_names(subject.function) | set(parameters_of(subject.function)) | set(taken)
    free = subject.module.fresh_name(word) if word in known else word
    number = 2
    while free in taken:
        free, number = f"{word}_{number}", number + 1
    return free


FIX = Fix(
    id="value-read-first",
    title="read the condition before the graph and pass it in",
    rules=RULES | {"GB0109", "GB0124", "random-number"},
    order=128,
    kind="source",
    why="The condition depends on the arguments alone, and nothing before this line changes them, so "
    "it is the same when it is read first. As an argument it is guarded: true and false have a graph "
    "each, as they had after the graph break, and never a wrong result.",
    propose=_propose,
)
