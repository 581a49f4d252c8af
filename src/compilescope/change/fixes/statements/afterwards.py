"""Statements that stay outside of the graph and run after it: the last ones of a function, or a
helper that only keeps what it is given. What they need is computed before.

`log.append(y.sum())` and `return (y * 2).tolist()` are nothing for a graph; `y.sum()` and `y * 2`
are. They become lines above, which go with the rest of the function into a core that is compiled
alone.

`history.record(loss)` adds to a list, `metric.update(y)` counts: nothing of that is for a graph,
and nothing that is computed later depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

import msgspec

from compilescope.change.fixes.branches.condition import read_test
from compilescope.change.fixes.branches.quantifiers import quantifier_of
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import leave_alone
from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.statements.work_first import work_first
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow.aliasing import is_fresh
from compilescope.knowledge.source.flow.cuts import (
    is_docstring,
    is_light,
    is_light_value,
    is_return,
    split_around,
)
from compilescope.knowledge.source.flow.purity import first, makes_record, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import (
    bound_names,
    definitions_of,
    local_names,
    parameters_of,
    statements_of,
)
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_GROWING = ("append", "extend", "appendleft", "insert")


class _Piece(NamedTuple):
    """A part of a statement that the core computes."""

    node: cst.BaseExpression
    code: str = ""
    """What to compute, where that is not the part itself."""
    back: str = "{}"
    """What stands in its place, with the name of what was computed."""


_CONVERSIONS = ("builtins.float", "builtins.int", "builtins.bool")
_METHODS = ("item", "tolist")


def done_afterwards(subject: Subject, outside: Sequence[cst.BaseStatement]) -> Patch:
    """These statements, and the last `return`, run when the core has. Raises `Refused` where more
    is computed after them with what they give."""
    subject, outside = work_first(subject, outside, grown_list)
    body = statements_of(subject.function)
    start = min(body.index(each) for each in outside)
    kept = [
        each
        for each in body
        if each in outside
        or (body.index(each) > start and _is_effect(subject.module, each))
        or (each is body[-1] and is_return(each))
    ]
    module, moved = _computed_first(subject, kept, outside)
    line = subject.module.line(subject.function)
    function = next(
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and module.line(each) == line
    )
    now = statements_of(function)
    places = [now[i + moved] for i, each in enumerate(body) if each in kept]
    edit = Edit(module)
    Shell(edit, function, split_around(module, now, places)).write(early=False)
    return Patch(edit.files())


def _is_effect(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """A call for its effect alone: behind a core that has ended it stays outside as well."""
    return _lone_call(statement) is not None and is_light(module, statement)


def _computed_first(
    subject: Subject,
    kept: Sequence[cst.BaseStatement],
    known: Sequence[cst.BaseStatement],
) -> tuple[SourceModule, int]:
    """The file with a line for each piece above the first of the statements; and how many lines.
    `known` are those of which it is known that they change nothing that is computed."""
    module, edit = subject.module, Edit(subject.module)
    body = statements_of(subject.function)
    start = body.index(kept[0])
    lines: list[str] = []
    for statement in kept:
        passed = body[start : body.index(statement)]
        between = bound_names(passed)
        unknown = [each for each in passed if each not in known and not _is_quiet(module, each)]
        for piece in _heavy(subject, statement, is_first=statement is kept[0]):
            shown = short(module, piece.node)
            later = sorted(module.names_in(piece.node) & between)
            if later:
                raise Refused(f"`{shown}` needs `{later[0]}`, which is read before it")
            _check_untouched(subject, piece.node, unknown)
            name = module.fresh_name(f"value_{len(lines) + 1}" if lines else "value")
            lines.append(f"{name} = {piece.code or module.code(bare(piece.node))}")
            edit.replace(piece.node, edit.expression(piece.back.format(name)))
    if not lines:
        return module, 0
    edit.put_before(body[start], "\n".join(lines))
    return SourceModule(module.path, edit.text()), len(lines)


def _is_quiet(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """It changes no tensor: output, one more item of a list, a name for something that is there."""
    if grown_list(statement) is not None:
        return True
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    calls = [each.value for each in parts if isinstance(each, cst.Expr)]
    return all(output_of(module, each) is not None for each in calls)


def _check_untouched(
    subject: Subject, node: cst.BaseExpression, unknown: Sequence[cst.BaseStatement]
) -> None:
    """Raises `Refused` where a statement that came before may change what goes into it: what it
    is given as it is, an attribute, or a variable of another scope."""
    module, own = subject.module, local_names(subject.function)
    read = module.names_in(node)
    outer = {each for each in read - own if not _is_imported(module, node, each)}
    for statement in unknown:
        touched = read & _handed_on(module, statement)
        if touched or outer:
            shown = short(module, statement)
            raise Refused(f"`{shown}` may change `{min(touched or outer)}`, which is read after it")


def _is_imported(module: SourceModule, node: cst.CSTNode, name: str) -> bool:
    """A module or a builtin: no statement gives it another meaning."""
    named = next(
        each for each in module.walk(node) if isinstance(each, cst.Name) and each.value == name
    )
    imports = (cst.Import, cst.ImportFrom, cst.ImportAlias)
    return all(isinstance(each, imports) for each in definitions_of(module, named))


def _handed_on(module: SourceModule, statement: cst.BaseStatement) -> set[str]:
    """Names whose very value it gets, to keep or to change; not those of which it gets a new
    tensor."""
    found: set[str] = set()
    pending: list[cst.CSTNode] = [statement]
    while pending:
        each = pending.pop()
        if isinstance(each, cst.Expr) or not is_fresh(module, each):
            found |= {each.value} & module.names_in(each) if isinstance(each, cst.Name) else set()
            pending += each.children
    return found


def _heavy(subject: Subject, statement: cst.BaseStatement, *, is_first: bool) -> Iterator[_Piece]:
    """Raises `Refused` for a piece that does more than compute: it would come too early. The only
    one of the first statement comes when it always came."""
    module = subject.module
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, cst.Return) and only.value is None:
        return
    value = only.value if isinstance(only, (cst.Assign, cst.Return, cst.Expr)) else None
    if value is None:
        raise Refused(f"`{short(module, statement)}` is not a statement of its own")
    pieces = [
        piece
        for part in _parts(module, value, called=isinstance(only, cst.Expr))
        for piece in list(_pieces(subject, part)) or [_Piece(part)]
    ]
    in_its_time = is_first and len(pieces) == 1
    for piece in pieces:
        if is_light_value(module, piece.node):
            continue
        early = () if in_its_time else ("effect", "unknown")
        found = first(module, [piece.node], *early, "by-value")
        if found is not None and not piece.code:
            raise Refused(found.words.replace("the branch", "the statement"))
        yield piece


def _parts(
    module: SourceModule, value: cst.BaseExpression, *, called: bool = False
) -> Iterator[cst.BaseExpression]:
    """Of a tuple, a list or a dict, each; of a call that is a statement, and of a dataclass, what
    it is given."""
    if isinstance(value, cst.Call) and (called or makes_record(module, value.func)):
        for arg in value.args:
            yield from _parts(module, arg.value)
    elif isinstance(value, (cst.Tuple, cst.List)):
        for element in value.elements:
            yield from _parts(module, element.value)
    elif isinstance(value, cst.Dict):
        for entry in value.elements:
            yield from _parts(module, entry.value)
    else:
        yield value


def converts(subject: Subject, statement: cst.CSTNode) -> bool:
    """Is a Python value made of a tensor there?"""
    return any(_tensor_of(subject, each) is not None for each in subject.module.walk(statement))


def _tensor_of(subject: Subject, node: cst.CSTNode) -> cst.BaseExpression | None:
    """`t` of `t.tolist()`, `float(t)`, `not t`; of `any(...)`, itself."""
    module = subject.module
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return node.expression
    if not isinstance(node, cst.Call):
        return None
    if module.calls(node, *_CONVERSIONS) and len(node.args) == 1 and not node.args[0].star:
        return node.args[0].value
    if module.calls(node, "builtins.any", "builtins.all"):
        return node
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value in _METHODS and not node.args:
        return func.value
    return None


def _pieces(subject: Subject, part: cst.BaseExpression) -> Iterator[_Piece]:
    """What is converted there, each the whole that is a tensor still."""
    module = subject.module
    inside: set[cst.CSTNode] = set()
    for each in module.walk(part):
        tensor = _tensor_of(subject, each) if each not in inside else None
        if tensor is None:
            continue
        inside |= {each, *module.walk(each)}
        while tensor is not each and (inner := _tensor_of(subject, tensor)) is not None:
            each, tensor = tensor, inner
        if quantifier_of(subject, tensor) is not None:
            yield _Piece(tensor, read_test(subject, tensor).text, "bool({})")
        else:
            yield _Piece(tensor)


def _lone_call(statement: cst.BaseStatement) -> cst.Call | None:
    """A call that is a statement of its own."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    value = only.value if isinstance(only, cst.Expr) else None
    return value if isinstance(value, cst.Call) else None


def grown_list(statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """`self.log` of `self.log.append(y)`."""
    call = _lone_call(statement)
    func = call.func if call is not None else None
    if not isinstance(func, cst.Attribute) or func.attr.value not in _GROWING:
        return None
    return func.value


def called_afterwards(subject: Subject, where: SourceModule, caller: cst.FunctionDef) -> Patch:
    """The function around the finding is a helper: `caller`, which is compiled, calls it after its
    core. Raises `Refused` where it does more than keep values, or its caller more with it."""
    helper = subject.function
    name = helper.name.value
    if subject.module.class_of(helper) is None:
        raise Refused(f"it is unknown who else knows what `{name}` keeps")
    kept = _kept(subject.module, helper)
    calls = [each for each in where.walk(caller.body) if _calls(each, name)]
    lines = [each for each in statements_of(caller) if _lone_call(each) in calls]
    methods = all(isinstance(each.func, cst.Attribute) for each in calls)
    if not calls or len(lines) != len(calls) or not methods:
        raise Refused(
            f"`{name}` is part of another function's graph, and not called by a statement of "
            f"`{caller.name.value}`"
        )
    there = subject.at(where, lines[0])
    check_only(there, cst.ensure_type(calls[0].func, cst.Attribute).value, lines)
    patch = done_afterwards(there, lines)
    if all(is_light_value(subject.module, each) for each in kept):
        return patch
    return _left_alone(subject, patch)


def _kept(module: SourceModule, helper: cst.FunctionDef) -> list[cst.BaseExpression]:
    """What the helper adds to lists and sets attributes of its own object to."""
    found: list[cst.BaseExpression] = []
    for each in statements_of(helper):
        if is_docstring(each):
            continue
        values = _added(helper, each) or _set(helper, each)
        if not values or first(module, [*values], "effect", "unknown", "random") is not None:
            raise Refused(
                f"`{helper.name.value}` is part of another function's graph, and does more than "
                "keep what it is given"
            )
        found += values
    return found


def _set(helper: cst.FunctionDef, statement: cst.BaseStatement) -> list[cst.BaseExpression]:
    """`y` of `self.last = y` and of `self.total += y`."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, cst.Assign) and len(only.targets) == 1:
        target: cst.BaseExpression = only.targets[0].target
    elif isinstance(only, cst.AugAssign):
        target = only.target
    else:
        return []
    return [only.value] if _is_own(helper, target) else []


def _is_own(helper: cst.FunctionDef, target: cst.BaseExpression) -> bool:
    """`self.total`: an attribute of the helper's own object."""
    holder = target.value if isinstance(target, cst.Attribute) else None
    return isinstance(holder, cst.Name) and [holder.value] == parameters_of(helper)[:1]


def _left_alone(subject: Subject, patch: Patch) -> Patch:
    """Where the helper computes what it keeps, Dynamo would compile it by itself."""
    module, helper = subject.module, subject.function
    number = _namesakes(module, helper).index(helper)
    now = SourceModule(module.path, patch.files.get(module.path, module.text))
    edit = Edit(now)
    leave_alone(edit, _namesakes(now, helper)[number])
    return msgspec.structs.replace(patch, files={**patch.files, **edit.files()})


def _namesakes(module: SourceModule, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """All functions of that name, in order: lines put between them change nothing in it."""
    return [
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == function.name.value
    ]


def check_only(
    subject: Subject, held: cst.BaseExpression, lines: Sequence[cst.BaseStatement]
) -> None:
    """Raises `Refused` where the function names what holds the list anywhere else."""
    module = subject.module
    shown = module.code(held)
    uses = [
        each
        for each in module.walk(subject.function.body)
        if isinstance(each, (cst.Name, cst.Attribute)) and module.code(each) == shown
    ]
    if len(uses) != len(lines):
        raise Refused(f"the function does more with `{shown}` than add to it")


def _calls(node: cst.CSTNode, name: str) -> TypeGuard[cst.Call]:
    func = node.func if isinstance(node, cst.Call) else None
    called = func.attr if isinstance(func, cst.Attribute) else func
    return isinstance(called, cst.Name) and called.value == name


def _added(helper: cst.FunctionDef, statement: cst.BaseStatement) -> list[cst.BaseExpression]:
    """`y` of `self.log.append(y)`; nothing of what adds to no list of its own."""
    call, grown = _lone_call(statement), grown_list(statement)
    own = call is not None and grown is not None and _is_own(helper, grown)
    return [arg.value for arg in call.args] if own and call is not None else []
