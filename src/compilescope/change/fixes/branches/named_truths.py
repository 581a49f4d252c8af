"""A truth that gets a name before it is tested: `done = flag and x.max() > 3`, then `if done:`.

Where Dynamo stops at the assignment, because Python asks a tensor there, the name is given the
truth without asking, and each test then asks it. A name whose value is what is no tensor or else a
tensor, `flag and t`, is tested as both are: what is no tensor by an `if`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import ValueFact
from compilescope.change.fixes.values.tensors import facts_of, is_static, is_tensor
from compilescope.knowledge.source.flow.liveness import (
    declared_elsewhere,
    only_value,
    reads,
    targets,
)
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_TESTING = kinds(lambda: (cst.If, cst.IfExp))
_JOINING = kinds(lambda: (cst.Comparison, cst.BooleanOperation))
_LOOPS = kinds(lambda: (cst.For, cst.While))
_PLACES = kinds(lambda: (cst.Name, cst.Attribute, cst.Subscript))
_QUANTIFIERS = ("builtins.any", "builtins.all")
_EQUALITIES = ("allclose", "equal")


def is_joined(node: cst.CSTNode, operator: type[cst.BaseBooleanOp]) -> bool:
    return isinstance(node, cst.BooleanOperation) and isinstance(node.operator, operator)


def operands(
    node: cst.BaseExpression, operator: type[cst.BaseBooleanOp]
) -> list[cst.BaseExpression]:
    """Of `a and b and c`, all three."""
    if is_joined(node, operator):
        assert isinstance(node, cst.BooleanOperation)
        return [*operands(node.left, operator), *operands(node.right, operator)]
    return [node]


def without_bool(module: SourceModule, node: cst.BaseExpression) -> cst.BaseExpression:
    """`t` of `bool(t)`."""
    while isinstance(node, cst.Call) and module.calls(node, "builtins.bool"):
        if len(node.args) != 1 or node.args[0].star or node.args[0].keyword is not None:
            break
        node = node.args[0].value
    return node


@dataclass(frozen=True)
class NamedTruth:
    name: str
    value: cst.BaseExpression
    """All that the name is set to."""
    tests: tuple[tuple[int, int | None], ...]
    """Where a fix looks for them: line, and the column of one that is part of a line."""


def named_truth(subject: Subject) -> NamedTruth | None:
    """The assignment that Dynamo stopped within, of a truth that is tested by its name. None where
    it is another thing. Raises `Refused` where the name is used for more than its truth."""
    module, line = subject.module, subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    given = line.body[0]
    if not isinstance(given, cst.Assign) or len(given.targets) != 1:
        return None
    target = given.targets[0].target
    if not isinstance(target, cst.Name) or not _is_truth(subject, given.value):
        return None
    function = module.function_of(line)
    if function is None or only_value(module, function, target.value) is not given.value:
        return None
    if target.value in declared_elsewhere(module, function):
        return None
    tests = tests_of(module, function, target.value)
    return NamedTruth(target.value, given.value, tests) if tests else None


def tests_of(
    module: SourceModule,
    function: cst.FunctionDef,
    name: str,
    but: Sequence[cst.BaseExpression] = (),
) -> tuple[tuple[int, int | None], ...]:
    """Where the name is tested; empty where it never is. Raises `Refused` where something else is
    done with it, but for what it is set to in a step."""
    steps = {id(part) for each in but for part in each.children}
    found = [
        each
        for each in reads(module, function.body)
        if each.value == name and id(each) not in steps
    ]
    tests = [_test_of(module, each) for each in found]
    if not any(tests):
        return ()
    for read, test in zip(found, tests, strict=True):
        if test is None or module.function_of(read) is not function:
            shown = short(module, module.parent(read) or read)
            raise Refused(f"`{name}` is used in `{shown}` for more than its truth")
    owners = dict.fromkeys(outermost(module, each) for each in tests if each is not None)
    return tuple(place_of(module, each) for each in owners)


def _is_truth(subject: Subject, node: cst.BaseExpression) -> bool:
    """Does Python ask tensors while it computes it, and is it what they answer?"""
    module = subject.module
    if any(isinstance(each, cst.IfExp) for each in module.walk(node)):
        return False  # Dynamo may have stopped at its test, which is another matter.
    node = without_bool(module, node)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Not)
    if isinstance(node, _JOINING) or module.calls(node, *_QUANTIFIERS):
        return True
    return isinstance(node, cst.Call) and operator_of(module, node) in _EQUALITIES


def _test_of(module: SourceModule, read: cst.CSTNode) -> cst.CSTNode | None:
    """The `if` that asks for the name and nothing else, as it is or negated."""
    above = module.parent(read)
    while isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Not):
        read, above = above, module.parent(above)
    return above if isinstance(above, _TESTING) and above.test is read else None


def outermost(module: SourceModule, test: cst.CSTNode) -> cst.CSTNode:
    """Of an `elif`, the first `if`: a fix takes them together."""
    above = module.parent(test)
    while isinstance(test, cst.If) and isinstance(above, cst.If) and above.orelse is test:
        test, above = above, module.parent(above)
    return test


def place_of(module: SourceModule, test: cst.CSTNode) -> tuple[int, int | None]:
    """Where a fix finds a test: its line, and the column of one that is part of a line."""
    if isinstance(test, cst.IfExp):
        start = module.position(test.test).start
        return start.line, start.column
    return module.line(test), None


@dataclass(frozen=True)
class HeldTruth:
    """What a tested name holds: the last of what `and` or `or` joins, or what decided before."""

    name: cst.Name
    negated: bool
    word: str
    static: tuple[cst.BaseExpression, ...]
    tensor: cst.BaseExpression
    seen: tuple[ValueFact, ...]
    """The tensors among what the name was seen to hold."""


def held_by_name(subject: Subject, test: cst.BaseExpression) -> HeldTruth | None:
    """None where the test is no name, or the name is set to something else. Raises `Refused` where
    what is no tensor may have changed until the test."""
    module, negated, name = subject.module, False, test
    while isinstance(name, cst.UnaryOperation) and isinstance(name.operator, cst.Not):
        name, negated = name.expression, not negated
    function = module.function_of(name) if isinstance(name, cst.Name) else None
    if not isinstance(name, cst.Name) or function is None:
        return None
    value = only_value(module, function, name.value)
    if not isinstance(value, cst.BooleanOperation):
        return None
    joint = cst.Or if is_joined(value, cst.Or) else cst.And
    *first, last = operands(value, joint)
    if not all(is_static(subject, each) for each in first) or is_static(subject, last):
        return None
    facts = facts_of(subject, name)
    seen = tuple(fact for fact in facts if fact.kind in ("tensor", "parameter"))
    if not seen and is_tensor(subject, last) is not True:
        return None
    if any(fact.kind not in ("tensor", "parameter", "number", "none") for fact in facts):
        return None
    for each in first:
        _check_unchanged(subject, each, _between(module, function, value, name))
    return HeldTruth(name, negated, "or" if joint is cst.Or else "and", tuple(first), last, seen)


def _between(
    module: SourceModule, function: cst.FunctionDef, value: cst.CSTNode, test: cst.CSTNode
) -> list[cst.CSTNode]:
    """What may run after the value is computed, before it is tested; in a loop around the test
    alone, all that follows the value."""
    around = {id(each) for each in module.ancestors(value)}
    loops = [each for each in module.ancestors(test) if isinstance(each, _LOOPS)]
    again = any(id(each) not in around for each in loops)
    first, last = module.position(value).end, module.position(test).start
    found = []
    for each in module.walk(function.body):
        at = module.position(each).start
        if (at.line, at.column) >= (first.line, first.column) and (
            again or (at.line, at.column) < (last.line, last.column)
        ):
            found.append(each)
    return found


def _check_unchanged(
    subject: Subject, part: cst.BaseExpression, between: list[cst.CSTNode]
) -> None:
    """Raises `Refused` where asking once more may give another answer."""
    module, shown = subject.module, short(subject.module, part)
    inside = list(module.walk(part))
    if any(isinstance(each, cst.Call) for each in inside):
        raise Refused(f"`{shown}` would be asked a second time")
    places = {module.code(each) for each in inside if isinstance(each, _PLACES)}
    is_held = any(isinstance(each, (cst.Attribute, cst.Subscript)) for each in inside)
    for node in between:
        changed = next((t for t in targets(node) if module.code(t) in places), None)
        if changed is not None:
            raise Refused(f"`{module.code(changed)}` of `{shown}` is set before the test")
        if is_held and isinstance(node, cst.Call) and not _only_computes(subject, node):
            raise Refused(f"`{short(module, node)}` may change `{shown}` before the test")


def _only_computes(subject: Subject, call: cst.Call) -> bool:
    """An operator, or a layer of torch's own."""
    module = subject.module
    if operator_of(module, call) is not None or module.calls(call, "builtins.len"):
        return True
    seen = facts_of(subject, call.func)
    return bool(seen) and all(
        fact.kind == "module" and fact.type.startswith("torch.nn.") for fact in seen
    )
