"""Where an expression ends of which only the beginning is known.

Torch's stacks have the column where an expression begins, and where it ends only on a line of its
own: Python then draws carets up to the end of the line (torch 2.13).
"""

from __future__ import annotations

import ast
import functools

from compilescope.model.python_text import parse_python

_LONGEST = 2000
"""Letters of an expression that is parsed. Chosen: it bounds the time."""
_BODY = "\n    pass"


@functools.lru_cache(maxsize=1024)
def expression_end(source: str, column: int, *, call: bool = True) -> int | None:
    """The end of the widest call that begins at `column` of a line, or else of the widest
    expression; None where the line does not stand for itself. `call`: it is known to be one."""
    if len(source) > _LONGEST or not source.isascii():
        return None
    text = source.strip()
    lead = len(source) - len(source.lstrip())
    tree, shift = _parsed(text)
    if tree is None:
        return None
    at = column - lead + shift
    ends: dict[bool, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.Assert)) and node.lineno == 1 and node.col_offset == at:
            is_call = call and isinstance(node, ast.Call)
            ends[is_call] = max(ends.get(is_call, 0), node.end_col_offset or 0)
    end = ends.get(True) or ends.get(False)
    return end - shift + lead if end else None


@functools.lru_cache(maxsize=1024)
def only_call(source: str) -> tuple[int, int] | None:
    """Where the call lies that a line consists of, if no other in it could be meant."""
    if len(source) > _LONGEST or not source.isascii():
        return None
    tree, _ = _parsed(source.strip())
    body: list[ast.stmt] = getattr(tree, "body", [])
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return None
    call = body[0].value
    if not isinstance(call, ast.Call) or sum(isinstance(n, ast.Call) for n in ast.walk(call)) != 1:
        return None
    lead = len(source) - len(source.lstrip())
    return lead, lead + (call.end_col_offset or 0)


def _parsed(text: str) -> tuple[ast.AST | None, int]:
    """The line as a tree: alone, or as the head of a block."""
    for before, after in (("", ""), ("", _BODY), ("if 1: pass\n", _BODY), ("try: pass\n", _BODY)):
        try:
            tree = parse_python(before + text + after)
        except SyntaxError:
            continue
        if before:
            tree = ast.increment_lineno(tree, -1)
        return tree, 0
    return None, 0
