"""A function cut in three: what comes before, a part to be compiled alone, and what comes after.

Nothing is reordered but what `lifted` asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.bindings import bound_names, declared_names
from compilescope.fixes.source.lightness import is_docstring, is_light, is_light_value
from compilescope.fixes.source.module import SourceModule


@dataclass(frozen=True)
class Split:
    """Which statements of a block go where. `core` is never empty."""

    before: list[cst.BaseStatement]
    core: list[cst.BaseStatement]
    after: list[cst.BaseStatement]
    around: cst.With | None = None
    """The statement that stays around the core: the three are parts of its body."""
    outer_before: list[cst.BaseStatement] = field(default_factory=list)
    outer_after: list[cst.BaseStatement] = field(default_factory=list)
    lifted: dict[str, cst.BaseExpression] = field(default_factory=dict)
    """Expressions of the core that are computed before it, by the name that they get."""


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
