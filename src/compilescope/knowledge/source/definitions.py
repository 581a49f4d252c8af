"""What a file says at its top level of some names, and of the names that this needs in turn."""

from __future__ import annotations

import ast
import builtins


def statements_for(wanted: set[str], whole: str, own: str = "") -> list[str]:
    """In the order of the file; `own` is left out. Raises `SyntaxError`."""
    top = ast.parse(whole).body
    wanted = set(wanted)
    used: set[int] = set()
    changed = True
    while changed:
        changed = False
        for number, statement in enumerate(top):
            bound = _bound(statement)
            if number in used or not (bound & wanted) or own in bound:
                continue
            used.add(number)
            wanted |= names_read(statement)
            changed = True
    return [_text(whole, top[number]) for number in sorted(used)]


def names_read(tree: ast.AST) -> set[str]:
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in found if not hasattr(builtins, name)}


def _text(whole: str, statement: ast.stmt) -> str:
    """With its decorators, which ast leaves out of a statement's own text."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    lines = whole.splitlines()[first - 1 : statement.end_lineno]
    return "\n".join(lines) if decorators else ast.get_source_segment(whole, statement) or ""


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    return set()
