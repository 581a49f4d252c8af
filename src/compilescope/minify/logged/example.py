"""The example of a break rule, as a function and the arguments it is called with.

An example is a program that compiles one function or module and calls it. A repro for another
backend needs the parts: what leads up to the call, what is compiled, what it is called with.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from compilescope import plugins
from compilescope.rules import breaks
from compilescope.rules.causes.rule import BreakRule


@dataclass(frozen=True)
class Parts:
    """A program in parts."""

    prelude: str
    """Everything before the compiled call."""
    compiled: str
    """The expression that is compiled."""
    arguments: str
    """What it is called with, as written between the brackets."""


def example_parts(rule_id: str | None) -> list[Parts]:
    """The examples of a rule that can be taken apart; the plainest first."""
    for rule in plugins.discover(breaks, "RULE", BreakRule):
        if rule.id == rule_id:
            parts = [taken_apart(example.bad) for example in rule.examples]
            return [part for part in parts if part is not None]
    return []


def taken_apart(program: str) -> Parts | None:
    """None where the program is not of that form."""
    tree = ast.parse(program)
    named: dict[str, ast.expr] = {}
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        target, compiled = statement.targets[0], _compiled(statement.value)
        if isinstance(target, ast.Name) and compiled is not None:
            named[target.id] = compiled
    for number, statement in enumerate(tree.body):
        call, compiled = _compiled_call(statement, named)
        if call is None or compiled is None:
            continue
        before = [node for node in tree.body[:number] if not _is_compilation(node)]
        arguments = [*map(ast.unparse, call.args)]
        arguments += [f"{word.arg}={ast.unparse(word.value)}" for word in call.keywords if word.arg]
        text = "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in before)
        return Parts(text, ast.unparse(compiled), ", ".join(arguments))
    return None


def _compiled_call(
    statement: ast.stmt, named: dict[str, ast.expr]
) -> tuple[ast.Call | None, ast.expr | None]:
    """The call of what is compiled, and what that is; it may stand in a `print`."""
    for node in ast.walk(statement) if isinstance(statement, (ast.Expr, ast.Assign)) else ():
        if isinstance(node, ast.Call):
            compiled = _compiled(node.func)
            if compiled is None and isinstance(node.func, ast.Name):
                compiled = named.get(node.func.id)
            if compiled is not None:
                return node, compiled
    return None, None


def _compiled(node: ast.expr) -> ast.expr | None:
    """What `torch.compile(...)` compiles."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    return node.args[0] if ast.unparse(node.func) == "torch.compile" else None


def _is_compilation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and _compiled(statement.value) is not None
