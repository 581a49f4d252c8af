"""A line over time, and words that lead to pages of the dashboard, in every format."""

from __future__ import annotations

import re

import pytest

from compilescope.report.blocks import (
    Block,
    Document,
    Paragraph,
    Part,
    Span,
    Trend,
    TrendPoint,
    words,
)
from compilescope.report.render.charts import trend_strokes, trend_values
from compilescope.report.render.html import draw, to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text

HOSTILE = '"><script>alert(1)</script>`|*\x1b[31m'


def document(*blocks: Block) -> Document:
    return Document("a", "", (Part("p", "P", blocks),))


def trend(*values: float, url: str = "") -> Trend:
    return Trend("Time", tuple(TrendPoint(f"day {v}", v, f"{v} ms", url=url) for v in values))


def test_strokes_go_with_the_values() -> None:
    assert trend_strokes(trend(1.0, 8.0, 4.5, 1.0)) == "▁█▅▁"
    assert trend_strokes(trend(3.0, 3.0)) == "▁▁"
    many = trend_strokes(trend(*map(float, range(1000))))
    assert len(many) == 40 and many == "".join(sorted(many))


def test_text_and_markdown_have_the_ends_and_the_extremes() -> None:
    drawn = document(trend(5.0, 9.0, 2.0, 4.0))
    told = "first 5.0 ms, last 4.0 ms, lowest 2.0 ms, highest 9.0 ms"
    assert f"▄█▁▃  {told}" in to_text(drawn)
    assert f"**Time** `▄█▁▃` {told}" in to_markdown(drawn)


def test_a_page_has_a_line_and_a_link_for_each_point() -> None:
    html = str(draw([trend(5.0, 9.0, 2.0, url="/runs/a?x=1&y=2")]))
    label = 'aria-label="Time: first 5.0 ms, last 2.0 ms, lowest 2.0 ms, highest 9.0 ms"'
    assert f'role="img" {label}' in html
    assert html.count('<a href="/runs/a?x=1&amp;y=2"') == 3
    assert 'aria-label="day 9.0: 9.0 ms"' in html
    assert '<polyline points="0,' in html and "<polygon" not in html


def test_intervals_are_a_band_inside_the_drawing() -> None:
    points = (
        TrendPoint("a", 5.0, "5", 4.0, 7.0),
        TrendPoint("b", 6.0, "6"),
        TrendPoint("c", 6.0, "6", 5.5, 6.5),
    )
    values = trend_values(Trend("t", points))
    corners = [tuple(map(float, pair.split(","))) for pair in values["band"].split()]
    assert [x for x, _ in corners] == [0, 1000, 1000, 0]
    assert all(0 <= y <= 100 for _, y in corners)
    assert "<polygon" in str(draw([Trend("t", points)]))


def test_a_compact_line_leads_nowhere() -> None:
    html = str(draw([Trend("", trend(1.0, 2.0, url="/x").points, compact=True)]))
    assert "<a " not in html and html.count("<i ") == 1 and "<figcaption>" not in html
    assert 'aria-label="first 1.0 ms, last 2.0 ms' in html


@pytest.mark.parametrize(
    "values",
    [
        (),
        (0.0,),
        (float("nan"), float("inf")),
        (-1.0, float("nan"), 3.0),
        (-1e308, 1e308),
        (1e308, 1e308),
    ],
)
def test_every_format_draws_odd_values(values: tuple[float, ...]) -> None:
    drawn = document(trend(*values), Trend("How it went", trend(*values).points, compact=True))
    for text in (to_text(drawn), to_markdown(drawn), to_html(drawn), to_page([drawn])):
        assert "Time" in text
    assert "nan" not in re.sub(r'(title|aria-label)="[^"]*"', "", str(draw([trend(*values)])))


def test_hostile_words_stay_words() -> None:
    point = TrendPoint(HOSTILE, 1.0, HOSTILE, url="javascript:alert(1)")
    drawn = document(Trend(HOSTILE, (point, point)))
    for text in (to_text(drawn), to_markdown(drawn), to_html(drawn)):
        assert "\x1b" not in text
    html = str(draw(drawn.parts[0].blocks))
    assert "<script>" not in html and "javascript:" not in html
    assert "<script>" not in to_markdown(drawn)


def test_only_the_last_of_very_many_points_are_drawn() -> None:
    html = str(draw([trend(*map(float, range(1000)), url="/x")]))
    assert html.count("<a ") == 200
    assert "drawn: the last 200 of 1,000" in html


def test_an_address_of_the_dashboard_is_a_link_on_its_pages_alone() -> None:
    drawn = document(Paragraph(words("see ", Span("the run", url="/runs/a?b=<&c"))))
    assert '<a href="/runs/a?b=&lt;&amp;c" rel="noopener">the run</a>' in to_html(drawn)
    assert "see the run" in to_text(drawn, colour=True) and "/runs" not in to_text(drawn)
    assert "\x1b]8" not in to_text(drawn, colour=True)
    assert "](/" not in to_markdown(drawn)
    alone = document(Paragraph(words(Span("the run", url="/runs/a"))))
    assert "the run" in to_text(alone)


@pytest.mark.parametrize(
    "url", ["//evil.example/", "/\\evil.example", "/\t/evil.example", "/ x", "\\/x", "data:,x"]
)
def test_an_address_that_leads_elsewhere_is_none(url: str) -> None:
    drawn = document(Paragraph(words(Span("here", url=url))))
    assert "<a " not in str(draw(drawn.parts[0].blocks))
    assert "](" not in to_markdown(drawn)
