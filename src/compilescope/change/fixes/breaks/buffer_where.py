"""A branch on a tensor that chooses which of two values an attribute holds: `torch.where` chooses.

What a side makes on its first visit (`if not hasattr(self, "table"): ...`) is made in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.change.fixes.branches.branch import (
    RULES,
    asked_by_name,
    branch_of,
    replace_branch,
    torch_name,
)
from compilescope.change.fixes.branches.condition import read_test
from compilescope.change.fixes.branches.effects import parts_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import LONGEST
from compilescope.knowledge.source.trees import cst


@dataclass(frozen=True)
class _Setting:
    """`self.register_buffer("table", value, ...)` or `self.table = value`."""

    owner: str
    name: str
    value: cst.BaseExpression
    around: tuple[str, str]
    """The code before the value and after it."""


@dataclass(frozen=True)
class _Side:
    prepared: list[cst.CSTNode]
    """What it does first, which may be done whichever way the branch goes."""
    made: set[str]
    """Attributes that it makes on its first visit."""
    touched: set[str]
    """All attributes that it sets before the setting."""
    setting: _Setting


def _propose(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    if not isinstance(branch.orelse, cst.Else):
        raise NotMeant("it has no `else`")
    truth = read_test(subject, branch.test)
    sides = [_side(module, block) for block in (branch.body, branch.orelse.body)]
    one, other = (side.setting for side in sides)
    if (one.owner, one.name, one.around) != (other.owner, other.name, other.around):
        raise Refused("the two sides set different things")
    if truth.static:
        raise Refused(f"`{truth.static}` in its condition is not a tensor")
    touched = set[str]().union(*(side.touched for side in sides))
    _check_apart(module, branch, touched, {one.name})
    edit = Edit(module)
    values = ", ".join(module.code(each.value) for each in (one, other))
    picked = f"{torch_name(subject, edit)}.where({truth.tensor}, {values})"
    head, tail = one.around
    line = f"{head}{picked}{tail}"
    if len(line) > LONGEST:
        opened = head.index("(") + 1 if tail else 0
        line = f"{head[:opened]}\n    {head[opened:]}{picked}{tail[:-1]}\n)" if opened else line
    new: list[cst.BaseStatement] = []
    for side in sides:
        new += [part for part in side.prepared if isinstance(part, cst.BaseStatement)]
    replace_branch(edit, branch, [*new, *edit.statements(line)])
    made = sorted(set[str]().union(*(side.made for side in sides)))
    states = _stated(one.name, made)
    return Patch(edit.files(), states=states, allows=frozenset({"rebuilt-attributes"}))


def _stated(name: str, made: Sequence[str]) -> str:
    words = f"`{name}` is a new tensor in every call."
    if not made:
        return words
    names = " and ".join(f"`{each}`" for each in made)
    verb = "is" if len(made) == 1 else "are"
    return f"{names} {verb} created by the first call whichever way the branch goes; {words}"


def _side(module: SourceModule, block: cst.BaseSuite) -> _Side:
    """Raises `NotMeant` where it does not end by setting an attribute, `Refused` where what comes
    before may not be done in any case."""
    statements = list(block.body)
    parts = list(parts_of(block))
    setting = _setting(module, parts[-1]) if parts else None
    if setting is None or len(statements) != len(parts):
        raise NotMeant("a side does not end by setting an attribute")
    made: set[str] = set()
    touched: set[str] = set()
    for part in parts[:-1]:
        lazy = _lazily_made(module, part)
        moved = "" if lazy else _moved(module, part)
        if not lazy and not moved:
            raise Refused(f"a branch does more than set `{setting.name}`: `{short(module, part)}`")
        made |= lazy
        touched |= lazy or {moved}
    return _Side(statements[:-1], made, touched, setting)


def _setting(module: SourceModule, part: cst.CSTNode) -> _Setting | None:
    if isinstance(part, cst.Assign) and len(part.targets) == 1:
        target = part.targets[0].target
        if _is_own(target) and _is_value(part.value):
            assert isinstance(target, cst.Attribute)
            code = module.code(target)
            return _Setting(
                module.code(target.value), target.attr.value, part.value, (f"{code} = ", "")
            )
    call = part.value if isinstance(part, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value != "register_buffer" or len(call.args) < 2:
        return None
    name, value = call.args[0], call.args[1]
    if name.keyword or value.keyword or name.star or value.star or not _is_value(value.value):
        return None
    if not isinstance(name.value, cst.SimpleString):
        return None
    rest = "".join(
        f", {arg.keyword.value}={module.code(arg.value)}"
        if arg.keyword
        else f", {module.code(arg.value)}"
        for arg in call.args[2:]
    )
    owner, called = module.code(call.func.value), _word(name.value)
    head = f"{owner}.register_buffer({module.code(name.value)}, "
    return _Setting(owner, called, value.value, (head, f"{rest})"))


def _word(node: cst.SimpleString) -> str:
    value = node.evaluated_value
    return value if isinstance(value, str) else ""


def _is_own(node: cst.CSTNode) -> bool:
    """`self.table`."""
    return isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)


def _is_value(node: cst.CSTNode) -> bool:
    """Something that is there already: to name it computes nothing."""
    return isinstance(node, cst.Name) or _is_own(node)


def _lazily_made(module: SourceModule, part: cst.CSTNode) -> set[str]:
    """The attributes that `if not hasattr(self, "table"): self.table = ...` makes; none where it
    is another thing."""
    if not isinstance(part, cst.If) or part.orelse is not None:
        return set()
    tested = _absent(module, part.test)
    names: set[str] = set()
    for each in parts_of(part.body):
        if not isinstance(each, cst.Assign) or len(each.targets) != 1:
            return set()
        target = each.targets[0].target
        nodes = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        for node in nodes:
            if _is_own(node):
                names.add(module.code(node))
            elif not (isinstance(node, cst.Name) and node.value == "_"):
                return set()
    return {name.partition(".")[2] for name in names} if tested in names else set()


def _absent(module: SourceModule, test: cst.BaseExpression) -> str:
    """`self.table` of `not hasattr(self, "table")` and of `self.table is None`."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        call = test.expression
        if not isinstance(call, cst.Call) or not module.calls(call, "builtins.hasattr"):
            return ""
        owner, name = (
            (call.args[0].value, call.args[1].value) if len(call.args) == 2 else (None, None)
        )
        if isinstance(owner, cst.Name) and isinstance(name, cst.SimpleString):
            return f"{owner.value}.{_word(name)}"
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        is_none = isinstance(only.operator, cst.Is) and module.code(only.comparator) == "None"
        return module.code(test.left) if is_none and _is_own(test.left) else ""
    return ""


def _moved(module: SourceModule, part: cst.CSTNode) -> str:
    """`table` of `self.table = self.table.to(device)`: the same numbers, maybe elsewhere."""
    if not isinstance(part, cst.Assign) or len(part.targets) != 1:
        return ""
    target, value = part.targets[0].target, part.value
    if not _is_own(target) or not isinstance(value, cst.Call):
        return ""
    func = value.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "to":
        return ""
    assert isinstance(target, cst.Attribute)
    return target.attr.value if module.code(func.value) == module.code(target) else ""


def _check_apart(
    module: SourceModule, branch: cst.If, touched: set[str], set_last: set[str]
) -> None:
    """The condition is now read after what the sides do first."""
    for node in module.walk(branch.test):
        if isinstance(node, cst.Attribute) and node.attr.value in touched:
            raise Refused(f"its condition reads `{module.code(node)}`, which a side sets")
    if touched & set_last:
        raise Refused("a side sets the attribute twice")


FIX = Fix(
    id="where-for-buffer",
    title="choose the buffer with torch.where",
    rules=RULES,
    order=110,
    kind="source",
    why="Both sides only set an attribute to a tensor that is there, or that the side makes on its "
    "first visit. `torch.where` over the two gives the attribute the same numbers. The attribute "
    "no longer shares memory with the tensor it was chosen from.",
    propose=asked_by_name(_propose),
)
