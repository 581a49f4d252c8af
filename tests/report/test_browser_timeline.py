"""Timeline and icicle in a real browser: zoom, pan, keys, and the way to a cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browsing import CONTRAST, wait_until, without_scripts
from compilescope.report.blocks import Bar, Cell, Document, Item, Lane, Part, Timeline, Tree, words
from compilescope.report.document import report_document
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from report.test_browser import complaints, open_page, show, shown
from samples import big_run
from waiting import until

pytestmark = pytest.mark.browser

MS = 1_000_000
CAUSE = Part("breaks", "Graph breaks", (Item("1", words("model.py:8"), anchor="cause"),))


def page_of(*bars: Bar, ms: int = 1000) -> str:
    part = Part("timeline", "Timeline", (Timeline(ms * MS, (Lane("main thread", bars),)),))
    return to_page([Document("timeline", "", (part, CAUSE))])


@pytest.fixture
def timeline(driver: Any, tmp_path: Path) -> Any:
    bars = (
        Bar("0/0 forward", 0, 900 * MS, 0, "frame", target="cause"),
        Bar("tracing", 100 * MS, 300 * MS, 1, "phase", detail="once"),
        Bar("graph break", 500 * MS, 0, 1, "break", target="cause"),
    )
    open_page(driver, tmp_path / "timeline.html", page_of(*bars))
    wait_until(driver, "return document.querySelector('.readout').textContent !== ''")
    yield driver.find_element("css selector", "figure.timeline .wide")
    assert complaints(driver) == []


def ticks(driver: Any) -> list[str]:
    return [e.get_attribute("textContent") for e in shown(driver, ".ticks span")]


def button(driver: Any, text: str) -> Any:
    return next(b for b in shown(driver, "figure button") if b.text == text)


_COUNT_WHEELS = """
window.wheels = 0;
addEventListener('wheel', () => requestAnimationFrame(() => { window.wheels += 1; }));
"""


def wheel(driver: Any, box: Any, delta: int) -> None:
    """Until the page has heard of it and drawn what it makes of it."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    driver.execute_script(_COUNT_WHEELS)
    ActionChains(driver).scroll_from_origin(ScrollOrigin.from_element(box), 0, delta).perform()
    wait_until(driver, "return window.wheels > 0")


def clicked_twice(driver: Any, element: Any) -> None:
    """As a double click, however much time passes between the two."""
    rect = driver.execute_script(
        "const b = arguments[0].getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]",
        element,
    )
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": rect[0], "y": rect[1], "button": "left"}
            driver.execute_cdp_cmd("Input.dispatchMouseEvent", {**event, "clickCount": count})


def place(driver: Any) -> str:
    return str(driver.execute_script("return location.hash"))


def scrolled(driver: Any, box: Any) -> float:
    return float(driver.execute_script("return arguments[0].scrollLeft", box))


def width(driver: Any) -> float:
    return float(driver.execute_script("return document.querySelector('.track').offsetWidth"))


def test_buttons_zoom_and_stand_in_one_row(driver: Any, timeline: Any) -> None:
    assert [b.text for b in shown(driver, ".part button")] == ["Zoom in", "Zoom out", "Reset"]
    assert len({b.rect["y"] for b in shown(driver, "figure button")}) == 1
    outer, inner = driver.find_elements("css selector", ".bar.frame, .bar.phase")
    assert outer.rect["x"] <= inner.rect["x"] < outer.rect["x"] + outer.rect["width"]
    assert inner.rect["y"] > outer.rect["y"]
    before = inner.rect["width"]
    assert ticks(driver)[:3] == ["0", "0.1 s", "0.2 s"] and ticks(driver)[-1] == "1.0 s"
    for _ in range(3):
        button(driver, "Zoom in").click()
    until(lambda: inner.rect["width"] == pytest.approx(8 * before, rel=0.02))
    wait_until(driver, "return document.querySelector('.ticks').textContent.includes('0.52 s')")
    assert {"0.50 s", "0.52 s", "0.54 s"} <= set(ticks(driver))
    button(driver, "Reset").click()
    until(lambda: inner.rect["width"] == pytest.approx(before, rel=0.02))


def test_the_wheel_scrolls_the_page_until_the_chart_is_clicked(driver: Any, timeline: Any) -> None:
    before = width(driver)
    wheel(driver, timeline, -200)
    assert width(driver) == before
    driver.find_element("css selector", ".lane .title").click()
    wheel(driver, timeline, -200)
    until(lambda: width(driver) > 1.5 * before)
    wheel(driver, timeline, 900)
    until(lambda: width(driver) < 1.5 * before)


def test_dragging_pans_and_follows_no_link(driver: Any, timeline: Any) -> None:
    from selenium.webdriver import ActionChains

    button(driver, "Zoom in").click()
    left = scrolled(driver, timeline)
    bar = driver.find_element("css selector", "a.bar.frame")
    title = driver.find_element("css selector", ".lane .title")
    ActionChains(driver).move_to_element_with_offset(bar, 0, 0).click_and_hold().move_by_offset(
        -80, 0
    ).release().perform()
    until(lambda: scrolled(driver, timeline) == left + 80)
    assert place(driver) == ""
    clicked_twice(driver, title)
    until(lambda: scrolled(driver, timeline) == 0)


def test_a_bar_leads_to_its_cause_by_click_and_by_keys(driver: Any, timeline: Any) -> None:
    driver.find_element("css selector", "a.bar.frame").click()
    until(lambda: place(driver) == "#cause")
    driver.execute_script("location.hash = ''; document.querySelector('a.bar').focus()")
    until(lambda: "0/0 forward: 900 ms" in driver.find_element("css selector", ".readout").text)
    driver.switch_to.active_element.send_keys("\ue014")  # Arrow right.
    assert "break" in driver.switch_to.active_element.get_attribute("class")
    until(lambda: driver.find_element("css selector", ".readout").text == "graph break")
    driver.switch_to.active_element.send_keys("\ue007")  # Enter.
    until(lambda: place(driver) == "#cause")
    before = width(driver)
    timeline.send_keys("+")
    until(lambda: width(driver) == pytest.approx(2 * before, rel=0.01))
    timeline.send_keys("\ue014")
    wait_until(driver, "return document.querySelector('.wide').scrollLeft > 0")
    timeline.send_keys("0")
    until(lambda: width(driver) == pytest.approx(before, rel=0.01))


def test_what_is_pointed_at_is_told(driver: Any, timeline: Any) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(driver).move_to_element(driver.find_element("css selector", ".phase")).perform()
    told = "tracing: 300 ms · once"
    until(lambda: driver.find_element("css selector", ".readout").text == told)


def test_short_bars_appear_where_one_zooms_in(driver: Any, tmp_path: Path) -> None:
    short = [Bar(f"p{n}", n * MS // 2, MS // 10, 1, "phase") for n in range(2000)]
    text = page_of(Bar("0/0 forward", 0, 1000 * MS, 0, "frame"), *short, ms=10_000)
    open_page(driver, tmp_path / "many.html", text)
    wait_until(driver, "return document.querySelector('.readout').textContent !== ''")
    assert len(driver.find_elements("css selector", ".bar")) == 300
    for _ in range(6):
        button(driver, "Zoom in").click()
    driver.execute_script("document.querySelector('.wide').scrollLeft = 0")
    wait_until(driver, "return document.querySelectorAll('.bar').length > 400")
    assert len(driver.find_elements("css selector", ".bar")) <= 1100
    assert complaints(driver) == []


def test_without_a_script_the_longest_bars_are_drawn(driver: Any, tmp_path: Path) -> None:
    with without_scripts(driver):
        show(driver, tmp_path, "hostile")
        assert shown(driver, "figure.timeline .bar") and shown(driver, "figure.icicle .cell")
        assert shown(driver, "figure .controls") == []
        cell = driver.find_element("css selector", "figure.icicle a.cell")
        assert driver.find_element("id", cell.get_attribute("href").rpartition("#")[2])


def test_the_icicle_zooms_and_links(driver: Any, tmp_path: Path) -> None:
    leaves = (Cell("1/0", 100, "first"), Cell("1/1", 200, "recompile", "", "cause"))
    rest = Cell("forward (from line 8)", 300, "function", "2 compilations", "cause", leaves)
    tree = Tree((), (Cell("forward (model.py:6)", 900, "break", cells=(rest,)),))
    part = Part("tree", "Compile tree", (tree,))
    text = to_page([Document("tree", "", (part, CAUSE))])
    open_page(driver, tmp_path / "tree.html", text)
    wait_until(driver, "return document.querySelector('.readout').textContent !== ''")
    top, inner, first, again = driver.find_elements("css selector", ".cell")
    assert inner.rect["width"] == pytest.approx(top.rect["width"] / 3, rel=0.02)
    assert again.rect["width"] == pytest.approx(2 * first.rect["width"], rel=0.05)
    inner.click()
    cells = "document.querySelector('.cells').offsetWidth"
    settled = f"return document.querySelectorAll('.cell')[1].offsetWidth > 0.99 * {cells}"
    wait_until(driver, settled)
    assert place(driver) == ""
    assert driver.find_element("css selector", ".readout").text.startswith("forward (from line 8)")
    driver.find_element("css selector", ".readout a").click()
    until(lambda: place(driver) == "#cause")
    driver.execute_script("arguments[0].focus()", inner)
    driver.switch_to.active_element.send_keys("\ue015")  # Arrow down.
    driver.switch_to.active_element.send_keys("\ue014")  # Arrow right.
    assert driver.switch_to.active_element == again
    driver.switch_to.active_element.send_keys("\ue00c")  # Escape.
    wait_until(driver, settled.replace("> 0.99", "< 0.5"))
    driver.execute_script("location.hash = ''")
    again.click()
    until(lambda: place(driver) == "#cause")
    assert complaints(driver) == []


@pytest.mark.slow
def test_a_long_job_lays_out_little(driver: Any, tmp_path: Path) -> None:
    """Five hundred graphs: charts that are not on the screen wait until they are."""
    text = to_page([report_document(Reading(big_run(), full=True))])
    open_page(driver, tmp_path / "big.html", text)
    count = "return document.querySelectorAll(arguments[0]).length"
    assert driver.execute_script(count, ".bar") <= 400
    assert driver.execute_script(count, ".icicle .cell") <= 300
    driver.execute_script("document.querySelector('figure.timeline').scrollIntoView()")
    wait_until(driver, "return document.querySelector('.timeline .readout').textContent !== ''")
    assert complaints(driver) == []


def test_charts_fit_a_narrow_window(driver: Any, tmp_path: Path) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(driver, tmp_path, "hostile")
        driver.execute_script("document.querySelector('figure.icicle').scrollIntoView()")
        wait_until(driver, "return document.querySelector('.icicle .readout').textContent !== ''")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 400
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


KINDS = ("frame", "recompile", "failed", "attempt", "phase", "backend", "break", "cache", "instant")
CELLS = ("function", "first", "break", "recompile", "failed", "eager")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_can_be_read(driver: Any, tmp_path: Path, scheme: str) -> None:
    bars = [Bar(f"0/{n} forward", 100 * n, 90, 0, kind) for n, kind in enumerate(KINDS)]
    cells = tuple(Cell(f"0/{n} forward", 100, kind) for n, kind in enumerate(CELLS))
    timeline = Timeline(1000, (Lane("main thread", tuple(bars)),))
    page = to_page([Document("kinds", "", (Part("a", "A", (timeline, Tree((), cells))),))])
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        open_page(driver, tmp_path / "kinds.html", page)
        wait_until(driver, "return document.querySelector('.icicle .readout').textContent !== ''")
        assert len(shown(driver, ".key")) == len(KINDS) + len(CELLS)
        assert driver.execute_script(CONTRAST) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
