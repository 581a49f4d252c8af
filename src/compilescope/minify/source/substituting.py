"""Expressions in the place of names: what inlining a call or a variable does."""

from __future__ import annotations

from typing import Any

import libcst as cst

from compilescope.minify.source.nodes import names_in

_WHOLE = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseNumber,
    cst.BaseString,
    cst.List,
    cst.Dict,
    cst.Set,
)


def substitute(node: Any, values: dict[str, cst.BaseExpression]) -> Any:
    """A copy of `node` with expressions in the place of variables."""
    copy = node.deep_clone()
    places = {name: values[name.value] for name in names_in(copy) if name.value in values}
    return copy.visit(_Substituting(places))


def closed(node: cst.BaseExpression) -> cst.BaseExpression:
    """In parentheses, unless it holds together without."""
    if isinstance(node, _WHOLE) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def is_simple(node: cst.BaseExpression) -> bool:
    """Can it stand in several places without being done several times?"""
    if isinstance(node, cst.Attribute):
        return is_simple(node.value)
    return isinstance(node, (cst.Name, cst.BaseNumber, cst.SimpleString))


class _Substituting(cst.CSTTransformer):
    def __init__(self, places: dict[cst.Name, cst.BaseExpression]) -> None:
        super().__init__()
        self._places = places

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = self._places.get(original_node)
        return updated_node if new is None else closed(new.deep_clone())
