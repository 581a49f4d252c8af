"""A function cut in three: what comes before, a part to be compiled alone, and what comes after.

Nothing is reordered but what `lifted` asks for. Statements that are no work for a compiler (calls
for an effect, names, attributes, constants) may stay outside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import bound_names, declared_names
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_PLAIN = kinds(lambda: (cst.Pass, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal))
_VALUES = kinds(
    lambda: (
        cst.Name,
        cst.Integer,
        cst.Float,
        cst.SimpleString,
        cst.ConcatenatedString,
        cst.FormattedString,
    )
)
_FREE_METHODS = frozenset({"item", "size", "dim", "numel", "requires_grad_", "tolist"})
"""Of tensors: what costs nothing, or is no graph's."""
_EFFECTS_WITH_BAR = frozenset({"requires_grad_", "clip_grad_norm_", "clip_grad_value_"})


def is_docstring(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or not statement.body:
        return False
    only = statement.body[0]
    return isinstance(only, cst.Expr) and isinstance(
        only.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def is_backward(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """`loss.backward()`, which changes no value that a graph has computed."""
    calls = [each for each in module.walk(statement) if isinstance(each, cst.Call)]
    return (
        len(calls) == 1
        and isinstance(calls[0].func, cst.Attribute)
        and (calls[0].func.attr.value == "backward")
    )


def is_light(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """Would nothing be lost if it ran outside of the graph?"""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return all(_is_light_part(module, part) for part in statement.body)


def _is_light_part(module: SourceModule, part: cst.BaseSmallStatement) -> bool:
    if isinstance(part, _PLAIN):
        return True
    if isinstance(part, cst.Expr):
        called = isinstance(part.value, cst.Call) and not _is_in_place(part.value)
        return called or isinstance(part.value, _VALUES)
    if isinstance(part, cst.Return):
        return part.value is None or is_light_value(module, part.value)
    if isinstance(part, (cst.Assign, cst.AnnAssign)):
        return part.value is None or is_light_value(module, part.value)
    return False


def _is_in_place(call: cst.Call) -> bool:
    """`x.mul_(2)`, `torch.nn.init.zeros_(w)`: work on tensors."""
    func = call.func
    name = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
    return (
        isinstance(name, str)
        and name.endswith("_")
        and not name.endswith("__")
        and name not in _EFFECTS_WITH_BAR
    )


def is_light_value(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Names, attributes, constants, and tuples and dicts of them."""
    if isinstance(value, _VALUES):
        return True
    if isinstance(value, cst.Attribute):
        return is_light_value(module, value.value)
    if isinstance(value, (cst.Tuple, cst.List)):
        return all(is_light_value(module, each.value) for each in value.elements)
    if isinstance(value, cst.Dict):
        return all(
            isinstance(each, cst.DictElement) and is_light_value(module, each.value)
            for each in value.elements
        )
    if isinstance(value, cst.Subscript):
        return is_light_value(module, value.value) and all(
            isinstance(part.slice, cst.Index) and is_light_value(module, part.slice.value)
            for part in value.slice
        )
    if isinstance(value, cst.Call):
        func = value.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value in _FREE_METHODS
            and is_light_value(module, func.value)
            and all(is_light_value(module, arg.value) for arg in value.args)
        )
    return False


class Split(msgspec.Struct, frozen=True):
    """Which statements of a block go where. `core` is never empty."""

    before: list[cst.BaseStatement]
    core: list[cst.BaseStatement]
    after: list[cst.BaseStatement]
    around: cst.With | None = None
    """The statement that stays around the core: the three are parts of its body."""
    outer_before: list[cst.BaseStatement] = msgspec.field(default_factory=list)
    outer_after: list[cst.BaseStatement] = msgspec.field(default_factory=list)
    lifted: dict[str, cst.BaseExpression] = msgspec.field(default_factory=dict)
    """Expressions of the core that are computed before it, by the name that they get."""
    truths: frozenset[str] = frozenset()
    """Those of them of which only the truth is asked for."""
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    """How some of them are computed, where that is not as their code says."""


def split_around(
    module: SourceModule, body: Sequence[cst.BaseStatement], outside: Collection[cst.BaseStatement]
) -> Split:
    """The core is what lies between two of those that must stay outside. Raises `Refused` where
    there is work on both sides."""
    body = list(body)
    start = 1 if body and is_docstring(body[0]) else 0
    places = [i for i, each in enumerate(body) if each in outside]
    best: tuple[int, int, int] | None = None
    for low, high in zip([start - 1, *places], [*places, len(body)], strict=True):
        weight = sum(not is_light(module, each) for each in body[low + 1 : high])
        if best is None or weight > best[0]:
            best = (weight, low + 1, high)
    assert best is not None
    weight, low, high = best
    if weight == 0:
        raise NotMeant("the function computes nothing else")
    heavy = [each for each in body if not is_light(module, each) and each not in outside]
    inner = body[low:high]
    rest = [each for each in heavy if each not in inner]
    if rest and not (len(rest) == 1 and rest[0] is body[-1] and is_return(rest[0])):
        raise Refused("the function computes something both before and after it")
    while inner and is_light(module, inner[0]) and not is_return(inner[0]):
        # What is no work for a compiler may stay where it is read.
        low, inner = low + 1, inner[1:]
    return Split(body[start:low], inner, body[high:], None, body[:start])


def is_return(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(
        statement.body[-1], cst.Return
    )


def check_splittable(module: SourceModule, function: cst.FunctionDef, split: Split) -> None:
    """Raises `Refused` where the core cannot be a function of its own."""
    ends_function = not split.after and not split.outer_after
    stays_local = declared_names(function)
    for each in split.core:
        for node in module.walk(each):
            if isinstance(node, (cst.Yield, cst.Await, cst.Nonlocal, cst.Global)):
                raise Refused(
                    "the function is a generator or async, or sets variables of another scope"
                )
            if not isinstance(node, (cst.Return, cst.Del)):
                continue
            early = not (ends_function and is_return(split.core[-1]))
            if module.function_of(node) is function and (isinstance(node, cst.Del) or early):
                raise Refused("the function returns from the middle")
    if bound_names(split.core) & stays_local:
        raise Refused("the function sets variables of another scope")
    if split.around is not None and any(
        not is_light_value(module, item.item) and not isinstance(item.item, cst.Call)
        for item in split.around.items
    ):
        raise Refused("the context of the `with` is computed in the function")
