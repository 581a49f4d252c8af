"""Finding the expression at a place, with the whole file and with one line only."""

from __future__ import annotations

import ast

from builders import event, frame, run_of
from compilescope.knowledge.source.spots import Place, Sources, Stretch
from compilescope.record.bodies import SourceSeen
from compilescope.record.run import Run

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
    assert spot.text == "x.item()" and spot.in_finally


def test_an_expression_of_several_lines() -> None:
    source = TEXT.splitlines()[2]
    # torch gives the column at which the last line of the expression ends.
    place = Place(FILE, 3, source.index("x["), len("        ].sum()"), source)
    found = sources()
    spot = found.spot(place)
    assert spot.text == "x[x > 1].sum()"
    assert found.stretch(spot) == Stretch(source.index("x["), 5, len("        ].sum()"))


def test_the_stretch_of_one_line_is_as_torch_says() -> None:
    found = sources()
    place = at(9, "x.item()")
    assert found.stretch(found.spot(place)) == Stretch(place.column, 9, place.end_column)


def test_the_stretch_of_an_if_is_its_test() -> None:
    # Python jumps for the statement as a whole: its columns end with its body.
    text = "def f(x):\n    if torch.isnan(x):\n        log.warning('x')\n"
    found = sources(text)
    spot = found.spot(Place(FILE, 2, 4, 24, "    if torch.isnan(x):"))
    assert spot.text == "torch.isnan(x)" and isinstance(spot.statement, ast.If)
    assert found.stretch(spot) == Stretch(7, 2, 21)
    alone = sources(None)
    assert alone.stretch(alone.spot(spot.place)) == Stretch(7, 2, 21)


def test_the_stretch_of_a_test_that_begins_on_a_later_line() -> None:
    text = "def f(x):\n    while (\n        x > 0\n    ):\n        x = x - 1\n"
    found = sources(text)
    spot = found.spot(Place(FILE, 2, 4, 17, "    while ("))
    assert spot.text == "x > 0"
    assert found.stretch(spot) == Stretch(4, 3, 13)


def test_a_method_whose_name_stands_on_a_later_line() -> None:
    text = "def f(x):\n    y = torch.sigmoid(\n        x\n    ).sum(\n    ).item()\n"
    found = sources(text)
    spot = found.spot(Place(FILE, 5, 6, 12, "    ).item()"))
    assert spot.text == "torch.sigmoid(x).sum().item()"
    assert found.stretch(spot) == Stretch(6, 5, 12)


def test_columns_of_another_line_are_worth_nothing() -> None:
    # Seen in torch 2.13: after a break in an expression of several lines the lines drift.
    text = "def f(x):\n    print(\n        x\n    )\n"
    found = sources(text)
    assert found.stretch(found.spot(Place(FILE, 2, 6, 12, "    print("))) == Stretch()


def test_a_statement_of_several_lines() -> None:
    text = "def f(x):\n    return (x +\n        größe.item()), 1\n"
    found = sources(text)
    assert found.stretch(found.spot(Place(FILE, 2, 4, 26, "    return (x +"))) == Stretch(4, 3, 24)


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
