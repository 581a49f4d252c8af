"""One file of the program, parsed: what stands where, what names mean, where it imports a module,
and how to change it.

Nodes are those of the parsed tree itself, so a node found here can be replaced by identity. Lines
count from 1, columns from 0 and in characters, as a finding has them.

A program may set variables of the environment before it imports torch, or import it inside `try`,
`if` or under `if __name__ == "__main__"`. A line that needs torch goes right after that import,
and a new import of torch never goes above what stood before the first one.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from compilescope.base.patterns import late
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.trees import cst, kinds, metadata
from compilescope.record.python_text import parse_python

N = TypeVar("N", bound="cst.CSTNode")
_AS = late(r"\bas[\s\\]+(\w+)")
_MOST_NODES = 60_000
"""Chosen: LibCST takes 50 microseconds and a kilobyte for each of them, so 3 s and 60 MB."""


@lru_cache(maxsize=16)
def _problem(text: str) -> str:
    """Why LibCST is not to read it: its parser has no bounds, and crashes on deep nesting.

    Kept: every fix asks again.
    """
    # LibCST has more nodes than Python: a comma is four.
    left = _MOST_NODES - 3 * text.count(",")
    if left < 0:
        return "it is too large"
    try:
        nodes = sum(1 for _ in islice(ast.walk(parse_python(text)), left + 1))
    except SyntaxError as error:
        return error.msg
    return "it is too large" if nodes > left else ""


class SourceModule:
    """Raises `Refused` where the text is no Python that LibCST reads."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.kept: dict[str, list[Any]] = {}
        """What was found in it, for those who would look for it again."""
        self.codes: dict[cst.CSTNode, str] = {}
        """Statements of its top level, written out."""
        self._statements: dict[int, cst.BaseStatement | None] = {}
        self._children: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        try:
            if problem := _problem(text):
                raise ValueError(problem)
            tree = cst.parse_module(text)
            self._wrapper = metadata.MetadataWrapper(tree, unsafe_skip_copy=True)
            self.tree = self._wrapper.module
            self._positions = self._wrapper.resolve(metadata.PositionProvider)
            self._parents = _parents(self.tree)
        except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, ValueError) as error:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Refused(f"{Path(path).name} cannot be parsed: {words}") from None

    @cached_property
    def _scopes(self) -> dict[cst.CSTNode, metadata.Scope | None]:
        return dict(self._wrapper.resolve(metadata.ScopeProvider))

    # Where things stand

    def position(self, node: cst.CSTNode) -> metadata.CodeRange:
        return self._positions[node]

    def line(self, node: cst.CSTNode) -> int:
        return int(self._positions[node].start.line)

    def code(self, node: cst.CSTNode) -> str:
        """As its author wrote it."""
        return self.tree.code_for_node(node)

    def node_at(
        self, line: int, column: int | None = None, end_column: int | None = None
    ) -> cst.CSTNode | None:
        """The expression at a place; without columns, or where none is there, the statement."""
        if column is not None:
            found = self._expression_at(line, column, end_column)
            if found is not None:
                return found
        return self.statement_at(line)

    def _expression_at(
        self, line: int, column: int, end_column: int | None
    ) -> cst.BaseExpression | None:
        here = [(node, self._positions[node]) for node in self._expressions.get((line, column), ())]
        if end_column is not None:
            # An expression of several lines ends at its column of a later line.
            here = [each for each in here if each[1].end.column == end_column]
        # The outermost of those: a name and the call of it may begin at one place.
        here.sort(key=lambda each: (each[1].end.line, each[1].end.column), reverse=True)
        return here[0][0] if here else None

    @cached_property
    def _expressions(self) -> dict[tuple[int, int], list[cst.BaseExpression]]:
        """By the line and the column that they begin at."""
        found: dict[tuple[int, int], list[cst.BaseExpression]] = {}
        for node, place in self._positions.items():
            if _is_kind(type(node), cst.BaseExpression):
                start = (place.start.line, place.start.column)
                found.setdefault(start, []).append(cast(cst.BaseExpression, node))
        return found

    @cached_property
    def _lines(self) -> list[tuple[int, int, cst.BaseStatement]]:
        """Every statement with its first and its last line."""
        return [
            (place.start.line, place.end.line, cast(cst.BaseStatement, node))
            for node, place in self._positions.items()
            if _is_kind(type(node), cst.SimpleStatementLine, cst.BaseCompoundStatement)
        ]

    def statement_at(self, line: int) -> cst.BaseStatement | None:
        """The innermost statement that begins on the line, else that reaches over it."""
        if line not in self._statements:
            self._statements[line] = self._find_statement(line)
        return self._statements[line]

    def _find_statement(self, line: int) -> cst.BaseStatement | None:
        found: tuple[tuple[bool, int], cst.BaseStatement] | None = None
        for first, last, node in self._lines:
            if first <= line <= last:
                key = (first == line, first)
                if found is None or key > found[0]:
                    found = (key, node)
        return found[1] if found else None

    # What is around

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """From its parent outwards."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def around(self, node: cst.CSTNode, *kinds: type[N], within_function: bool = True) -> N | None:
        """The nearest ancestor of one of these kinds, up to the function's border."""
        for above in self.ancestors(node):
            if isinstance(above, kinds):
                return above
            if within_function and isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                return None
        return None

    def statement_of(self, node: cst.CSTNode) -> cst.BaseStatement:
        """The statement that a node is part of, or is itself: a whole line, or a compound one."""
        for each in itertools.chain([node], self.ancestors(node)):
            if isinstance(each, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return each
        raise NotMeant("it is not part of a statement")

    def smallest_statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """As `statement_of`; of a line with several statements the one that the node lies in.
        Raises `Refused` in `if x: y` on one line."""
        for each in itertools.chain([node], self.ancestors(node)):
            if isinstance(each, cst.SimpleStatementSuite):
                raise Refused("it shares a line with the statement around it")
            above = self.parent(each)
            if isinstance(above, cst.SimpleStatementLine) and len(above.body) > 1:
                return each
            if isinstance(each, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return each
        raise NotMeant("it is not part of a statement")

    def function_of(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function around it; None in a lambda or outside of any."""
        return self.around(node, cst.FunctionDef)

    def class_of(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class that a method stands in."""
        return self.around(function, cst.ClassDef)

    def block_of(self, statement: cst.BaseStatement) -> cst.IndentedBlock | cst.Module:
        """The block whose body has the statement. Raises `Refused` for `if x: y` on one line."""
        above = self.parent(statement)
        if isinstance(above, (cst.IndentedBlock, cst.Module)):
            return above
        raise Refused("it shares a line with the statement around it")

    def following(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        """The statements after it in its own block."""
        body = list(self.block_of(statement).body)
        place = next(i for i, each in enumerate(body) if each is statement)
        return [each for each in body[place + 1 :] if isinstance(each, cst.BaseStatement)]

    def walk(self, node: cst.CSTNode | None = None) -> Iterator[cst.CSTNode]:
        """A node and all within it, in source order."""
        stack = [self.tree if node is None else node]
        while stack:
            current = stack.pop()
            yield current
            stack.extend(self.reversed_children(current))

    def reversed_children(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Kept, since libcst finds them by copying the node, and every fix walks the module."""
        known = self._children.get(node)
        if known is None:
            known = self._children[node] = list(reversed(node.children))
        return known

    # What names mean

    def scope(self, node: cst.CSTNode) -> metadata.Scope | None:
        for each in itertools.chain([node], self.ancestors(node)):
            found = self._scopes.get(each)
            if found is not None:
                return found
        return None

    def meaning(self, node: cst.CSTNode) -> frozenset[str]:
        """The qualified names of an expression: `torch.where` for `th.where` after `import torch
        as th`; `builtins.print`; `f.<locals>.x` for a local. Empty for what is no name."""
        scope = self._scopes.get(node)
        found = scope.get_qualified_names_for(node) if scope is not None else ()
        return frozenset(each.name for each in found)

    def calls(self, node: cst.CSTNode, *names: str) -> bool:
        """Is it a call of one of these, by its qualified name?"""
        return isinstance(node, cst.Call) and self.means(node.func, *names)

    def means(self, node: cst.CSTNode, *names: str) -> bool:
        """Is one of these a qualified name of it?"""
        return self._may_mean(node, names) and bool(self.meaning(node) & set(names))

    def _may_mean(self, node: cst.CSTNode, names: Iterable[str]) -> bool:
        """By its spelling alone: to find out what all names of a large file mean takes seconds.
        Only an import can give a thing another last name than its own."""
        if isinstance(node, cst.Attribute):
            spelled = node.attr.value
        elif isinstance(node, cst.Name):
            spelled = node.value
            if spelled in self._renamed:
                return True
        else:
            return True
        return any(name.rpartition(".")[2] == spelled for name in names)

    @cached_property
    def _renamed(self) -> frozenset[str]:
        return frozenset(_AS.findall(self.text))

    def names_in(self, node: cst.CSTNode) -> set[str]:
        """Every plain name within, read or written; attributes and keywords are not names."""
        return {each.value for each in self.walk(node) if self._is_free_name(each)}  # type: ignore[attr-defined]

    def _is_free_name(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Name):
            return False
        above = self._parents.get(node)
        if isinstance(above, cst.ImportFrom):
            # The module that things come from is not bound.
            return False
        if isinstance(above, cst.Attribute):
            return above.value is node and not isinstance(self._parents.get(above), cst.ImportFrom)
        return not (isinstance(above, cst.Arg) and above.keyword is node)

    def fresh_name(self, wanted: str) -> str:
        """`wanted`, or with a number, so that the file has no such name yet."""
        taken = {each.value for each in self.walk() if isinstance(each, cst.Name)}
        numbered = (f"{wanted}_{n}" for n in itertools.count(2))
        return next(name for name in itertools.chain([wanted], numbered) if name not in taken)

    def name_of_module(self, dotted: str) -> str | None:
        """What the file itself calls a module at its top level: `torch`, `np`, `F`."""
        found = import_of(self.tree, dotted)
        return found.name if found is not None else None


def _parents(tree: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    """Of every node the one above it. libcst's own provider copies the tree, which takes eight
    times as long (libcst 1.9)."""
    found: dict[cst.CSTNode, cst.CSTNode] = {}
    left: list[cst.CSTNode] = [tree]
    while left:
        node = left.pop()
        for name in _fields(type(node)):
            value = getattr(node, name)
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if _is_kind(cast(Hashable, type(each)), cst.CSTNode):
                    found[each] = node
                    left.append(each)
    return found


@cache
def _is_kind(kind: Any, *wanted: type) -> bool:
    """As `isinstance`, which is slow for libcst's classes: they are abstract ones."""
    return issubclass(kind, wanted)


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind))


Bound = tuple[str, str]
"""(module, local name)."""
_TRIES = kinds(lambda: (cst.Try, cst.TryStar))


def imported(part: cst.CSTNode) -> Iterator[Bound]:
    """What one import binds."""
    if isinstance(part, cst.Import):
        for alias in part.names:
            dotted = _dotted_name(alias.name)
            if alias.asname is not None:
                yield dotted, _dotted_name(alias.asname.name)
            elif "." not in dotted:
                yield dotted, dotted
            else:
                yield dotted.split(".")[0], dotted.split(".")[0]
                yield dotted, dotted
    elif isinstance(part, cst.ImportFrom) and not isinstance(part.names, cst.ImportStar):
        if part.module is None or part.relative:
            return
        for alias in part.names:
            name = _dotted_name(alias.name)
            local = _dotted_name(alias.asname.name) if alias.asname is not None else name
            yield f"{_dotted_name(part.module)}.{name}", local


def _dotted_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _is_import(statement: cst.CSTNode) -> bool:
    """A line that only imports."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(part, (cst.Import, cst.ImportFrom)) for part in statement.body
    )


class Import:
    """Where the module itself, not one of its functions, imports something."""

    def __init__(self, name: str, line: cst.BaseStatement, block: Sequence[cst.CSTNode]) -> None:
        self.name = name
        """What the file calls it."""
        self.line = line
        """The statement after which the name is bound: the import, or the `try` around it."""
        self.block = block
        """The statements among which that one stands."""

    def last_import(self) -> cst.BaseStatement:
        """The last of the imports that follow directly."""
        found = self.line
        rest = iter(self.block)
        for each in rest:
            if each is self.line:
                break
        for each in rest:
            if not _is_import(each):
                break
            assert isinstance(each, cst.BaseStatement)
            found = each
        return found


def import_of(tree: cst.Module, dotted: str) -> Import | None:
    """The first one, in the order in which the file runs; at the top level before all others."""
    found = [each for each in _imports(tree.body) if each[0] == dotted]
    found.sort(key=lambda each: each[1].block is not tree.body)
    return found[0][1] if found else None


def _imports(body: Sequence[cst.CSTNode]) -> Iterator[tuple[str, Import]]:
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            for part in statement.body:
                for module, name in imported(part):
                    yield module, Import(name, statement, body)
        elif isinstance(statement, _TRIES):
            for module, found in _imports(statement.body.body):
                yield module, Import(found.name, statement, body)
        elif isinstance(statement, (cst.With, cst.If)) and not _is_for_types(statement):
            everywhere = _on_every_side(statement)
            for module, found in _imports(statement.body.body):
                if (module, found.name) in everywhere:
                    found = Import(found.name, statement, body)
                yield module, found


def _on_every_side(block: cst.With | cst.If) -> set[Bound]:
    """What is imported whichever side of an `if` runs."""
    if isinstance(block, cst.With) or block.orelse is None:
        return set()
    here = {(module, found.name) for module, found in _imports(block.body.body)}
    if isinstance(block.orelse, cst.If):
        other = {(module, found.name) for module, found in _imports([block.orelse])}
        return here & other if _ends_with_else(block.orelse) else set()
    return here & {(module, found.name) for module, found in _imports(block.orelse.body.body)}


def _ends_with_else(block: cst.If) -> bool:
    while isinstance(block.orelse, cst.If):
        block = block.orelse
    return block.orelse is not None


def _is_for_types(block: cst.With | cst.If) -> bool:
    """`if TYPE_CHECKING:`, which never runs."""
    if isinstance(block, cst.With):
        return False
    return _dotted_name(block.test).split(".")[-1] == "TYPE_CHECKING"


def place_for_import(body: Sequence[cst.CSTNode], package: str) -> int:
    """How many statements of a file stay above a new import: after the first from the same
    package, wherever that is, else after the last one before any definition or block; of Python's
    own library after the last of those."""
    for number, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine) and any(
            _package(part) == package for part in statement.body
        ):
            return number + 1
    last = 0
    for number, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0] if statement.body else None
        if isinstance(first, (cst.Import, cst.ImportFrom)):
            if package in sys.stdlib_module_names and not is_of_python(first):
                break
            last = number + 1
        elif number == 0 and _is_text(first):
            last = 1
    return last


def is_of_python(node: cst.CSTNode) -> bool:
    """Is it an import of Python's own library?"""
    return _package(node) in sys.stdlib_module_names


def place_for_setting(body: Sequence[cst.CSTNode], package: str) -> int:
    """Likewise for a line that needs the new import: below the imports that follow, and below
    what prepares them, such as `os.environ["X"] = "1"`."""
    place = place_for_import(body, package)
    for number, statement in enumerate(body[place:], place):
        if not _is_import(statement) and not _prepares(statement):
            break
        place = number + 1
    return place


def _prepares(statement: cst.CSTNode) -> bool:
    """It sets something of Python's own: a variable of the environment, the path, a filter."""
    if isinstance(statement, cst.If) and statement.orelse is None:
        return all(map(_prepares, statement.body.body))
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    part = statement.body[0]
    node: cst.CSTNode | None = None
    if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
        node = part.value.func
    elif isinstance(part, cst.Assign):
        node = part.targets[0].target
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name) and node.value in ("os", "sys", "warnings", "logging")


def _package(part: cst.CSTNode) -> str:
    if isinstance(part, cst.ImportFrom):
        return _dotted_name(part.module).split(".")[0] if part.module and not part.relative else ""
    return next((module.split(".")[0] for module, _ in imported(part)), "")


def _is_text(part: cst.CSTNode | None) -> bool:
    return isinstance(part, cst.Expr) and isinstance(
        part.value, (cst.SimpleString, cst.ConcatenatedString)
    )
