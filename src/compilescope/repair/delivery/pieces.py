"""What changed in a module, as pieces that can be put into it while a program runs.

A function that only does something else gets new code; one that is made in another way (other
decorators or defaults) is made anew; new statements run after the module's own. Any other change
needs the module's whole text, which only the user's own modules are given.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Means = Literal["code", "anew"]
_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


@dataclass(frozen=True)
class FunctionPiece:
    """One function, or method, that changed."""

    name: str
    """`Class.method`."""
    means: Means
    """New code for the function that is there, or a new function in its place."""
    made_for: str
    """The hash of the original's source."""
    source: str
    """The new definition as its author would see it, in the classes around it."""
    line: int
    """Of the original."""


@dataclass
class Pieces:
    """All that changed in one file."""

    functions: list[FunctionPiece] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    """Statements that are new at the module's top level."""
    problems: list[str] = field(default_factory=list)
    """What cannot be done while the program runs."""


def pieces_of(old: str, new: str) -> Pieces:
    """Both texts must be Python."""
    found = Pieces()
    _PieceComparison(lines_of(old), lines_of(new), found).block(
        ast.parse(old).body, ast.parse(new).body, ()
    )
    return found


def lines_of(text: str) -> list[str]:
    """As Python counts them; `str.splitlines` also ends lines at form feeds and the like."""
    return _NEWLINE.split(text)


def digest_of(lines: list[str]) -> str:
    """Of a definition's lines; the emitted scripts compute the same."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def first_line(node: ast.stmt) -> int:
    """Of its decorators, where it has some."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def definition_lines(node: Definition, lines: list[str]) -> list[str]:
    return lines[first_line(node) - 1 : node.end_lineno]


@dataclass
class _PieceComparison:
    old_lines: list[str]
    new_lines: list[str]
    found: Pieces

    def block(self, old: list[ast.stmt], new: list[ast.stmt], outer: tuple[ast.stmt, ...]) -> None:
        """Statements at the top level, in a class, or in an `if` or `try` there. `outer` are those
        around them."""
        codes = SequenceMatcher(None, _keys(old), _keys(new), autojunk=False).get_opcodes()
        for kind, i1, i2, j1, j2 in codes:
            if kind == "equal":
                for before, after in zip(old[i1:i2], new[j1:j2], strict=True):
                    self._pair(before, after, outer)
                continue
            removed = [each for each in old[i1:i2] if not _is_idle(each)]
            for each in removed:
                self._problem(each.lineno, "is changed or removed")
            self._added([e for e in new[j1:j2] if not _is_idle(e) or _imports(e)], outer, removed)

    def _pair(self, old: ast.stmt, new: ast.stmt, outer: tuple[ast.stmt, ...]) -> None:
        if ast.dump(old) == ast.dump(new):
            return
        if isinstance(old, Definition) and isinstance(new, Definition):
            self._function(old, new, outer)
        elif isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
            if _frame(old) != _frame(new):
                self._problem(old.lineno, "changes how a class is created")
            else:
                self.block(old.body, new.body, (*outer, old))
        elif _frame(old) == _frame(new) and hasattr(old, "body"):
            for name in _BLOCKS:
                self._inner(getattr(old, name, []), getattr(new, name, []), (*outer, old))
        elif not _is_idle(old):
            self._problem(old.lineno, "is changed")

    def _inner(self, old: list[ast.AST], new: list[ast.AST], outer: tuple[ast.stmt, ...]) -> None:
        if any(isinstance(each, ast.ExceptHandler) for each in (*old, *new)):
            for before, after in zip(old, new, strict=True):
                self.block(before.body, after.body, outer)  # type: ignore[attr-defined]
        else:
            self.block(old, new, outer)  # type: ignore[arg-type]

    def _function(self, old: Definition, new: Definition, outer: tuple[ast.stmt, ...]) -> None:
        classes = [each for each in outer if isinstance(each, ast.ClassDef)]
        same = _making(old) == _making(new) and type(old) is type(new)
        same = same and _uses_class(old) == _uses_class(new)
        if not same and _uses_class(new) and classes:
            self._problem(old.lineno, "changes how a method that uses super() is created")
            return
        name = ".".join([*(each.name for each in classes), old.name])
        self.found.functions.append(
            FunctionPiece(
                name=name,
                means="code" if same else "anew",
                made_for=digest_of(definition_lines(old, self.old_lines)),
                source=self._scaffolded(new, [each.name for each in classes]),
                line=old.lineno,
            )
        )

    def _scaffolded(self, node: Definition, classes: list[str]) -> str:
        """The definition's own lines under headers that give it its class and its indentation:
        `super()` and names such as `__x` mean what they meant."""
        lines = definition_lines(node, self.new_lines)
        headers = [f"{' ' * depth}class {name}:" for depth, name in enumerate(classes)]
        if not classes and lines[0][:1].isspace():
            headers = ["if True:"]
        return "\n".join([*headers, *lines])

    def _added(
        self, nodes: list[ast.stmt], outer: tuple[ast.stmt, ...], removed: list[ast.stmt]
    ) -> None:
        """They run together, with what stands between them."""
        if not nodes or removed:
            return
        if outer:
            self._problem(outer[-1].lineno, "gets a new statement in its body")
            return
        if any(isinstance(e, ast.ImportFrom) and e.module == "__future__" for e in nodes):
            self._problem(nodes[0].lineno, "is a new `from __future__` import")
            return
        first, last = nodes[0], nodes[-1]
        lines = self.new_lines[first_line(first) - 1 : last.end_lineno]
        # After a semicolon a statement begins, or ends, within its line. Columns count bytes.
        lines[-1] = lines[-1].encode()[: last.end_col_offset].decode()
        if first_line(first) == first.lineno:
            lines[0] = lines[0].encode()[first.col_offset :].decode()
        self.found.added.append("\n".join(lines))

    def _problem(self, line: int, words: str) -> None:
        self.found.problems.append(f"line {line} {words}, outside any function")


def _keys(body: list[ast.stmt]) -> list[str]:
    """Definitions are the same statement if they have the same name; an `if` by its test."""
    return [_key(each) for each in body]


def _key(node: ast.stmt) -> str:
    if isinstance(node, Definition):
        return f"def {node.name}"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return _frame(node) if hasattr(node, "body") else ast.dump(node)


def _frame(node: ast.stmt) -> str:
    """A compound statement without what is in its blocks."""
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name == "handlers":
            parts += [ast.dump(each.type) if each.type else "" for each in value]
        elif name not in _BLOCKS:
            values = value if isinstance(value, list) else [value]
            parts += [ast.dump(v) if isinstance(v, ast.AST) else repr(v) for v in values]
    return " ".join(parts)


def _making(node: Definition) -> list[str]:
    """What runs when the function is made: decorators and defaults. Annotations are for readers."""
    made = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
    return [ast.dump(each) if each is not None else "" for each in made]


def _uses_class(node: Definition) -> bool:
    """Does it close over the class that it stands in?"""
    return any(
        isinstance(each, ast.Name) and each.id in ("super", "__class__") for each in ast.walk(node)
    )


def _is_idle(node: ast.stmt) -> bool:
    """It can be left as it was: an import, a string, a `pass`."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return _imports(node) or isinstance(node, ast.Pass)


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))
