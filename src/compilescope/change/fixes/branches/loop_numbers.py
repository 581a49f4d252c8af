"""Python numbers that a `while` goes on with, held as tensors of no dimensions by the same names.

Of `peak = x.max().item()`, `while peak > 1:`, Dynamo stops where the number is read, and then makes
a graph for each number. So it does of `scale = 1.0`, `while (x * scale).max() > 1:`, where the loop
computes with a number. As tensors they can go from one turn of an operator to the next, if nobody
needs the numbers. Python computes in double precision: so do they.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from compilescope.change.fixes.branches.branch import (
    facts_of_tensors,
    moved,
    torch_name,
    with_files,
)
from compilescope.change.fixes.branches.numbers import changes_of, check_counter
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import as_tensor, extraction_at, read_from
from compilescope.change.fixes.values.kinds import Kind, kind_of
from compilescope.change.fixes.values.scalars import Uses
from compilescope.change.fixes.values.tensors import is_static, is_tensor
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_NUMBERS = ("builtins.int", "builtins.float")
_INFINITE = frozenset({"math.inf", "numpy.inf", "torch.inf"})
_AUGMENTED = kinds(lambda: (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign))
_DIVIDED = kinds(lambda: (cst.DivideAssign, cst.Divide))
_PLAIN = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply))
_COUNTING = kinds(lambda: (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign))


def numbers_as_tensors(propose: Callable[[Subject], Patch]) -> Callable[[Subject], Patch]:
    """The same fix for a loop that goes on with Python numbers."""

    def proposed(subject: Subject) -> Patch:
        loop = _loop_of(subject)
        numbers = _numbers_of(subject, loop) if loop is not None else []
        if loop is None or not numbers:
            return propose(subject)
        line = subject.module.line(loop)
        return propose(moved(_held(subject, loop, numbers), line))

    return proposed


@dataclass(frozen=True)
class _Number:
    name: str
    start: cst.BaseExpression
    """What it is before the loop."""
    read: tuple[cst.Call, ...]
    """Where it is read out of a tensor: `t.item()`."""
    dtype: str
    """Of the tensor that holds it; empty for that of the tensor that it is read from."""


def _loop_of(subject: Subject) -> cst.While | None:
    """The one around the finding, or the one that tests the number that is read there."""
    module = subject.module
    for each in [subject.node, *module.ancestors(subject.node)]:
        if isinstance(each, cst.While):
            return each
        if isinstance(each, cst.FunctionDef):
            break
    line = subject.statement
    names = set(liveness.names_set(module, line))
    if not isinstance(line, cst.SimpleStatementLine) or not names:
        return None
    for each in module.walk(subject.function.body):
        if isinstance(each, cst.While) and names & liveness.names_read(module, each.test):
            return each
    return None


def _numbers_of(subject: Subject, loop: cst.While) -> list[_Number]:
    """Raises `Refused` where the loop changes a number in a way that no tensor follows."""
    module = subject.module
    found = []
    for name in liveness.names_set(module, loop.body):
        if not _is_number(subject, loop, name):
            continue
        with suppress(Refused):
            check_counter(subject, loop, name)
            continue
        found.append(_number(subject, loop, name))
    asked = liveness.names_read(module, loop.test)
    by_number = any(each.name in asked and each.read for each in found)
    if found and not by_number and not any(is_tensor(subject, x) for x in module.walk(loop.test)):
        return []  # Python knows how often it runs.
    names = [each.name for each in found]
    return [_as_used(subject, loop, each, names) for each in found]


def _as_used(subject: Subject, loop: cst.While, held: _Number, names: list[str]) -> _Number:
    """Raises `Refused` where it is used as a number. `2 ** turns` has no end in Python, and one in
    64 bits: as an exponent, a count is a float, which holds powers of two as they are."""
    if held.dtype != "int64":
        _check_uses(subject, loop, held, names)
        return held
    for dtype in ("int64", "float64"):
        with suppress(Refused):
            _check_uses(subject, loop, replace(held, dtype=dtype), names)
            return replace(held, dtype=dtype)
    check_counter(subject, loop, held.name)  # says why it is no counter either
    return held


def _is_number(subject: Subject, loop: cst.While, name: str) -> bool:
    line = subject.module.line(loop)
    seen = subject.facts(name, line)
    if not seen and not subject.program.facts.seen:
        value = liveness.only_value(subject.module, subject.function, name)
        given = [value] if value is not None else []
        given += [each.value for each in _plain_changes(subject, name)]
        if any(_is_constant(subject, x) or read_from(subject.module, x) for x in given):
            raise NeedsRun(f"only a run can show what `{name}` holds when the loop begins")
    return bool(seen) and all(fact.type in _NUMBERS for fact in seen)


def _plain_changes(subject: Subject, name: str) -> Iterator[cst.Assign]:
    for each in changes_of(subject.module, subject.function.body, name):
        if isinstance(each, cst.Assign):
            yield each


def _number(subject: Subject, loop: cst.While, name: str) -> _Number:
    module = subject.module
    inside = changes_of(module, loop.body, name)
    before = [
        each
        for each in changes_of(module, subject.function.body, name)
        if not any(each is other for other in inside)
    ]
    start = before[0] if len(before) == 1 else None
    if not isinstance(start, cst.Assign) or not _is_alone(subject, start, loop):
        raise Refused(f"`{name}` is not set once, right before the loop")
    values = [start.value, *(each.value for each in inside if isinstance(each, cst.Assign))]
    read = [each for each in values if read_from(module, each) is not None]
    if start.value not in read and not _is_constant(subject, start.value):
        raise Refused(f"`{short(module, start)}` is no number that is written out")
    computed = [each for each in inside if getattr(each, "value", None) not in read]
    for each in computed:
        _check_arithmetic(subject, each, name)
    whole = _is_whole(subject, start.value) and all(_counts(each) for each in computed)
    found = tuple(each for each in read if isinstance(each, cst.Call))
    if whole and not found:
        return _Number(name, start.value, found, "int64")
    same = len({kind_of(subject, extraction_at(subject, each).tensor).dtype for each in found}) == 1
    if same and not computed and start.value in read:
        return _Number(name, start.value, found, "")
    return _Number(name, start.value, found, "float64")


def _is_alone(subject: Subject, start: cst.Assign, loop: cst.While) -> bool:
    """A line of its own, before the loop and in the same block."""
    module = subject.module
    line = module.parent(start)
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not alone or len(start.targets) != 1 or not isinstance(start.targets[0].target, cst.Name):
        return False
    block: list[cst.CSTNode] = list(module.block_of(loop).body)
    return line in block and block.index(line) < block.index(loop)


def _is_constant(subject: Subject, node: cst.CSTNode) -> bool:
    """`1.0`, `float("inf")`, `math.inf`."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return _is_constant(subject, node.expression)
    if isinstance(node, cst.Call) and subject.module.calls(node, "builtins.float"):
        return len(node.args) == 1 and isinstance(node.args[0].value, cst.SimpleString)
    return number(node) is not None or bool(subject.module.meaning(node) & _INFINITE)


def _is_whole(subject: Subject, node: cst.CSTNode) -> bool:
    return isinstance(number(node), int)


def _check_arithmetic(subject: Subject, change: cst.CSTNode, name: str) -> None:
    """Raises `Refused` unless a tensor that took the number's place would be computed likewise."""
    module = subject.module
    shown = short(module, change)
    if isinstance(change, cst.AugAssign):
        if isinstance(change.operator, _DIVIDED) and _is_nonzero(change.value):
            return
        if isinstance(change.operator, _AUGMENTED) and is_static(subject, change.value):
            return
    single = isinstance(change, cst.Assign) and len(change.targets) == 1
    if single and _is_sum(subject, change.value, name):  # type: ignore[attr-defined]
        return
    raise Refused(f"`{shown}` changes a Python number in a way that a tensor does not follow")


def _is_sum(subject: Subject, node: cst.CSTNode, name: str) -> bool:
    """Sums, products and quotients of the number and of others that are the same in all turns."""
    if isinstance(node, cst.Name) and node.value == name:
        return True
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, _DIVIDED):
            return _is_sum(subject, node.left, name) and _is_nonzero(node.right)
        sides = (node.left, node.right)
        return isinstance(node.operator, _PLAIN) and all(_is_sum(subject, x, name) for x in sides)
    return is_static(subject, node)


def _is_nonzero(node: cst.CSTNode) -> bool:
    return bool(number(node))


def _counts(change: cst.CSTNode) -> bool:
    """By whole numbers, up or down: what Python's ints and 64 bits do alike."""
    if isinstance(change, cst.AugAssign):
        return isinstance(change.operator, _COUNTING) and isinstance(number(change.value), int)
    value = change.value if isinstance(change, cst.Assign) else None
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, _COUNTING):
        return False
    return isinstance(value.left, cst.Name) and isinstance(number(value.right), int)


def _check_uses(subject: Subject, loop: cst.While, held: _Number, names: list[str]) -> None:
    """Raises `Refused` where anything but the test and its own arithmetic needs the number."""
    module = subject.module
    within = [each for name in names for each in changes_of(module, loop.body, name)]
    leaving = {x for each in within for x in liveness.reads(module, each) if x.value == held.name}
    leaving |= set(_tested(subject, loop, held.name))
    kind = Kind(held.dtype, ()) if held.dtype else None
    tensor = extraction_at(subject, held.read[0]).tensor if kind is None else None
    uses = Uses(subject, leaving=leaving, tensor=tensor, kind=kind, set_again=[loop])
    uses.follow_name(held.name)


def _tested(subject: Subject, loop: cst.While, name: str) -> list[cst.Name]:
    """Where the test compares the number, or a sum or product of it."""
    module = subject.module
    found = []
    for read in liveness.reads(module, loop.test):
        above = module.parent(read)
        while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _PLAIN):
            above = module.parent(above)
        if read.value == name and isinstance(above, (cst.Comparison, cst.ComparisonTarget)):
            found.append(read)
    return found


def _unaugmented(change: cst.AugAssign) -> cst.CSTNode:
    """`v = v / 2` of `v /= 2`, which would change a tensor in place."""
    from compilescope.knowledge.source.syntax.transformers import Unaugmented

    made = change.visit(Unaugmented())
    assert isinstance(made, cst.CSTNode)
    return made


def _held(subject: Subject, loop: cst.While, numbers: list[_Number]) -> Subject:
    """The program with tensors by those names."""
    module, edit = subject.module, Edit(subject.module)
    torch = torch_name(subject, edit)
    for each in numbers:
        for call in each.read:
            tensor = extraction_at(subject, call).tensor
            text = as_tensor(subject, tensor, only_compared=not each.dtype)
            double = each.dtype == "float64" and kind_of(subject, tensor).dtype != "float64"
            edit.replace(call, edit.expression(f"{text}.double()" if double else text))
        if each.start not in each.read:
            kind = f", dtype={torch}.float64" if each.dtype == "float64" else ""
            code = module.code(each.start)
            edit.replace(each.start, edit.expression(f"{torch}.tensor({code}{kind})"))
        for change in changes_of(module, loop.body, each.name):
            if isinstance(change, cst.AugAssign):
                edit.replace(change, _unaugmented(change))
        if not each.dtype:
            for read in _tested(subject, loop, each.name):
                edit.replace(read, edit.expression(f"{each.name}.item()"))
    files = edit.files()
    if files[module.path].count("\n") != module.text.count("\n"):
        raise Refused("a number of the loop is read on several lines")
    facts = facts_of_tensors(subject, {each.name: each.dtype for each in numbers})
    return with_files(subject, {**subject.program.files, **files}, facts)
