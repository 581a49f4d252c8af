"""Finding the expression at a place, with the whole file and with one line only."""

from __future__ import annotations

import ast

from builders import event, frame, run_of
from compilescope.model.bodies import SourceSeen
from compilescope.model.run import Run
from compilescope.rules.source import Place, Sources

FILE = "/home/ada/project/model.py"
TEXT = """def forward(self, x):
    if (x > 0).all():
        y = x[
            x > 1
        ].sum()
    try:
        pass
    finally:
        größe = x.item()
    return [v.item() for v in x]
"""


def sources(text: str | None = TEXT) -> Sources:
    run = run_of()
    if text is None:
        return Sources(run)
    name = run.artifacts.put(text, "py")
    seen = event(SourceSeen(FILE, name), number=1)
    return Sources(Run(run.header, [*run.events, seen], run.artifacts))


def at(line: int, part: str, text: str | None = TEXT, end: bool = True) -> Place:
    source = TEXT.splitlines()[line - 1]
    column = source.index(part)
    return Place(FILE, line, column, column + len(part) if end else None, source)


def test_the_expression_and_its_statement() -> None:
    spot = sources().spot(at(2, "(x > 0).all()"))
    assert spot.text == "(x > 0).all()"
    assert isinstance(spot.statement, ast.If)
    assert spot.function is not None and spot.function.name == "forward"


def test_columns_are_characters_not_bytes() -> None:
    spot = sources().spot(at(9, "x.item()"))
    assert spot.text == "x.item()" and spot.in_finally and spot.in_try


def test_an_expression_of_several_lines() -> None:
    source = TEXT.splitlines()[2]
    # torch gives the column at which the last line of the expression ends.
    place = Place(FILE, 3, source.index("x["), len("        ].sum()"), source)
    spot = sources().spot(place)
    assert spot.several_lines and spot.text == "x[x > 1].sum()"


def test_comprehensions() -> None:
    assert sources().spot(at(10, "v.item()")).in_comprehension
    assert not sources().spot(at(9, "x.item()")).in_comprehension


def test_without_a_column_the_statement_is_known() -> None:
    spot = sources().spot(Place(FILE, 2, source="    if (x > 0).all():"))
    assert isinstance(spot.statement, ast.If) and spot.text == "(x > 0).all()"


def test_one_line_is_all_there_is() -> None:
    spot = sources(None).spot(at(2, "(x > 0).all()"))
    assert spot.text == "(x > 0).all()" and isinstance(spot.statement, ast.If)


def test_broken_source_does_no_harm() -> None:
    for text in ("def f(:", "\0", ""):
        assert sources(text).spot(at(2, "(x > 0).all()")).text == "(x > 0).all()"
    assert frame().source
