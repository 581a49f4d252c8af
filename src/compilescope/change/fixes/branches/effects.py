"""A branch of an `if` as a list of effects: this name, this buffer, this row gets this value; loops
over lists too, and whether a caller could tell a copy from the argument.

`for g in grads: g.mul_(c)` is an effect on each item. A fix may make a copy in place of an argument
that a function hands back; who changes one of the two in place would see the difference.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import facts_of, is_static
from compilescope.knowledge.source.flow import liveness, operators
from compilescope.knowledge.source.flow.aliasing import (
    changes_in_place,
    is_buffer,
    is_fresh_local,
    runs_without_grad,
)
from compilescope.knowledge.source.flow.liveness import is_read_later, parameters, targets
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import LONGEST, number, spread
from compilescope.knowledge.source.trees import cst

_OUTSIDE = "Return the condition as a tensor, and do this outside the compiled code."
Small: TypeAlias = "cst.BaseSmallStatement | cst.BaseCompoundStatement"


@dataclass(frozen=True)
class Effect:
    """One target gets one value."""

    kind: Literal["name", "store", "copy"]
    """`name`: a local variable is bound; `store`: a row or an attribute is; `copy`: a tensor is
    changed in place."""
    target: str
    value: str
    """The code of the new value."""
    nodes: tuple[cst.CSTNode, ...] = ()
    """What is evaluated for it."""
    plain: bool = False
    """Nobody else reads it, so it is set whichever way the branch goes."""
    operand: cst.BaseExpression | None = None
    """The value's own expression, where it is one of the file's."""
    loop: str = ""
    """The head of the loop that makes it so of each item of a list, and of the `if` in it."""

    def line(self) -> str:
        """One statement; on several lines where it grows long."""
        once = self._once()
        depth = len(self.loop.splitlines())
        return f"{self.loop}\n{textwrap.indent(once, '    ' * depth)}" if self.loop else once

    def _once(self) -> str:
        copies = self.kind == "copy"
        flat = f"{self.target}.copy_({self.value})" if copies else f"{self.target} = {self.value}"
        if len(flat) <= LONGEST or "\n" in flat:
            return flat
        if copies:
            return f"{self.target}.copy_(\n    {spread(self.value, 1)}\n)"
        return f"{self.target} = {spread(self.value, 0)}"


def parts_of(block: cst.CSTNode) -> Iterator[Small]:
    """The statements of a block, those that share a line one by one."""
    for each in getattr(block, "body", ()):
        if isinstance(each, cst.SimpleStatementLine):
            yield from each.body
        else:
            yield each


def only_reports(subject: Subject, branch: cst.BaseStatement, part: cst.CSTNode) -> bool:
    """It logs, or computes what is logged and read nowhere after the branch."""
    module = subject.module
    if isinstance(part, cst.Expr):
        return output_of(module, part.value) is not None
    if not isinstance(part, cst.Assign) or first(module, [part.value], "effect", "random"):
        return False
    return all(
        isinstance(target, cst.Name)
        and not is_read_later(module, subject.function, branch, target.value)
        for target in targets(part)
    )


def read_effect(subject: Subject, function: cst.FunctionDef, part: Small) -> list[Effect]:
    """Raises `Refused` for whatever else than a change of tensors it does."""
    if isinstance(part, cst.Pass) or _is_text(part):
        return []
    if isinstance(part, cst.Assign):
        return _assigned(subject, part)
    if isinstance(part, cst.AnnAssign) and part.value is not None:
        return [_to(subject, part.target, part.value)]
    if isinstance(part, cst.AugAssign):
        return [_augmented(subject, function, part)]
    if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
        return [_in_place(subject, part.value)]
    raise Refused(f"a branch does more than assign: `{short(subject.module, part)}`")


def _is_text(part: Small) -> bool:
    kinds = (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)
    return isinstance(part, cst.Expr) and isinstance(part.value, kinds)


def _assigned(subject: Subject, part: cst.Assign) -> list[Effect]:
    shown = short(subject.module, part)
    if len(part.targets) != 1:
        raise Refused(f"a branch assigns several names at once: `{shown}`")
    target, value = part.targets[0].target, part.value
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [_to(subject, target, value)]
    if not isinstance(value, cst.Tuple) or len(value.elements) != len(target.elements):
        raise Refused(f"a branch assigns several names at once: `{shown}`")
    names = [subject.module.code(each.value) for each in target.elements]
    for place, element in enumerate(value.elements):
        if set(names[:place]) & subject.module.names_in(element.value):
            raise Refused(f"`{shown}` reads what it sets")
    pairs = zip(target.elements, value.elements, strict=True)
    return [_to(subject, a.value, b.value) for a, b in pairs]


def _to(subject: Subject, target: cst.BaseExpression, value: cst.BaseExpression) -> Effect:
    module = subject.module
    text, code = module.code(target), module.code(value)
    if isinstance(target, cst.Name):
        return Effect("name", text, code, (value,), operand=value)
    if isinstance(target, cst.Subscript):
        mask = _own_mask(subject, target)
        if mask is not None and number(value) is not None:
            held = module.code(target.value)
            filled = f"{held}.masked_fill({mask}, {code})"
            return Effect("copy", held, filled, (target.value, value))
        _check_index(subject, target)
        return Effect("store", text, code, (target.value, value), operand=value)
    if isinstance(target, cst.Attribute) and _is_tensor_attribute(subject, target):
        return Effect("store", text, code, (value,), operand=value)
    raise Refused(f"a branch sets `{text}`, which is visible from outside")


def _is_tensor_attribute(subject: Subject, node: cst.CSTNode) -> bool:
    seen = facts_of(subject, node)
    if seen:
        return all(fact.kind == "tensor" for fact in seen)
    return is_buffer(subject.module, node)


def _own_mask(subject: Subject, target: cst.Subscript) -> str | None:
    """`x > 0` of `x[x > 0]`: a mask of the tensor's own shape."""
    index = target.slice[0].slice if len(target.slice) == 1 else None
    mask = index.value if isinstance(index, cst.Index) else None
    if not isinstance(mask, cst.Comparison) or len(mask.comparisons) != 1:
        return None
    module = subject.module
    same = module.code(mask.left) == module.code(target.value)
    return (
        module.code(mask) if same and number(mask.comparisons[0].comparator) is not None else None
    )


def _check_index(subject: Subject, target: cst.Subscript) -> None:
    """`x[0]` and `x[:, i]` can be read and written whichever way it goes; a mask cannot."""
    module = subject.module
    for element in target.slice:
        index = element.slice
        if not isinstance(index, cst.Index):
            continue
        value = index.value
        kinds = (cst.Integer, cst.Name, cst.UnaryOperation, cst.Ellipsis)
        seen = facts_of(subject, value)
        if not isinstance(value, kinds) or any(fact.kind != "number" for fact in seen):
            raise Refused(f"a branch writes to `{short(module, target)}` with its own index")
        if isinstance(value, cst.Name) and not is_whole_number(subject, value):
            raise Refused(f"it is unknown whether `{value.value}` is an integer")


def is_whole_number(subject: Subject, name: cst.Name) -> bool:
    """A Python number, by what was seen of it or by the loop that counts with it."""
    seen = facts_of(subject, name)
    if seen:
        return all(fact.type == "builtins.int" for fact in seen)
    return _is_counter(subject, name)


def _is_counter(subject: Subject, name: cst.Name) -> bool:
    """The variable of a loop over a range."""
    loop = subject.module.around(name, cst.For)
    while loop is not None:
        target = loop.target
        if isinstance(target, cst.Name) and target.value == name.value:
            return subject.module.calls(loop.iter, "builtins.range")
        loop = subject.module.around(loop, cst.For)
    return False


def _augmented(subject: Subject, function: cst.FunctionDef, part: cst.AugAssign) -> Effect:
    """`x += y` changes a tensor in place: whoever else holds it sees that, unless it is new."""
    module, target = subject.module, part.target
    sign = type(part.operator).__name__.removesuffix("Assign")
    operator = getattr(cst, sign, None)
    if operator is None:
        raise Refused(f"`{short(module, part)}` is not arithmetic")
    right = part.value
    if not right.lpar and isinstance(right, (cst.BinaryOperation, cst.Comparison, cst.IfExp)):
        right = right.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    whole = cst.BinaryOperation(left=target, operator=operator(), right=right)
    text, code = module.code(target), module.code(whole)
    # The operands are nodes of the file, the operation is not.
    nodes = (part.value, whole)
    if isinstance(target, cst.Subscript):
        _check_index(subject, target)
        return Effect("store", text, code, nodes)
    seen = facts_of(subject, target)
    if any(fact.kind not in ("tensor", "parameter") for fact in seen):
        raise Refused(f"a branch changes `{text}`, which is a Python value")
    if isinstance(target, cst.Attribute):
        if not seen and not is_buffer(module, target):
            raise Refused(f"a branch changes `{text}`, which is visible from outside")
        return Effect("copy", text, code, nodes)
    assert isinstance(target, cst.Name)
    fresh = is_fresh_local(module, function, target.value)
    return Effect("name" if fresh else "copy", text, code, nodes)


def _in_place(subject: Subject, call: cst.Call) -> Effect:
    """`x.mul_(2)`, `self.mean.mul_(0.9).add_(m)`: the tensor, and what it would become."""
    base, value, nodes = _chain(subject, call)
    module = subject.module
    found = first(module, [base], "effect", "unknown", "random")
    if found is not None:
        raise Refused(found.words)
    return Effect("copy", module.code(base), value, nodes)


def _chain(
    subject: Subject, call: cst.Call
) -> tuple[cst.BaseExpression, str, tuple[cst.CSTNode, ...]]:
    module, func = subject.module, call.func
    name = operators.out_of_place(func.attr.value) if isinstance(func, cst.Attribute) else None
    if name is None or not isinstance(func, cst.Attribute):
        found = first(module, [call], "effect", "random", "unknown")
        shown = f"the branch calls {short(module, func)}()"
        raise Refused(shown, instead=_OUTSIDE) if found else NotMeant("the branch has no effect")
    inner = func.value
    if isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute):
        if operators.out_of_place(inner.func.attr.value) is not None:
            base, text, nodes = _chain(subject, inner)
            _check_not_reread(subject, base, call)
        else:
            raise Refused(f"`{short(module, call)}` changes a tensor in place")
    else:
        base, text, nodes = inner, module.code(inner), ()
    arguments = tuple(arg.value for arg in call.args)
    if name in ("copy", "fill") and len(arguments) == 1:
        return base, module.code(arguments[0]), (*nodes, *arguments)
    if name == "zero":
        return base, "0", nodes
    # The operands are nodes of the file, the call is not.
    made = cst.Call(cst.Attribute(base, cst.Name(name)), args=call.args)
    inside = ", ".join(
        module.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in call.args
    )
    return base, f"{text}.{name}({inside})", (*nodes, made)


def _check_not_reread(subject: Subject, base: cst.BaseExpression, call: cst.Call) -> None:
    """In `x.mul_(2).add_(x.mean())` the mean is that of the changed tensor."""
    module = subject.module
    changed = _places(module, base)
    for arg in call.args:
        if any(_overlap(a, b) for a in changed for b in _places(module, arg.value)):
            shown = short(module, arg.value)
            raise Refused(f"`{shown}` reads what the same statement has changed in place")


def _places(module: SourceModule, node: cst.CSTNode) -> set[str]:
    """`x`, and `self.mean` for `self` where the attribute alone is read: what a method that is
    called may read is not seen."""
    found = set()
    for each in module.walk(node):
        if not isinstance(each, cst.Name) or each.value not in module.names_in(each):
            continue
        above = module.parent(each)
        call = module.parent(above) if isinstance(above, cst.Attribute) else None
        if isinstance(above, cst.Attribute) and not isinstance(call, cst.Call):
            found.add(f"{each.value}.{above.attr.value}")
        else:
            found.add(each.value)
    return found


def _overlap(a: str, b: str) -> bool:
    return a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.")


_HELD = ("builtins.list", "builtins.tuple")
_FLOATS = ("float", "bfloat")


def looped_effect(
    subject: Subject, whole: cst.If, loop: cst.For, read: Callable[[Small], list[Effect]]
) -> Effect:
    """The change of one item, which the loop makes of each. The loop itself runs whichever way the
    branch goes: it may do nothing else, and nobody may see that it ran."""
    module = subject.module
    item = loop.target.value if isinstance(loop.target, cst.Name) else ""
    held = _held(module, loop.iter)
    body = list(parts_of(loop.body))
    head = short(module, loop).split("\n")[0]
    guarded = body[0] if len(body) == 1 and _has_gradient(module, body[0], item) else None
    parts = list(parts_of(guarded.body)) if isinstance(guarded, cst.If) else body
    found = read(parts[0]) if len(parts) == 1 and loop.orelse is None else []
    if len(found) != 1 or not item or not held or loop.asynchronous is not None:
        raise Refused(f"a branch does more than assign: `{head}`")
    effect = found[0]
    if effect.kind != "copy" or effect.target not in (item, f"{item}.grad", f"{item}.data"):
        raise Refused(f"the loop in a branch does more than change each `{item}` in place")
    if liveness.is_read_later(module, subject.function, whole, item):
        raise Refused(f"`{item}` is read later and shows whether the loop ran")
    _check_one_change(subject, parts[0])
    _check_seen(subject, loop, parts[0], effect)
    lines = [f"for {item} in {held}:"]
    if isinstance(guarded, cst.If):
        lines.append(f"    if {module.code(guarded.test)}:")
    return replace(effect, loop="\n".join(lines))


_OF_A_MODULE = ("parameters", "buffers")


def _held(module: SourceModule, iterated: cst.BaseExpression) -> str:
    """The code of a list that has a name, or of what a module holds; empty of another thing."""
    if isinstance(iterated, cst.Name):
        return iterated.value
    method = iterated.func if isinstance(iterated, cst.Call) and not iterated.args else None
    if isinstance(method, cst.Attribute) and method.attr.value in _OF_A_MODULE:
        return module.code(iterated) if _is_named(method.value) else ""
    return ""


def _is_named(node: cst.BaseExpression) -> bool:
    """`model`, `self.model`: a name, or an attribute of one."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _has_gradient(module: SourceModule, part: cst.CSTNode, item: str) -> bool:
    """`if p.grad is not None:`, with nothing for the others."""
    if not isinstance(part, cst.If) or part.orelse is not None:
        return False
    return module.code(part.test) == f"{item}.grad is not None"


def _check_one_change(subject: Subject, part: cst.CSTNode) -> None:
    """In `g.mul_(2).add_(x.mean())`, `x` may be the same tensor, changed by then."""
    call = part.value if isinstance(part, cst.Expr) else None
    while isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        inner = call.func.value
        for arg in call.args if isinstance(inner, cst.Call) else ():
            if not is_static(subject, arg.value):
                shown = short(subject.module, arg.value)
                raise Refused(f"`{shown}` may read what the same statement has changed in place")
        call = inner


def _check_seen(subject: Subject, loop: cst.For, change: cst.CSTNode, effect: Effect) -> None:
    """In place, a change is made in the tensor's own dtype or raises; `copy_` converts."""
    module = subject.module
    held = _held(module, loop.iter)
    if not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show what `{held}` holds")
    items = subject.facts(effect.target, module.line(change))
    if not items:
        raise Refused(f"what `{held}` holds was never seen to be changed")
    if isinstance(loop.iter, cst.Name):
        lists = subject.facts(held, module.line(loop))
        if not lists or any(fact.type not in _HELD for fact in lists):
            raise Refused(f"`{held}` is not known to be a list")
    if any(fact.kind not in ("tensor", "parameter") for fact in items):
        raise Refused(f"`{effect.target}` is not always a tensor")
    if any(not (fact.dtype or "").startswith(_FLOATS) for fact in items):
        raise Refused(f"`{effect.target}` has no floating-point dtype")
    if not runs_without_grad(module, loop) and any(fact.requires_grad for fact in items):
        raise Refused(f"`{effect.target}` requires a gradient and is changed in place")


_MARKS = ("requires_grad_", "share_memory_", "retain_grad")


def check_not_the_argument(subject: Subject, name: str) -> None:
    """Raises `NeedsRun` where a function may hand an argument back as it is, and a caller changes
    one of the two in place: a copy would part them."""
    module, function = subject.module, subject.function
    if subject.program.facts.seen or name not in parameters(function):
        return
    returned = any(
        isinstance(each, cst.Return) and each.value is not None and module.code(each.value) == name
        for each in module.walk(function.body)
    )
    main = subject.program.main
    for own in {module.path, main} - {""} if returned else ():
        _check_callers(subject.program.module(own), function)


def _check_callers(module: SourceModule, function: cst.FunctionDef) -> None:
    held: set[str] = set()
    for node in module.walk():
        call = node.value if isinstance(node, cst.Assign) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, (cst.Name, cst.Attribute)):
            continue
        if not any(name.startswith("torch.") for name in module.meaning(call.func)):
            held |= {t.value for t in targets(node) if isinstance(t, cst.Name)}
            held |= {arg.value.value for arg in call.args if isinstance(arg.value, cst.Name)}
    inside = {id(each) for each in module.walk(function)}
    for where, name in changes_in_place(module, module.tree):
        marks = any(mark in module.code(where) for mark in _MARKS)
        if name in held and id(where) not in inside and not marks:
            raise NeedsRun(f"`{short(module, where)}` may change the argument or its copy")
