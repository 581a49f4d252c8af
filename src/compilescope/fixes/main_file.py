"""Which file a program begins in: where flags and warm-up calls go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.machinery import PathFinder


def main_file_of(command: Sequence[str], cwd: str) -> str:
    """The absolute path; empty where the program has no file of its own. `command` is as the user
    typed it: a script or `-m MODULE` with arguments, `-c CODE`, or a runner such as pytest."""
    if not command or not cwd:
        return ""
    first, *rest = command
    if first == "-m":
        return _module_file(rest[0], cwd) if rest else ""
    if first == "torchrun":
        first = next((word for word in rest if word.endswith(".py")), "")
    path = os.path.join(cwd, first)
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    return os.path.normpath(path) if first.endswith(".py") or os.path.isfile(path) else ""


def _module_file(name: str, cwd: str) -> str:
    """Found without importing anything."""
    path: list[str] | None = [cwd]
    spec = None
    for number, part in enumerate(name.split(".")):
        spec = PathFinder.find_spec(part, path) or (
            PathFinder.find_spec(part) if not number else None
        )
        if spec is None:
            return ""
        path = list(spec.submodule_search_locations or ())
    if path:
        inner = PathFinder.find_spec("__main__", path)
        spec = inner or spec
    return spec.origin or "" if spec is not None else ""
