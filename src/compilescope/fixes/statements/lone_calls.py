"""Calls that are statements of their own, and what they add to."""

from __future__ import annotations

from compilescope.source.trees import cst

_GROWING = ("append", "extend", "appendleft", "insert")


def lone_call(statement: cst.BaseStatement) -> cst.Call | None:
    """A call that is a statement of its own."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    value = only.value if isinstance(only, cst.Expr) else None
    return value if isinstance(value, cst.Call) else None


def grown_list(statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """`self.log` of `self.log.append(y)`."""
    call = lone_call(statement)
    func = call.func if call is not None else None
    if not isinstance(func, cst.Attribute) or func.attr.value not in _GROWING:
        return None
    return func.value
