"""A copy of an expression in which some of its parts are others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import libcst as cst

N = TypeVar("N", bound=cst.CSTNode)


def replaced(node: N, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> N:
    """Parts are those of the tree itself; of two that lie in each other the outer one counts."""
    made = node.visit(_Replacing(new))
    assert isinstance(made, cst.CSTNode)
    return made


class _Replacing(cst.CSTTransformer):
    def __init__(self, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self._new = new

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        made = self._new.get(original_node)
        return made if made is not None else super().on_leave(original_node, updated_node)
