"""What every lesson promises, read from its file; a new file is looked at by itself."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from compilescope.apps.learn.lesson import Lesson, all_lessons, find_lesson, read_cells
from compilescope.base.errors import ToolError

LESSONS = all_lessons()
FIGURE = re.compile(
    r"\b\d[\d.,]*\s*(?:ms|us|µs|ns|s|seconds?|milliseconds?|minutes?|percent|times|[KMG]i?B)\b"
    r"|\b\d[\d.,]*x\b|\b\d[\d.,]*\s*%"
)
"""A number with a unit: something that is measured."""

lessons = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)


def prose(lesson: Lesson) -> str:
    """What it says, without code and without the beliefs that it quotes."""
    text = "\n\n".join(cell.text for cell in lesson.cells if cell.kind == "markdown")
    return re.sub(r'`[^`]*`|"[^"]*"', "…", text)


def test_numbers_are_unique() -> None:
    numbers = [lesson.number for lesson in LESSONS]
    assert numbers == sorted(set(numbers))
    assert {1, 2, 3} <= set(numbers)


@lessons
def test_it_opens_with_a_title_and_a_question(lesson: Lesson) -> None:
    first = lesson.cells[0]
    assert first.kind == "markdown"
    assert first.text.startswith(f"# {lesson.title}\n")
    assert 5 < len(lesson.title) < 60
    assert 10 < len(lesson.question) < 160
    assert lesson.question.endswith(("?", "."))


@lessons
def test_it_ends_with_an_exercise(lesson: Lesson) -> None:
    assert [cell.tag for cell in lesson.cells[-3:]] == ["exercise", "check", "solution"]
    task, own = lesson.cells[-4], lesson.cells[-5]
    assert task.text.startswith("## Exercise\n")
    assert own.text.startswith("## On your own program\n")
    assert not any(cell.tag for cell in lesson.cells[:-3])


@lessons
def test_prose_states_no_measured_figure(lesson: Lesson) -> None:
    assert FIGURE.findall(prose(lesson)) == []


@lessons
def test_what_a_learner_reads_fits_a_terminal(lesson: Lesson) -> None:
    shown = [cell for cell in lesson.cells if cell.tag != "check"]
    long = [line for cell in shown for line in cell.text.splitlines() if len(line) > 80]
    assert long == []


@lessons
def test_its_code_is_python_and_the_check_a_function(lesson: Lesson) -> None:
    for cell in lesson.cells:
        if cell.kind == "code":
            ast.parse(cell.text)
    functions = [node for node in ast.parse(lesson.tagged("check").text).body]
    assert "check" in [getattr(node, "name", "") for node in functions]


@lessons
def test_starter_and_solution_stand_alone(lesson: Lesson) -> None:
    """They become files of their own."""
    for tag in ("exercise", "solution"):
        text = lesson.tagged(tag).text
        assert "import torch" in text or "torch" not in text


@lessons
def test_the_commands_that_it_names_exist(lesson: Lesson) -> None:
    named = re.findall(r"`compilescope ([a-z]\w*)([^`]*)`", lesson.cells[-5].text)
    assert named or "`compilescope." in lesson.cells[-5].text
    for name, rest in named:
        command = importlib.import_module(f"compilescope.apps.cli.commands.{name}").COMMAND
        known = {option for parameter in command.params for option in parameter.opts}
        for inner in getattr(command, "commands", {}).values():
            known |= {option for parameter in inner.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--[\w-]+", rest)) <= known | {"--help"}, (name, rest)


def test_figures_are_recognized() -> None:
    for text in ("takes 12 ms", "3x faster", "2 to 10 times", "saves 40%", "1.5 GiB"):
        assert FIGURE.search(text), text
    for text in ("1000 x 1000", "two calls", "lesson 4", "float32", "after 3 calls"):
        assert not FIGURE.search(text), text


def test_cells_know_their_lines() -> None:
    text = '# %% [markdown]\n# # T\n#\n# more\n# %%\n\nx = 1\n\n# %% tags=["check"]\ny = 2\n'
    cells = list(read_cells(text))
    assert [(cell.kind, cell.text, cell.first_line, cell.tag) for cell in cells] == [
        ("markdown", "# T\n\nmore", 2, ""),
        ("code", "x = 1", 7, ""),
        ("code", "y = 2", 10, "check"),
    ]


def test_a_lesson_is_found_by_number_and_by_name() -> None:
    second = find_lesson("2")
    assert (
        find_lesson("02") == find_lesson(second.slug) == find_lesson(second.slug.upper()) == second
    )


@pytest.mark.parametrize("name", ["99", "x", "", "-1"])
def test_a_lesson_that_does_not_exist(name: str) -> None:
    with pytest.raises(ToolError, match="There is no lesson"):
        find_lesson(name)


def test_answers_belong_to_lessons() -> None:
    stems = {f"{lesson.number:02}" for lesson in LESSONS}
    for path in (Path(__file__).parent / "answers").glob("*.py"):
        assert re.fullmatch(r"\d\d_(?:right|wrong)_\w+", path.stem), path.name
        # Lessons may come later than their answers.
        assert path.stem[:2] in stems | {f"{number:02}" for number in range(1, 13)}
