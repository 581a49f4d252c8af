"""What a file consists of, found in one walk: its functions, classes and calls, and what of it is
given to torch.compile."""

from __future__ import annotations

import ast
import functools
from typing import TypeAlias

import msgspec

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


class Function(msgspec.Struct, frozen=True, dict=True):
    """A function, and the class that it is a method of."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @functools.cached_property
    def own_nodes(self) -> list[ast.AST]:
        """All that it does itself: not what functions inside it do."""
        found: list[ast.AST] = []
        stack: list[ast.AST] = list(reversed(self.node.body))
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            found.append(node)
            stack.extend(reversed(list(ast.iter_child_nodes(node))))
        return found

    @property
    def parameters(self) -> list[str]:
        """In the order in which a call gives them; without `self`."""
        arguments = self.node.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        return names[1:] if self.owner is not None and names[:1] == ["self"] else names

    @property
    def all_parameters(self) -> list[str]:
        return [*self.parameters, *(each.arg for each in self.node.args.kwonlyargs)]


class CompileCall(msgspec.Struct, frozen=True):
    """A place at which the program asks for compilation."""

    target: str
    """What is compiled, as its author calls it."""
    keywords: tuple[tuple[str, str], ...]
    node: ast.AST
    """The call, or the decorator."""
    way: str
    """`call`: torch.compile(x); `method`: x.compile(); `decorator`."""

    def option(self, name: str) -> str:
        """As it is written; empty where it is left out."""
        return dict(self.keywords).get(name, "")

    def text(self, **options: str) -> str:
        """The call with some options changed."""
        given = {**dict(self.keywords), **options}
        words = ", ".join(f"{key}={value}" for key, value in given.items())
        if self.way == "method":
            return f"{self.target}.compile({words})"
        if self.way == "decorator":
            return f"@torch.compile({words})" if words else "@torch.compile"
        return f"torch.compile({', '.join(filter(None, (self.target, words)))})"


class Outline(msgspec.Struct, frozen=True, dict=True):
    """A file."""

    tree: ast.Module
    functions: tuple[Function, ...]
    classes: dict[str, ast.ClassDef]
    calls: tuple[tuple[ast.Call, Function | None], ...]
    """Each with the function around it."""
    compiled: tuple[CompileCall, ...]

    @functools.cached_property
    def hooking(self) -> list[ast.Call]:
        """Calls that register a hook."""
        return [call for call, _ in self.calls if _registers(call)]

    def function_at(self, line: int, name: str = "") -> Function | None:
        """The innermost around a line; of this name, where one is given."""
        around = [each for each in self.functions if _reaches(each.node, line)]
        named = [each for each in around if not name or each.name == name]
        return max(named, key=lambda each: each.node.lineno, default=None)

    def functions_called(self, name: str) -> list[Function]:
        return [each for each in self.functions if each.name == name]


def outline_of(tree: ast.Module) -> Outline:
    functions: list[Function] = []
    classes: dict[str, ast.ClassDef] = {}
    calls: list[tuple[ast.Call, Function | None]] = []
    compiled: list[CompileCall] = []
    stack: list[tuple[ast.AST, Function | None, ast.ClassDef | None]] = [(tree, None, None)]
    while stack:
        node, function, owner = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            compiled.extend(_decorated(node))
            function, owner = Function(node, owner), None
            functions.append(function)
        elif isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, node)
            function, owner = None, node
        elif isinstance(node, ast.Call):
            calls.append((node, function))
            compiled.extend(_compiling(node))
        stack.extend((child, function, owner) for child in ast.iter_child_nodes(node))
    calls.sort(key=lambda each: (each[0].lineno, each[0].col_offset))
    return Outline(tree, tuple(functions), classes, tuple(calls), tuple(compiled))


def dotted(node: ast.AST) -> str:
    """`self.model` of the expression; empty where it is no name with attributes."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _registers(call: ast.Call) -> bool:
    last = (dotted(call.func) or getattr(call.func, "attr", "")).rpartition(".")[2]
    return last.startswith("register_") and last.endswith("hook")


def _reaches(node: FunctionNode, line: int) -> bool:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first <= line <= (node.end_lineno or node.lineno)


def _decorated(node: FunctionNode) -> list[CompileCall]:
    found = []
    for each in node.decorator_list:
        call = each.func if isinstance(each, ast.Call) else each
        if dotted(call) == "torch.compile":
            keywords = _keywords(each) if isinstance(each, ast.Call) else ()
            found.append(CompileCall(node.name, keywords, each, "decorator"))
    return found


def _compiling(node: ast.Call) -> list[CompileCall]:
    name = dotted(node.func)
    if name == "torch.compile" and node.args:
        return [CompileCall(ast.unparse(node.args[0]), _keywords(node), node, "call")]
    if name.endswith(".compile") and not node.args and not name.startswith(("re.", "torch.")):
        return [CompileCall(name.removesuffix(".compile"), _keywords(node), node, "method")]
    return []


def _keywords(node: ast.Call) -> tuple[tuple[str, str], ...]:
    return tuple([(each.arg, ast.unparse(each.value)) for each in node.keywords if each.arg])
