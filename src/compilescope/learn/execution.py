"""Runs the code of cells and answers so that tracebacks, and torch, find its lines."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from compilescope.learn.lesson import Lesson, LessonCell


def new_module(name: str, path: Path) -> ModuleType:
    """An empty module that is known by its name, as `inspect` and Dynamo want it."""
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    return module


def run_code(text: str, path: Path, names: dict[str, Any], first_line: int = 1) -> None:
    """`text` as if it stood in `path` from that line."""
    tree = ast.parse(text, str(path))
    ast.increment_lineno(tree, first_line - 1)
    exec(compile(tree, str(path), "exec", dont_inherit=True), names)


def run_cell(lesson: Lesson, cell: LessonCell, names: dict[str, Any]) -> None:
    run_code(cell.text, lesson.path, names, cell.first_line)


def load_check(lesson: Lesson) -> Any:
    """The function `check` of a lesson, with what the lesson imports and nothing else of it."""
    names = vars(new_module("lesson_check", lesson.path))
    for statement in _imports(cell.text for cell in lesson.body if cell.kind == "code"):
        with suppress(ImportError):  # What a lesson can do without.
            run_code(statement, lesson.path, names)
    run_cell(lesson, lesson.tagged("check"), names)
    return names["check"]


def _imports(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield ast.unparse(node)
