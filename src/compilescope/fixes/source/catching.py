"""Whether a program catches an exception somewhere, so that its class matters."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Program

_MOST_FILES = 100
_EXPECTING = {"raises", "suppress", "assertRaises", "assertRaisesRegex"}
_EVERYTHING = {"Exception", "BaseException"}


def catcher(program: Program, file: str, name: str) -> str | None:
    """`train.py:12` of the first place in the user's own files that names the class, or one that
    it derives from other than `Exception`."""
    wanted = {name, *_bases(name)} - _EVERYTHING
    for module in own_modules(program, file):
        for node in module.walk():
            caught: list[cst.BaseExpression] = []
            if isinstance(node, cst.ExceptHandler) and node.type is not None:
                caught = [node.type]
            elif isinstance(node, cst.Call) and _last(node.func) in _EXPECTING:
                caught = [arg.value for arg in node.args]
            named = {_last(each) for part in caught for each in _classes(part)}
            if named & wanted:
                return f"{Path(module.path).name}:{module.line(node)}"
    return None


def _bases(name: str) -> set[str]:
    known = getattr(builtins, name, None)
    return (
        {base.__name__ for base in known.__mro__} - {"object"} if isinstance(known, type) else set()
    )


def _classes(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        yield from (element.value for element in node.elements)
    else:
        yield node


def _last(node: cst.CSTNode) -> str:
    """`ValueError` of `errors.ValueError`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def own_modules(program: Program, file: str) -> Iterator[SourceModule]:
    """The file, the script, and what they import of the user's own."""
    waiting = [file, program.main]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        if not path or path in seen:
            continue
        seen.add(path)
        try:
            module = program.module(path)
        except Refused:
            continue
        yield module
        roots = {str(Path(path).parent), str(Path(program.main).parent), program.root}
        for name in _imports(module):
            for root in roots:
                waiting += [found for found in _files(root, name) if program.is_own(found)]


def _imports(module: SourceModule) -> Iterator[str]:
    for node in module.walk():
        if isinstance(node, cst.Import):
            for alias in node.names:
                yield module.code(alias.name)
        elif isinstance(node, cst.ImportFrom):
            head = module.code(node.module) if node.module is not None else ""
            if head:
                yield head
            if not isinstance(node.names, cst.ImportStar):
                for alias in node.names:
                    yield f"{head}.{module.code(alias.name)}".strip(".")


def _files(root: str, dotted: str) -> list[str]:
    if not root:
        return []
    base = Path(root).joinpath(*dotted.split("."))
    return [str(path) for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
