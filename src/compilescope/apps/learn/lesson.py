"""A lesson: one file of cells in the percent format, which is a plain script as well; run cell by
cell.

It can be made into a notebook, for which the package nbformat is needed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from compilescope.base.errors import ToolError

FOLDER = Path(__file__).parent.parent / "lessons"
_NAME = re.compile(r"(\d\d)_(\w+)\.py")
_HEAD = re.compile(r"# %%(?P<kind> \[markdown\])?(?: tags=\[(?P<tags>[^\]]*)\])?\s*")


@dataclass(frozen=True)
class LessonCell:
    """Some prose, or some code."""

    kind: str
    """`markdown` or `code`."""
    text: str
    first_line: int
    """Of the text, in the lesson's file."""
    tag: str = ""
    """`exercise`, `check` or `solution`; empty for a cell of the lesson itself."""


@dataclass(frozen=True)
class Lesson:
    """What a learner reads and runs."""

    number: int
    slug: str
    path: Path
    cells: tuple[LessonCell, ...]

    @cached_property
    def title(self) -> str:
        first = self.cells[0].text if self.cells else ""
        return first.partition("\n")[0].lstrip("# ").strip()

    @cached_property
    def question(self) -> str:
        """What it answers: the paragraph below the title."""
        _, _, rest = self.cells[0].text.partition("\n") if self.cells else ("", "", "")
        return " ".join(rest.strip().split("\n\n")[0].split())

    def tagged(self, tag: str) -> LessonCell:
        """The exercise's starter, its check or its solution."""
        found = [cell for cell in self.cells if cell.tag == tag]
        if len(found) != 1:
            raise ToolError(f"Lesson {self.number} has {len(found)} cells with the tag {tag}.")
        return found[0]

    @property
    def body(self) -> Iterable[LessonCell]:
        """All but the exercise's code."""
        return (cell for cell in self.cells if not cell.tag)


def all_lessons(folder: Path = FOLDER) -> list[Lesson]:
    """In order of their numbers."""
    found = []
    for path in sorted(folder.glob("*.py")):
        name = _NAME.fullmatch(path.name)
        if name is not None:
            text = path.read_text(encoding="utf-8")
            found.append(Lesson(int(name[1]), name[2], path, tuple(read_cells(text))))
    return found


def find_lesson(name: str) -> Lesson:
    """By its number or its slug."""
    lessons = all_lessons()
    for lesson in lessons:
        if name.isdecimal() and int(name) == lesson.number:
            return lesson
        if name.casefold().replace("-", "_") == lesson.slug:
            return lesson
    numbers = ", ".join(str(lesson.number) for lesson in lessons)
    raise ToolError(
        f"There is no lesson {name}; the lessons are {numbers}.",
        "List them with: compilescope learn --list",
    )


def read_cells(text: str) -> Iterable[LessonCell]:
    """The cells of a file; what stands before the first one belongs to none."""
    lines = text.splitlines()
    heads = [(at, found) for at, line in enumerate(lines) if (found := _HEAD.fullmatch(line))]
    ends = [*(at for at, _ in heads[1:]), len(lines)]
    for (at, head), end in zip(heads, ends, strict=True):
        yield _cell(head, lines[at + 1 : end], at + 2)


def _cell(head: re.Match[str], lines: list[str], first_line: int) -> LessonCell:
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines, first_line = lines[1:], first_line + 1
    if head["kind"]:
        return LessonCell("markdown", "\n".join(_uncommented(line) for line in lines), first_line)
    tags = re.findall(r"\w+", head["tags"] or "")
    return LessonCell("code", "\n".join(lines), first_line, tags[0] if tags else "")


def _uncommented(line: str) -> str:
    return line.removeprefix("#").removeprefix(" ")


_JUDGE = "from compilescope.apps.learn.kit import judge\n\njudge(check, globals())"


def to_notebook(lesson: Lesson) -> str:
    """The lesson, its exercise and the cell that checks it; the solution is not in it."""
    try:
        import nbformat
    except ImportError:
        raise ToolError(
            "Notebooks need the package nbformat, which is not installed.",
            'Install it with: pip install "compilescope[notebook]"',
        ) from None
    cells = [_notebook_cell(cell, number) for number, cell in enumerate(_shown(lesson))]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def _shown(lesson: Lesson) -> list[LessonCell]:
    cells = [cell for cell in lesson.cells if cell.tag != "solution"]
    words = f"A solution: `compilescope learn {lesson.number} --solution`"
    return [*cells, LessonCell("markdown", words, 0)]


def _notebook_cell(cell: LessonCell, number: int) -> Any:
    from nbformat import v4

    # Ids of our own: the same lesson gives the same file.
    name = f"cell-{number}"
    if cell.kind == "markdown":
        return v4.new_markdown_cell(cell.text, id=name)
    source = f"{cell.text}\n\n\n{_JUDGE}" if cell.tag == "check" else cell.text
    tags = {"tags": [cell.tag]} if cell.tag else {}
    return v4.new_code_cell(source, id=name, metadata=tags)


# Runs the code of cells and answers so that tracebacks, and torch, find its lines.


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
