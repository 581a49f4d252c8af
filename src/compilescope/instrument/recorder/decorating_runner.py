"""Runs a script or module with named functions compiled: `NAMES [-m] TARGET ARGS...`.

A name is `function`, `Class.method`, with `package.module:` or `:` (the program itself) in front.
The decorator is put into the syntax tree, so lines and columns stay the user's own.
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import signal
import sys
import types
from importlib.machinery import SourceFileLoader
from typing import Any

_HELPER = "__compilescope_compiled__"


class _Decorate(ast.NodeTransformer):
    """Puts the decorator on the functions called `names`."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.found: set[str] = set()
        self._path: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        name = ".".join([*self._path, node.name])
        if name in self.names:
            self.found.add(name)
            helper = ast.copy_location(ast.Name(_HELPER, ast.Load()), node)
            node.decorator_list.append(helper)
        return node


def decorate(source: str | bytes, file: str, names: set[str]) -> types.CodeType:
    tree = ast.parse(source, file)
    transformer = _Decorate(names)
    transformer.visit(tree)
    missing = names - transformer.found
    if missing:
        sys.exit(f"compilescope: error: {file} does not define {', '.join(sorted(missing))}.")
    return compile(ast.fix_missing_locations(tree), file, "exec")


class _DecoratingLoader(SourceFileLoader):
    """Compiles a module with its named functions decorated, past the cache of byte code."""

    def __init__(self, fullname: str, path: str, names: set[str]) -> None:
        super().__init__(fullname, path)
        self._names = names

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return decorate(_source(path), path, self._names)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__[_HELPER] = _compiled
        super().exec_module(module)


class _DecoratingFinder:
    def __init__(self, wanted: dict[str, set[str]]) -> None:
        self._wanted = wanted

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        names = self._wanted.pop(fullname, None)
        if names is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            sys.exit(f"compilescope: error: module {fullname} has no Python source.")
        spec.loader = _DecoratingLoader(fullname, spec.origin, names)
        return spec


def _source(file: str) -> str | bytes:
    """As Python itself would show its lines, which need not be what lies on disk."""
    lines = linecache.getlines(file)
    if lines:
        return "".join(lines)
    with open(file, "rb") as script:
        return script.read()


def _compiled(function: Any) -> Any:
    from compilescope.base.settings import read_settings
    from compilescope.instrument.torchapi.autocompile import compiled

    return compiled(function, read_settings().compile_backend)


def main(arguments: list[str]) -> None:
    wanted: dict[str, set[str]] = {}
    for name in arguments[0].split(","):
        module, _, function = name.partition(":")
        wanted.setdefault(module, set()).add(function)
    own = wanted.pop("", set())
    sys.meta_path.insert(0, _DecoratingFinder(wanted))
    if arguments[1] == "-m":
        sys.path.insert(0, os.getcwd())
        spec = importlib.util.find_spec(arguments[2])
        if spec is not None and spec.submodule_search_locations:
            spec = importlib.util.find_spec(f"{arguments[2]}.__main__")
        if spec is None or not spec.origin:
            sys.exit(f"compilescope: error: there is no module {arguments[2]} to run.")
        file, package, rest = spec.origin, spec.parent, arguments[3:]
    else:
        file, package, rest = arguments[1], None, arguments[2:]
        sys.path[0] = os.path.dirname(os.path.abspath(file))
    sys.argv = [file, *rest]
    file = os.path.abspath(file)  # As Python names its main file since 3.9.
    code = decorate(_source(file), file, own)
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    main_module.__dict__.update({"__file__": file, "__package__": package, _HELPER: _compiled})
    try:
        exec(code, main_module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _die_of(error)


def _die_of(error: BaseException) -> None:
    """As Python would, without the frames that are ours."""
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    sys.stdout.flush()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
