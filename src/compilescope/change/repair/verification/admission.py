"""What a patch that nobody vouches for may bring into a program, before any of it runs.

A run proves something only of code that does the same whenever it is given the same. What looks at
the clock, the environment, files, its own caller or whether it is compiled can do one thing while
it is watched and another later; what reaches into torch, the interpreter or exceptions of others
can change the watching itself. No run shows that, so such code is not run: new uses alone count,
a line of the program that does so already may stay in its function.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

_PURE = frozenset(
    {
        *("__future__", "abc", "collections", "contextlib", "dataclasses", "enum", "functools"),
        *("itertools", "math", "numbers", "operator", "typing"),
    }
)
"""Modules of Python's own library whose functions depend on what they are given alone."""
_OF_TORCH = frozenset(
    {
        *("", "nn", "functional", "special", "fft", "linalg", "func", "autograd", "optim", "amp"),
        *("compiler", "library", "utils", "checkpoint", "distributions", "masked", "nested"),
        *("attention", "modules", "parameter", "init"),
    }
)
"""Parts of torch that may be imported."""
_PRIVATE_OF_TORCH = ("_check", "_assert_async", "_foreach_", "_dynamo", "_scaled_mm")
_OF_DYNAMO = frozenset({"mark_dynamic", "maybe_mark_dynamic", "mark_static"})
_BUILTINS = frozenset(
    {
        *("exec", "eval", "compile", "open", "input", "__import__", "globals", "locals", "vars"),
        *("breakpoint", "exit", "quit", "id", "hash", "dir", "memoryview", "delattr", "setattr"),
        *("help", "copyright", "credits", "license", "BaseException", "SystemExit"),
        *("KeyboardInterrupt", "GeneratorExit", "BaseExceptionGroup"),
    }
)
_REACHING = frozenset(
    {
        # Whether anybody looks: where memory lies, how often it was written, who compiles.
        *("data_ptr", "storage", "untyped_storage", "is_leaf", "is_shared", "share_memory_"),
        *("is_compiling", "is_dynamo_compiling", "is_exporting", "is_scripting", "is_tracing"),
        *("is_fx_tracing", "is_inference"),
        # Files, code that is text, another machine.
        *("load", "save", "load_library", "load_url", "from_file", "fromfile", "tofile", "memmap"),
        *("savez", "savetxt", "loadtxt", "genfromtxt", "hub", "cpp_extension", "classes"),
        *("ctypeslib", "f2py", "get_type_hints", "ForwardRef", "attrgetter", "methodcaller"),
        # Exceptions and results of other code.
        *("suppress", "TorchFunctionMode", "TorchDispatchMode", "overrides", "set_stance"),
        *("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"),
        *("gi_frame", "tb_frame", "f_back", "f_locals", "f_globals", "cr_frame"),
        # What counts on one process at one time.
        *("Thread", "Process", "fork", "spawn", "multiprocessing", "distributed"),
    }
)
_DUNDERS = frozenset({"__init__", "__future__", "__all__"})
_MOST_LETTERS = 40_000
"""That a patch may add to a file. Chosen: far above what mends a cause."""


def refusal(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Why the texts `after` are not run: one clause; empty where they may be. `before` are those of
    all files of the user's, by path."""
    program = _OwnSource(dict(before))
    for path, text in after.items():
        name = os.path.basename(path)
        old = before.get(path)
        if old is None:
            return f"it changes {name}, which is not a file of the program"
        if len(text) > len(old) + _MOST_LETTERS:
            return f"it adds too much to {name}"
        try:
            new = _ParsedText.read(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = f" on line {error.lineno}" if isinstance(error, SyntaxError) else ""
            words = error.msg if isinstance(error, SyntaxError) else str(error)
            return f"{name} would not be valid Python: {words}{at}"
        for line, words in _PatchLook(program, _ParsedText.known(old), new).found():
            return f"line {line} of {name} {words}"
    return ""


@dataclass(frozen=True)
class _NameChain:
    """`a.b.c`, or what hangs on a value without a name: `.b.c`."""

    parts: tuple[str, ...]
    line: int
    scope: str
    """The function that it stands in; empty outside of any."""
    statement: str
    """The line that it stands in: in another one its value may go elsewhere."""

    @property
    def use(self) -> tuple[tuple[str, ...], str, str]:
        return self.parts, self.scope, self.statement

    @property
    def words(self) -> str:
        return ".".join(part for part in self.parts if part)


@dataclass
class _ParsedText:
    """A text, parsed."""

    tree: ast.Module

    @classmethod
    def read(cls, text: str) -> _ParsedText:
        tree = ast.parse(text)
        compile(text, "patched", "exec", dont_inherit=True)
        return cls(tree)

    @classmethod
    def known(cls, text: str) -> _ParsedText:
        try:
            return cls(ast.parse(text))
        except (SyntaxError, ValueError, RecursionError):
            return cls(ast.Module([], []))

    @cached_property
    def imports(self) -> dict[str, str]:
        """What names mean that are imported anywhere in it: `np` -> `numpy`."""
        return {name: full for _, name, full in self.imported}

    @cached_property
    def imported(self) -> list[tuple[int, str, str]]:
        """The line, the name, and what it means."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    full = each.name if each.asname else each.name.partition(".")[0]
                    found.append((node.lineno, each.asname or full, each.name))
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                for each in node.names:
                    found.append((node.lineno, each.asname or each.name, f"{base}:{each.name}"))
        return found

    @cached_property
    def chains(self) -> list[_NameChain]:
        return list(_chains(self.tree, "", ""))

    @cached_property
    def scopes(self) -> dict[str, ast.AST]:
        return dict(_functions(self.tree, ""))

    @cached_property
    def locals_of(self) -> dict[str, set[str]]:
        """By function: its parameters and what it assigns, those of the functions around it too."""
        found: dict[str, set[str]] = {"": set()}
        for name, node in self.scopes.items():
            around = found.get(name.rpartition(".")[0], set())
            found[name] = around | _bound_in(node)
        return found

    @cached_property
    def top_names(self) -> set[str]:
        """What its top level and its classes define, but by assignment."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {node.name for node in ast.walk(self.tree) if isinstance(node, kinds)}


def _chains(node: ast.AST, scope: str, line: str) -> Iterator[_NameChain]:
    if isinstance(node, (ast.stmt, ast.ExceptHandler)):
        line = ast.unparse(node).partition("\n")[0]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for outer in (*node.decorator_list, *_signature(node)):
            yield from _chains(outer, scope, line)
        for part in node.body:
            yield from _chains(part, f"{scope}.{node.name}", line)
        return
    if isinstance(node, (ast.Attribute, ast.Name)):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        root = inner.id if isinstance(inner, ast.Name) else ""
        yield _NameChain((root, *parts), node.lineno, scope, line)
        if not isinstance(inner, ast.Name):
            yield from _chains(inner, scope, line)
        return
    if isinstance(node, ast.Call) and _is_getattr(node):
        named = node.args[1] if len(node.args) > 1 else None
        is_text = isinstance(named, ast.Constant) and isinstance(named.value, str)
        name = str(named.value) if is_text else "__any__"  # type: ignore[union-attr]
        root = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
        yield _NameChain((root, name), node.lineno, scope, line)
    for child in ast.iter_child_nodes(node):
        yield from _chains(child, scope, line)


def _is_getattr(node: ast.Call) -> bool:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return name in ("getattr", "hasattr") and bool(node.args)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    yield node.args
    if node.returns is not None:
        yield node.returns


def _functions(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = f"{scope}.{child.name}"
            yield inner, child
        yield from _functions(child, inner)


def _bound_in(function: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
    return found


class _OwnSource:
    """All files of the user's, as they were: which of their names look at the world."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.files = {path: _ParsedText.known(text) for path, text in texts.items()}
        self.modules = {_module_name(path) for path in texts}

    @cached_property
    def looking(self) -> set[str]:
        """Functions and variables whose value comes from outside, by their last names: what one of
        them is in any file, it counts as in all."""
        found: set[str] = set()
        while True:
            known = len(found)
            for file in self.files.values():
                found |= self._looking_in(file, found)
            if len(found) == known:
                return found

    def _looking_in(self, file: _ParsedText, known: set[str]) -> set[str]:
        found = set()
        for chain in file.chains:
            if chain.scope and self.looks(chain, file, known):
                found.add(chain.scope.rpartition(".")[2])
        for node in ast.walk(file.tree):
            for target, value in _assignments(node):
                is_attribute = isinstance(target, ast.Attribute)
                is_top = isinstance(target, ast.Name) and node in file.tree.body
                if not (is_attribute or is_top):
                    continue
                if any(self.looks(each, file, known) for each in _chains(value, "", "")):
                    found.add(target.attr if isinstance(target, ast.Attribute) else target.id)  # type: ignore[attr-defined]
        return found - {"__init__", "forward", "__call__"}

    def looks(self, chain: _NameChain, file: _ParsedText, known: set[str]) -> str:
        """What it looks at, in words; empty where it depends on what it is given alone."""
        root, *rest = chain.parts
        is_local = root in file.locals_of.get(chain.scope, ())
        full = "" if is_local else file.imports.get(root, "")
        if full and (words := self.beyond(full, rest)):
            return words
        reached = next((part for part in rest if part in _REACHING), "")
        if reached or (full and full.rpartition(":")[2] in _REACHING):
            return "reaches beyond the values that it is given"
        if not is_local and root in _BUILTINS:
            return "reaches beyond the values that it is given"
        if (not is_local and not full and root in known) or any(part in known for part in rest):
            return "uses what comes from outside, such as the clock, a file or the command line"
        if full and full.rpartition(":")[2] in known:
            return "uses what comes from outside, such as the clock, a file or the command line"
        return ""

    def beyond(self, full: str, rest: list[str]) -> str:
        """What is wrong with a module, or with what is taken of it."""
        module, _, name = full.partition(":")
        top = module.partition(".")[0]
        if top == "compilescope":
            return "reaches into compilescope"
        if top == "torch":
            parts = [*module.split(".")[1:], *([name] if name else []), *rest]
            private = next((part for part in parts if part.startswith("_")), "")
            if private and not private.startswith(_PRIVATE_OF_TORCH):
                return "reaches into private parts of torch"
            if private == "_dynamo" and parts[-1] not in _OF_DYNAMO:
                return "reaches into private parts of torch"
            return ""
        if module.startswith(".") or top in self.modules or top in _PURE:
            return ""
        if top in sys.stdlib_module_names:
            return "looks at what is outside of the program's own values"
        return ""


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value:
        yield node.target, node.value


def _module_name(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "__init__" else stem


@dataclass
class _PatchLook:
    """At the new text of one file."""

    program: _OwnSource
    old: _ParsedText
    new: _ParsedText
    _tainted: dict[str, set[str]] = field(default_factory=dict)

    def found(self) -> Iterator[tuple[int, str]]:
        """Lines, and what is wrong there."""
        yield from self._imports()
        yield from self._names()
        yield from self._statements()

    def _imports(self) -> Iterator[tuple[int, str]]:
        old = {full for _, _, full in self.old.imported}
        for line, name, full in self.new.imported:
            before = self.old.imports.get(name)
            if before is not None and before != full:
                yield line, f"gives `{name}` another meaning"
            if full in old:
                continue
            module, _, part = full.partition(":")
            top, *parts = module.split(".")
            known = module.startswith(".") or top in self.program.modules
            of_torch = top == "torch" and set(parts) <= _OF_TORCH
            is_pure = top in _PURE or (top == "numpy" and "numpy" in self.packages)
            words = self.program.beyond(full, [])
            if words or part in _REACHING or (top == "torch" and not of_torch):
                yield line, f"imports `{full.replace(':', '.')}`, which {words or 'reaches beyond'}"
            elif not (known or of_torch or is_pure):
                yield line, f"imports `{full.replace(':', '.')}`, which the program does not use"
            elif hasattr(builtins, name):
                yield line, f"gives `{name}` another meaning"

    def _names(self) -> Iterator[tuple[int, str]]:
        left = Counter(each.use for each in self.old.chains)
        for chain in self.new.chains:
            if left[chain.use] > 0 and not self._is_shadowed(chain):
                left[chain.use] -= 1
                continue
            dunder = next((part for part in chain.parts if _is_dunder(part)), "")
            if dunder:
                named = "a name that is made up" if dunder == "__any__" else f"`{dunder}`"
                yield chain.line, f"uses {named}"
            words = self.program.looks(chain, self.new, self.program.looking)
            if words:
                yield chain.line, f"{words}: `{chain.words}`"
            if self._is_new_of_package(chain):
                yield chain.line, f"uses `{chain.words}`, which the program does not use"
            if chain.parts[0] in self._tainted_in(chain.scope):
                yield chain.line, f"uses what comes from outside: `{chain.words}`"

    @cached_property
    def packages(self) -> set[str]:
        """That the old text imports something of."""
        return {full.partition(":")[0].partition(".")[0] for _, _, full in self.old.imported}

    def _is_new_of_package(self, chain: _NameChain) -> bool:
        """Of a package of somebody's, which may do anything, only what the file uses already."""
        full = self.new.imports.get(chain.parts[0], "")
        top = full.partition(":")[0].partition(".")[0]
        is_local = chain.parts[0] in self.new.locals_of.get(chain.scope, ())
        known = top in ("", "torch", "numpy", *_PURE, *self.program.modules)
        if is_local or known or full.startswith("."):
            return False
        return chain.parts not in {each.parts for each in self.old.chains}

    def _is_shadowed(self, chain: _NameChain) -> bool:
        """Does the name mean something else by now?"""
        was, now = (file.imports.get(chain.parts[0]) for file in (self.old, self.new))
        return was != now

    def _tainted_in(self, scope: str) -> set[str]:
        """Local variables that hold what comes from outside."""
        if scope not in self._tainted:
            found: set[str] = set()
            node = self.new.scopes.get(scope)
            for part in ast.walk(node) if node is not None else ():
                for target, value in _assignments(part):
                    chains = list(_chains(value, scope, ""))
                    known = self.program.looking
                    if any(self.program.looks(each, self.new, known) for each in chains) or any(
                        each.parts[0] in found for each in chains
                    ):
                        names = (n for n in ast.walk(target) if isinstance(n, ast.Name))
                        found |= {each.id for each in names}
            self._tainted[scope] = found
        return self._tainted[scope]

    def _statements(self) -> Iterator[tuple[int, str]]:
        left = Counter(ast.dump(node) for node in ast.walk(self.old.tree) if _is_told(node))
        for node, scope in _with_scope(self.new.tree, ""):
            if not _is_told(node):
                continue
            told = ast.dump(node)
            if left[told] > 0:
                left[told] -= 1
                continue
            words = self._wrong(node, scope)
            if words:
                yield getattr(node, "lineno", 1), words

    def _wrong(self, node: ast.AST, scope: str) -> str:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return f"writes to variables of other functions: `{ast.unparse(node)}`"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            return "swallows every exception"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_known = node.name in self.old.top_names
            if _is_dunder(node.name) and not is_known:
                return f"defines `{node.name}`"
            return "" if is_known else self._rebinding(node.name, scope)
        if isinstance(node, ast.Attribute):
            root: ast.AST = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            name = root.id if isinstance(root, ast.Name) else ""
            is_local = name in self.new.locals_of.get(scope, ())
            foreign = name in self.new.imports or name in self.new.top_names or not name
            if foreign and not is_local:
                return f"changes `{ast.unparse(node)}`, which other code uses too"
            return ""
        if isinstance(node, ast.Name):
            return self._rebinding(node.id, scope)
        return ""

    def _rebinding(self, name: str, scope: str) -> str:
        is_builtin = hasattr(builtins, name) and not scope
        if is_builtin or name in self.old.imports or (name in self.old.top_names and not scope):
            return f"gives `{name}` another meaning"
        return ""


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _DUNDERS


def _is_told(node: ast.AST) -> bool:
    """Does it bind a name, or write into something?"""
    if isinstance(node, (ast.Attribute, ast.Name)):
        return isinstance(node.ctx, (ast.Store, ast.Del))
    kinds = (ast.Global, ast.Nonlocal, ast.ExceptHandler)
    return isinstance(node, (*kinds, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _with_scope(node: ast.AST, scope: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, scope
        named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _with_scope(child, f"{scope}.{child.name}" if named else scope)  # type: ignore[attr-defined]
