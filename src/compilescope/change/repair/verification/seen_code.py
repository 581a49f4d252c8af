"""Was all that a change brings seen at work? Every statement of it has to run in a call whose
results were compared, and every condition of it has to come to both of its answers there.

What never ran, and what always was the same, may hide anything: a patch that is right for what the
program was given, and for nothing else. Code outside of compiled regions shows in what is printed
alone, so a change there is not seen either, but for definitions, imports and how something is
compiled.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compilescope.change.repair.trials.version import ChangedFile, Changes
from compilescope.change.repair.verification.changed_lines import ChangedStatement

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_CONDITIONS = (ast.If, ast.While)
_Place = tuple[str, int]


def noted_lines(changes: Changes) -> dict[str, list[int]]:
    """By file: lines of the new texts whose conditions are the change's own."""
    return {file: sorted(_own_lines(change)) for file, change in changes.files.items()}


def _own_lines(change: ChangedFile) -> set[int]:
    """New ones, and those that stand in another block by now."""
    return set(change.added) | {change.new_of[line] for line in change.indented}


def unseen_statement(
    changes: Changes,
    statements: Iterable[ChangedStatement],
    ran: Mapping[_Place, bool],
    replayed: Mapping[str, Iterable[int]],
    *,
    is_new: bool,
) -> str:
    """The first of these statements of which no compared call shows anything, in a clause. They are
    of the new text, or of the old one. `ran`: lines that ran at all; `replayed`: by file, those
    that ran in calls that were compared."""
    inside = {(file, line) for file, lines in replayed.items() for line in lines}
    for each in statements:
        if any((each.file, line) in inside for line in each.lines):
            continue
        if _is_bare(changes.files[each.file], each, is_new=is_new):
            continue
        if each.ran(ran):
            return f"{_at(each, is_new)} runs where only output would show what it does"
        if is_new:
            return f"{_at(each, is_new)} never ran in a call that was compared"
    return ""


def _at(each: ChangedStatement, is_new: bool) -> str:
    old = "" if is_new else "old "
    return f"{old}line {each.line} of {os.path.basename(each.file)} (`{each.source[:60]}`)"


def _is_bare(change: ChangedFile, each: ChangedStatement, *, is_new: bool) -> bool:
    """Does it define, import or compile something, and no more? A new line of `__init__` may set an
    attribute, one at the top a new variable: what comes of that shows where it is read."""
    if each.is_import:
        return is_new or _names_imported(change.old_text, each) <= _names_imported(change.new_text)
    for node, function in _located(ast.parse(change.new_text if is_new else change.old_text), ""):
        if getattr(node, "lineno", 0) != each.line or not isinstance(node, (ast.stmt, ast.expr)):
            continue
        if isinstance(node, _DEFINITIONS) or _compiles(node):
            return True
        if isinstance(node, ast.Expr) and _is_print(node.value):
            return True  # All that it does is compared.
        if is_new and isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if function == "__init__":
                return all(_is_own_attribute(target) for target in targets)
            return not function and _is_new_constant(targets, node.value, change.old_text)
        if is_new and isinstance(node, ast.Expr) and function == "__init__":
            return ast.unparse(node).startswith(("self.register_buffer(", "super("))
        if isinstance(node, ast.stmt):
            return False
    return False


def _names_imported(text: str, only: ChangedStatement | None = None) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (
            only is None or node.lineno == only.line
        ):
            base = getattr(node, "module", "") or ""
            found |= {f"{base}:{each.name}:{each.asname}" for each in node.names}
    return found


_MADE_OF_NUMBERS = frozenset(
    {
        *("tensor", "arange", "zeros", "ones", "full", "linspace", "eye"),
        *("tuple", "list", "dict", "float", "int", "len", "range", "frozenset"),
    }
)


def _is_new_constant(targets: Sequence[ast.expr], value: ast.expr | None, old_text: str) -> bool:
    """Does it give names that nothing had a value which nothing but numbers make?"""
    if value is None or not all(isinstance(target, ast.Name) for target in targets):
        return False
    known = {n.id for n in ast.walk(ast.parse(old_text)) if isinstance(n, ast.Name)}
    if known & {target.id for target in targets if isinstance(target, ast.Name)}:
        return False
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return all(ast.unparse(call).removeprefix("torch.") in _MADE_OF_NUMBERS for call in calls)


def _located(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, function
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _located(child, child.name if is_function else function)  # type: ignore[attr-defined]


def _is_own_attribute(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )


_COMPILING = (
    *("torch.compile", "torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic"),
    "torch._dynamo.mark_static",
)


def _compiles(node: ast.stmt | ast.expr) -> bool:
    """A call of `torch.compile` and the like, bound to a name at most."""
    value: Any = node.value if isinstance(node, (ast.Assign, ast.Expr)) else node
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Call):
        value = value.func  # `torch.compile(dynamic=True)(f)`
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Attribute) and ast.unparse(value) in _COMPILING
    spelled = ast.unparse(value.func)
    is_method = spelled.endswith(".compile") and isinstance(node, ast.Expr)
    simple = all(isinstance(each, (ast.Name, ast.Attribute)) for each in value.args)
    return (spelled in _COMPILING or is_method) and simple


def _is_print(value: ast.expr) -> bool:
    """Of plain values: what it is given calls nothing but what reads a number."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
        return False
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call) and n is not value]
    reads = ("item", "tolist", "detach", "cpu", "mean", "sum", "format")
    plain = all(isinstance(c.func, ast.Attribute) and c.func.attr in reads for c in calls)
    plain = plain and all(each.arg in ("sep", "end", "flush") for each in value.keywords)
    return value.func.id == "print" and plain


# Conditions


def one_sided(changes: Changes, seen: Iterable[list[Any]]) -> str:
    """The first condition of the change that was never true, or never false, in a clause. `seen`:
    file, line, column, and the truths that it came to."""
    known = {(file, line, column): set(truths) for file, line, column, truths in seen}
    for file, change in changes.files.items():
        old = _Old.read(change.old_text)
        for node in _asked(ast.parse(change.new_text), _own_lines(change), old):
            truths = known.get((file, node.lineno, node.col_offset))
            if truths is None or truths == {True, False}:
                continue  # It gives no truth, or both.
            never = "true" if truths == {False} else "false"
            words = f"`{ast.unparse(node)[:60]}` on line {node.lineno} of {os.path.basename(file)}"
            return f"{words} was never {never} in a call that was compared"
    return ""


_BY_SIZE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def unseen_tie(changes: Changes, seen: Iterable[list[Any]]) -> str:
    """The first comparison of the change whose sides were never equal, where `>` and `>=` part, in
    a clause. One that the old text has has only moved. `seen`: file, line, column, and whether they
    were equal."""
    known = {(file, line, column): equal for file, line, column, equal in seen}
    for file, change in changes.files.items():
        old = {told for _, each in _by_size(change.old_text) for told in (each, _mirrored(each))}
        lines = _own_lines(change)
        for node, each in _by_size(change.new_text):
            if node.lineno not in lines or any(_is_like(each, other) for other in old):
                continue
            if known.get((file, node.lineno, node.col_offset)) is False:
                words = f"`{ast.unparse(node)[:60]}` on line {node.lineno}"
                at = f"{words} of {os.path.basename(file)}"
                return f"both sides of {at} were never equal in a call that was compared"
    return ""


_MIRRORED = {"Lt": "Gt", "Gt": "Lt", "LtE": "GtE", "GtE": "LtE"}


class _SizeComparison(NamedTuple):
    """`left > right`, read out of a tensor or not."""

    name: str
    left: str
    right: str


def _by_size(text: str) -> Iterator[tuple[ast.Compare, _SizeComparison]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            name = type(node.ops[0]).__name__
            sides = (ast.unparse(part) for part in (node.left, node.comparators[0]))
            left, right = (side.replace(".item()", "") for side in sides)
            if name in _MIRRORED:
                yield node, _SizeComparison(name, left, right)


def _mirrored(each: _SizeComparison) -> _SizeComparison:
    return _SizeComparison(_MIRRORED[each.name], each.right, each.left)


def _is_like(new: _SizeComparison, old: _SizeComparison) -> bool:
    """With the same limit; what is compared with it may be written in another way, a number not."""
    if new.name != old.name or not {new.left, new.right} & {old.left, old.right}:
        return False
    sides = ((new.left, old.left), (new.right, old.right))
    changed = [one for one, other in sides if one != other]
    return len(changed) < 2 and not any(_is_number(side) for side in changed)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Old:
    """The conditions that the old text asked."""

    def __init__(self, tests: set[str]) -> None:
        self.tests = tests

    @classmethod
    def read(cls, text: str) -> _Old:
        tree = ast.parse(text)
        return cls({ast.dump(n.test) for n in ast.walk(tree) if isinstance(n, _CONDITIONS)})


def _asked(tree: ast.Module, lines: set[int], old: _Old) -> Iterator[ast.expr]:
    """Expressions that may give a truth, but for conditions of an `if` that was there before: what
    stands under it has to run."""
    kept: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _CONDITIONS) and ast.dump(node.test) in old.tests:
            kept |= {id(part) for part in ast.walk(node.test)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in kept:
            continue
        if lines.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            yield node


def numbers_in(changes: Changes) -> list[float]:
    """The numbers that a change writes, but 0 and 1: something may happen at one of them."""
    found: dict[float, None] = {}
    for change in changes.files.values():
        lines = _own_lines(change)
        for node in ast.walk(ast.parse(change.new_text)):
            is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
            if is_number and node.lineno in lines:  # type: ignore[attr-defined]
                number = abs(float(node.value))  # type: ignore[attr-defined]
                if number not in (0.0, 1.0) and number < 1e30:
                    found[number] = None
    return list(found)
