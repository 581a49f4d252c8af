"""A lesson as a notebook. It needs the package nbformat."""

from __future__ import annotations

from typing import Any

from compilescope.errors import ToolError
from compilescope.learn.lesson import Lesson, LessonCell

_JUDGE = "from compilescope.learn.kit import judge\n\njudge(check, globals())"


def to_notebook(lesson: Lesson) -> str:
    """The lesson, its exercise and the cell that checks it; the solution is not in it."""
    try:
        import nbformat
    except ImportError:
        raise ToolError(
            "Notebooks need the package nbformat, which is not installed.",
            'Install it with: pip install "compilescope[notebook]"',
        ) from None
    cells = [_cell(cell, number) for number, cell in enumerate(_shown(lesson))]
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


def _cell(cell: LessonCell, number: int) -> Any:
    from nbformat import v4

    # Ids of our own: the same lesson gives the same file.
    name = f"cell-{number}"
    if cell.kind == "markdown":
        return v4.new_markdown_cell(cell.text, id=name)
    source = f"{cell.text}\n\n\n{_JUDGE}" if cell.tag == "check" else cell.text
    tags = {"tags": [cell.tag]} if cell.tag else {}
    return v4.new_code_cell(source, id=name, metadata=tags)
