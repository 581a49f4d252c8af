"""Folds bases into their subclasses, turns modules into functions and layers into `Identity`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.edits import (
    Edit,
    calls,
    classes,
    last_name,
    names_in,
    one_by_one,
    replace,
)

_CALLED = ("forward", "__call__")


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    known = {each.name.value: each for each in classes(tree)}
    for each in known.values():
        yield [*_folded(each, known, tree), *_as_function(each, tree)]
    for call in calls(tree):
        if _is_layer(call):
            yield [replace(call, cst.parse_expression("torch.nn.Identity()"))]


def _folded(each: cst.ClassDef, known: dict[str, cst.ClassDef], tree: cst.Module) -> Iterator[Edit]:
    """`class B(A)` with what A has, and A's own bases."""
    base = known.get(last_name(each.bases[0].value)) if len(each.bases) == 1 else None
    if base is None or base is each:
        return
    uses = [name for name in names_in(tree) if name.value == base.name.value]
    here = {f.name.value for f in each.body.body if isinstance(f, cst.FunctionDef)}
    body = [f for f in base.body.body if getattr(getattr(f, "name", None), "value", "") not in here]

    def change(present: cst.ClassDef) -> Any:
        inherited = [node.deep_clone() for node in body if not _is_pass(node)]
        own = [node for node in present.body.body if not _is_pass(node)]
        both: Any = [*inherited, *own] or [cst.SimpleStatementLine([cst.Pass()])]
        block = cst.IndentedBlock(both)
        bases = [argument.deep_clone() for argument in base.bases]
        return present.with_changes(bases=bases, body=block)

    # The name of its own definition is one of them.
    gone: Edit = ((base, lambda _: cst.RemoveFromParent()),) if len(uses) == 2 else ()
    yield ((each, change), *gone)


def _as_function(each: cst.ClassDef, tree: cst.Module) -> Iterator[Edit]:
    """`class M(Module): def forward(self, x)` as `def M(x)`, and `M()` as `M`."""
    methods = [node for node in each.body.body if not _is_pass(node)]
    method = methods[0] if len(methods) == 1 else None
    if not isinstance(method, cst.FunctionDef) or method.name.value not in _CALLED:
        return
    first = method.params.params[:1]
    if not first or any(name.value == first[0].name.value for name in names_in(method.body)):
        return
    name = each.name.value
    made = [call for call in calls(tree) if last_name(call.func) == name and not call.args]
    function = method.with_changes(
        name=cst.Name(name),
        params=method.params.with_changes(params=method.params.params[1:]),
        decorators=each.decorators,
    )
    places = [(call, lambda _: cst.Name(name)) for call in made]
    yield ((each, lambda _: function.deep_clone()), *places)


def _is_pass(node: Any) -> bool:
    body = node.body if isinstance(node, cst.SimpleStatementLine) else ()
    return len(body) == 1 and isinstance(body[0], cst.Pass)


def _is_layer(call: cst.Call) -> bool:
    """`nn.Linear(4, 4)`, and what else is called in capitals under nn."""
    function = call.func
    if not isinstance(function, cst.Attribute) or last_name(function.value) != "nn":
        return False
    return function.attr.value[:1].isupper() and function.attr.value != "Identity"


PASS = Pass("modules", 130, one_by_one(_find))
