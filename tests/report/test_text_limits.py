"""Documents whose texts are longer than anybody reads."""

from __future__ import annotations

import pytest

from compilescope.report.blocks import (
    Diff,
    Document,
    Facts,
    Item,
    Paragraph,
    Part,
    SourceFile,
    Span,
    note,
    words,
)
from compilescope.report.render import terminal
from compilescope.report.render.terminal import blocks_to_text, to_text
from compilescope.report.size_limits import SHORT_TEXT, fit_letters, fit_lines, fit_texts


def document(*blocks) -> Document:
    return Document("title", "", (Part("part", "Part", blocks),))


def test_what_has_room_is_the_same_object():
    short = document(Paragraph(words("a" * SHORT_TEXT)), note("b"))
    assert fit_letters(short, SHORT_TEXT) is short


def test_the_longest_lose_their_end_and_say_how_much():
    one, two = "a" * 10_000, "b" * 3_000
    kept = fit_texts((one, two, "c" * SHORT_TEXT), 8_000)
    assert kept[0] == "a" * 5_000 + "… (5,000 more letters; JSON has them all)"
    assert kept[1:] == (two, "c" * SHORT_TEXT)


def test_lines_count_as_what_they_take_on_a_screen():
    (kept,) = fit_texts(("\n" * 100_000,), 8_000)
    assert kept.count("\n") < 100
    assert f"({100_000 - kept.count(chr(10)):,} more letters" in kept


def test_half_an_address_is_none():
    (kept,) = fit_texts((Span("here", url="https://a/" + "b" * 10_000),), 3_000)
    assert kept == Span("here")


def test_a_diff_stays_whole():
    diff = Diff("+" + "a" * 100_000)
    assert fit_texts((diff,), 3_000) == (diff,)


@pytest.mark.parametrize(
    "text", ["a" * 3_000_000, "a b " * 700_000, "\n" * 3_000_000, "\t" * 10**6]
)
@pytest.mark.parametrize(
    "block",
    [
        lambda text: Paragraph(words(text)),
        lambda text: Paragraph(words(text), "Label:"),
        lambda text: Item("1", words(text), words(text), (Paragraph(words(text)),)),
        lambda text: Facts((("label", words(text)),)),
        lambda text: SourceFile(text, 1, text, (), (), ()),
    ],
)
def test_a_terminal_gets_what_somebody_may_read(monkeypatch, text, block):
    monkeypatch.setattr(terminal, "_MOST_LETTERS", 20_000)
    drawn = blocks_to_text([block(text)])
    assert len(drawn) < 80_000
    assert "more letters; JSON has them all" in " ".join(drawn.split())


def test_long_lists_are_counted():
    drawn = to_text(document(*[note(f"line {number}") for number in range(5_000)]))
    assert "line 998\n" in drawn
    assert "line 999\n" not in drawn
    assert "and 4,001 more; JSON has them all" in drawn


def test_two_screens_draw_no_more_blocks_than_lines():
    """Each takes a line at the least, so the rest need not be drawn to be counted."""
    seen = []

    def measure(drawn: Document) -> int:
        seen.append(sum(len(part.blocks) for part in drawn.parts))
        return to_text(drawn).count("\n")

    whole = document(*[note(f"line {number}") for number in range(5_000)])
    fitted = fit_lines(whole, 40, measure, "compilescope show --all")
    assert max(seen) < 50
    assert "and 4960 more" in to_text(fitted)
