"""Removes arguments of calls, elements of collections, and parameters with all their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.edits import (
    Change,
    Edit,
    calls,
    classes,
    functions,
    in_runs,
    last_name,
    one_by_one,
    remove,
    values,
    walk,
)


def _call_arguments(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes arguments of calls, base classes, indices, and elements of lists and the like."""
    arguments = [node for node in walk(tree) if isinstance(node, cst.Arg)][::-1]
    yield [remove(node) for node in arguments if node.keyword is not None or node.star]
    yield [remove(node) for node in arguments if node.keyword is None and not node.star]
    yield [remove(node) for node in _elements(tree)]
    yield [remove(node) for node in walk(tree) if isinstance(node, cst.SubscriptElement)][::-1]


def _elements(tree: cst.Module) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    for node in values(tree):
        if isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            found += node.elements
    return found[::-1]


_UNNAMED = ("forward", "__call__")
"""Called under the name of the object."""


def _parameters(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes parameters of functions, each with the arguments that calls give for it."""
    found = calls(tree)
    methods = {f: owner for owner in classes(tree) for f in owner.body.body}
    known = {f.name.value for f in functions(tree)} | {c.name.value for c in classes(tree)}
    for function in functions(tree):
        owner = methods.get(function)
        receives_self = owner is not None and not _is_static(function)
        callers = _callers(function, owner, found, known)
        given = [*function.params.posonly_params, *function.params.params]
        for index, param in list(enumerate(given))[::-1]:
            place = index - receives_self
            if place >= 0:
                yield [
                    _without(function, param, _arguments(callers, param, place)),
                    _without(function, param, []),
                ]
        for param in function.params.kwonly_params:
            yield [_without(function, param, _arguments(callers, param, None))]
        for star in (function.params.star_kwarg, function.params.star_arg):
            if isinstance(star, cst.Param):
                yield [_without(function, star, [])]


def _is_static(function: cst.FunctionDef) -> bool:
    return any(last_name(each.decorator) == "staticmethod" for each in function.decorators)


def _called(call: cst.Call) -> str:
    """What is called: of `torch.compile(f)(x)` it is f."""
    inner = call.func
    if isinstance(inner, cst.Call) and last_name(inner.func) == "compile" and inner.args:
        return last_name(inner.args[0].value)
    return last_name(inner)


def _callers(
    function: cst.FunctionDef,
    owner: cst.ClassDef | None,
    found: Sequence[cst.Call],
    known: set[str],
) -> list[cst.Call]:
    name = function.name.value
    if owner is not None and name == "__init__":
        inits = [call for call in found if last_name(call.func) == "__init__"]
        return [call for call in found if last_name(call.func) == owner.name.value] + inits
    named = [call for call in found if _called(call) == name]
    if name not in _UNNAMED:
        return named
    plain = [call for call in found if isinstance(call.func, cst.Name)]
    return named + [call for call in plain if last_name(call.func) not in known]


def _arguments(callers: list[cst.Call], param: cst.Param, place: int | None) -> list[cst.Arg]:
    found = []
    for call in callers:
        for index, given in enumerate(call.args):
            if given.star:
                break
            if (given.keyword is not None and given.keyword.value == param.name.value) or (
                given.keyword is None and index == place
            ):
                found.append(given)
    return found


def _without(function: cst.FunctionDef, param: cst.Param, given: list[cst.Arg]) -> Edit:
    away: Change = lambda _: cst.RemoveFromParent()  # noqa: E731
    return ((function.params, _dropping(param.name.value)), *((each, away) for each in given))


def _dropping(name: str) -> Change:
    def kept(params: Sequence[cst.Param]) -> list[cst.Param]:
        return [each for each in params if each.name.value != name]

    def change(node: cst.Parameters) -> Any:
        star: Any = node.star_arg
        kwonly = kept(node.kwonly_params)
        if isinstance(star, cst.Param) and star.name.value == name:
            star = cst.ParamStar() if kwonly else cst.MaybeSentinel.DEFAULT
        elif isinstance(star, cst.ParamStar) and not kwonly:
            star = cst.MaybeSentinel.DEFAULT
        doubled = node.star_kwarg is not None and node.star_kwarg.name.value == name
        return node.with_changes(
            params=kept(node.params),
            posonly_params=kept(node.posonly_params),
            posonly_ind=node.posonly_ind
            if kept(node.posonly_params)
            else cst.MaybeSentinel.DEFAULT,
            kwonly_params=kwonly,
            star_arg=star,
            star_kwarg=None if doubled else node.star_kwarg,
        )

    return change


PASSES = (
    Pass("arguments", 140, in_runs(_call_arguments)),
    Pass("parameters", 150, one_by_one(_parameters)),
)
