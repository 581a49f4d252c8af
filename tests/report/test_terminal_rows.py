"""Rows that are laid out without a table look as a table of the same cells does."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from compilescope.report import blocks
from compilescope.report.blocks import words
from compilescope.report.render import terminal_rows
from compilescope.report.render.terminal import blocks_to_text

PARTS = (
    *("a", "torch.compile ", " yy", "é日本語 ", "a_long_name_" * 12, "…", "👍 ", "tab\tbed "),
    *("two\nlines ", "hello there, dear reader " * 4),
)
STYLES = ("", "bold", "dim", "cyan")
CASES = 150


def console(width: int, colour: bool) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
    )


def written(on: Console) -> list[str]:
    assert isinstance(on.file, io.StringIO)
    return [line.rstrip() for line in on.file.getvalue().splitlines()]


def a_text(rng: random.Random) -> Text:
    return Text.assemble(
        *((rng.choice(PARTS), rng.choice(STYLES)) for _ in range(rng.randint(1, 4)))
    )


def with_table(monkeypatch: pytest.MonkeyPatch, draw: Any, on: Console, *cells: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(terminal_rows, "_LEAST_ROOM", 10_000)
        draw(on, *cells)


@pytest.mark.parametrize("colour", [False, True])
def test_rows_are_drawn_as_tables_draw_them(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    for _ in range(CASES):
        width, indent = rng.choice((40, 80, 100)), rng.choice((0, 4))
        text, right = a_text(rng), Text(rng.choice(("", "×3 · 2 graphs", "日本")))
        for draw, cells in (
            (terminal_rows.print_hanging, (rng.choice(("-", "Try:", "日本:")), text, indent)),
            (terminal_rows.print_numbered, (rng.choice(("1", "12 ×3")), text, right, indent)),
        ):
            one, other = console(width, colour), console(width, colour)
            draw(one, *cells)  # type: ignore[operator]
            with_table(monkeypatch, draw, other, *cells)
            assert written(one) == written(other), cells


@pytest.mark.parametrize("colour", [False, True])
def test_indented_lines_are_as_rich_pads_them(colour: bool) -> None:
    rng = random.Random(2)
    for _ in range(CASES):
        width, indent, text = rng.choice((40, 80)), rng.choice((0, 4)), a_text(rng)
        one, other = console(width, colour), console(width, colour)
        terminal_rows.print_indented(one, text, indent)
        other.print(Padding(text, (0, 0, 0, indent)))
        assert written(one) == written(other), text


def test_a_table_that_nobody_reads_to_its_end_is_cut_and_says_so() -> None:
    rows = tuple((words(f"row {number}"),) for number in range(1_003))
    text = blocks_to_text([blocks.Table(("name",), rows)])
    assert "row 999\n" in text
    assert "row 1000" not in text
    assert "and 3 more rows; JSON has them all" in text


def test_most_rows_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a table was drawn")

    monkeypatch.setattr(Table, "grid", refuse)
    on = console(80, False)
    terminal_rows.print_hanging(on, "Try:", Text("some words " * 30), 4)
    terminal_rows.print_numbered(on, "12", Text("model.py:8 forward"), Text("3 graphs"), 0)
    assert written(on)[-1].endswith("3 graphs")
