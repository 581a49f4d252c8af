"""Which file a program begins in."""

from __future__ import annotations

import os
from importlib.machinery import PathFinder

from compilescope.capture.target import Target


def main_file(target: Target) -> str:
    """The absolute path; empty where the program has no file of its own."""
    if target.kind == "script":
        path = os.path.abspath(target.words[0])
        return os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    if target.kind == "module":
        return _module_file(target.words[0])
    return ""


def _module_file(name: str) -> str:
    """Found without importing anything."""
    path: list[str] | None = [os.getcwd()]
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
