"""What --compile NAME means: a class of modules, or a function where it is defined.

Source files are read, never imported: nothing of the program runs before the program does.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.instrument.recorder.target import Target


def resolve_names(names: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """Class names stay; functions become `module:name`, or `:name` in the program itself."""
    return tuple(_resolve(name, target) for name in names)


def _resolve(name: str, target: Target) -> str:
    if "," in name or ":" in name:
        raise ToolError(f"--compile takes one name at a time, not {name!r}.")
    own = _own_source(target)
    if own is not None and name in _functions(own):
        return f":{name}"
    parts = name.split(".")
    for split in range(len(parts) - 1, 0, -1):
        source = _module_source(".".join(parts[:split]), target)
        if source is not None and ".".join(parts[split:]) in _functions(source):
            return f"{'.'.join(parts[:split])}:{'.'.join(parts[split:])}"
    return name


def _own_source(target: Target) -> Path | None:
    if target.kind == "script":
        path = Path(target.words[0])
        return path if path.is_file() else path / "__main__.py"
    if target.kind == "module":
        source = _module_source(target.words[0], target)
        is_package = source is not None and source.name == "__init__.py"
        return source.with_name("__main__.py") if source and is_package else source
    return None


def _module_source(name: str, target: Target) -> Path | None:
    beside = Path(target.root, *name.split("."))
    for candidate in (beside.with_suffix(".py"), beside / "__init__.py"):
        if candidate.is_file():
            return candidate
    top = name.split(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        inner = Path(folder, *name.split(".")[1:])
        for candidate in (inner.with_suffix(".py"), inner / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _functions(path: Path) -> set[str]:
    """`function` and `Class.method` of a source file."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found.add(prefix + node.name)
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body, "")
    return found
