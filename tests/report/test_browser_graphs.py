"""The graphs of a page in a real browser: code is unpacked, picked, folded, lit and found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from browsing import wait_until, without_scripts
from compilescope.knowledge.analysis.stages.staged_graphs import staged_graphs
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import GraphCaptured, KernelEmitted
from compilescope.record.run import Run
from compilescope.report.blocks import CodeLine, Document, Fold, Item, Pane, Panes, Part, words
from compilescope.report.document import report_document
from compilescope.report.render.code_colors import code_tokens
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from report.test_browser import complaints, open_page, shown
from report.test_graph_sections import CODE, graph_text, made
from waiting import until

pytestmark = pytest.mark.browser

ARROW_DOWN = "\ue015"
INPUTS = tuple(CodeLine(f'arg{n}_1: "f32[4]"', (n + 10,), fold="inputs") for n in range(5))
PANES = Panes(
    (
        Pane("Your source", (CodeLine("y = x * 2", (1,), 7), CodeLine("z = y + 1", (2,), 8))),
        Pane("Dynamo graph", (*INPUTS, CodeLine("mul", (1,)), CodeLine("add", (2,)))),
        Pane("Kernels", (CodeLine("fused", (1, 2)),), "Lines omitted: 3 imports and helpers"),
    )
)
FILLED = "return document.querySelectorAll('.pane pre').length > 0"


def show(driver: Any, folder: Path, *blocks: Any) -> None:
    part = Part("graphs", "Graphs", blocks)
    open_page(driver, folder / "graphs.html", to_page([Document("graphs", "", (part,))]))


def codes(driver: Any) -> list[str]:
    return [e.text for e in shown(driver, ".pane pre")]


def lit(driver: Any) -> list[str]:
    return [e.text for e in shown(driver, ".lit")]


def pick(driver: Any, side: int, title: str) -> None:
    pane = driver.find_elements("css selector", ".pane")[side]
    next(b for b in pane.find_elements("css selector", ".stages button") if b.text == title).click()


def test_a_line_lights_up_with_what_it_became(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains

    show(driver, tmp_path, PANES)
    wait_until(driver, FILLED)
    assert codes(driver) == ["7y = x * 2\n8z = y + 1", "fused"]
    first, second = driver.find_elements("css selector", ".pane pre span")[:2]
    ActionChains(driver).move_to_element(first).perform()
    until(lambda: lit(driver) == ["7y = x * 2", "fused"])
    # What is lit stays lit in whatever stage is picked next.
    pick(driver, 1, "Dynamo")
    ActionChains(driver).move_to_element(second).perform()
    until(lambda: lit(driver) == ["8z = y + 1", "add"])
    driver.execute_script("document.querySelector('.pane pre').focus()")
    driver.switch_to.active_element.send_keys(ARROW_DOWN)
    until(lambda: lit(driver) == ["7y = x * 2", "mul"])
    driver.switch_to.active_element.send_keys(ARROW_DOWN)
    until(lambda: lit(driver) == ["8z = y + 1", "add"])
    assert complaints(driver) == []


def test_inputs_fold_into_a_line_that_opens(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, PANES)
    wait_until(driver, FILLED)
    pick(driver, 0, "Dynamo")
    assert codes(driver)[0].startswith("5 inputs") and "arg0_1" not in codes(driver)[0]
    (button,) = shown(driver, "button.folded")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert 'arg4_1: "f32[4]"' in codes(driver)[0]
    assert button.get_attribute("aria-expanded") == "true"
    pick(driver, 0, "Kernels")
    assert driver.find_element("css selector", ".pane .note").text.startswith("Lines omitted")


def test_code_is_unpacked_only_when_it_is_opened(driver: Any, tmp_path: Path) -> None:
    fold = Fold(words("Code at each stage"), (PANES,))
    show(driver, tmp_path, Item("1", words("model.py:6"), (), (fold,), "graph-1"))
    assert "fused" not in (tmp_path / "graphs.html").read_text("utf-8")
    assert driver.find_elements("css selector", ".pane") == []
    driver.find_element("tag name", "summary").click()
    wait_until(driver, FILLED)
    assert codes(driver)[1] == "fused"


def test_a_narrow_window_has_one_pane_and_a_list(driver: Any, tmp_path: Path) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(driver, tmp_path, PANES)
        wait_until(driver, FILLED)
        (select,) = shown(driver, ".pane select")
        assert len(codes(driver)) == 1
        select.send_keys("Kernels")
        wait_until(driver, "return document.querySelector('.pane pre').textContent === 'fused'")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 400
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_colours_are_those_of_code_and_names_are_inert(driver: Any, tmp_path: Path) -> None:
    hostile = "x = '</template><img src=x onerror=window.hurt=1><script>window.hurt=1</script>'"
    lines = (CodeLine("def forward(self): return 12  # now"), CodeLine(hostile))
    show(driver, tmp_path, Panes((Pane("Your source", lines), Pane("Dynamo graph", lines))))
    wait_until(driver, FILLED)
    pieces = {e.text: e.get_attribute("class") for e in shown(driver, ".pane:first-child pre b")}
    assert pieces["def"] == "k" and pieces["forward"] == "f" and pieces["12"] == "n"
    assert pieces["# now"] == "c"
    assert hostile in codes(driver)[0]
    assert driver.execute_script("return window.hurt") is None
    assert driver.find_elements("css selector", "img") == []
    assert complaints(driver) == []


def equal_run() -> Run:
    """Three equal graphs, and one more whose kernel alone has a word to search for."""
    artifacts = MemoryArtifacts()
    text = artifacts.put(graph_text(5), "py")
    other = artifacts.put(graph_text(9), "py")
    kernel = artifacts.put("def call(args):\n    extern_kernels.zebra(buf0)", "py")
    captured = GraphCaptured(stage="dynamo", text=text, ops=5, frame=CODE)
    return made(
        *((captured, f"{number}/0") for number in range(3)),
        (GraphCaptured(stage="dynamo", text=other, ops=9, frame=CODE), "3/0"),
        (KernelEmitted(kernel), "3/0"),
        artifacts=artifacts,
    )


def test_equal_graphs_are_one_entry_that_every_link_leads_to(driver: Any, tmp_path: Path) -> None:
    run = equal_run()
    page = tmp_path / "equal.html"
    open_page(driver, page, to_page([report_document(Reading(run, full=True))]))
    assert len(shown(driver, ".graphs .item")) == 2
    assert shown(driver, ".graphs .item .number")[0].text == "1 ×3"
    for graph in staged_graphs(run)[:3]:
        driver.get(f"{page.as_uri()}#graph-{graph.event.id}")
        target = driver.find_element("id", f"graph-{graph.event.id}")
        item = target.find_element("xpath", "ancestor-or-self::article")
        assert item.find_element("css selector", ".number").text == "1 ×3"


def test_search_finds_packed_code(driver: Any, tmp_path: Path) -> None:
    text = to_page([report_document(Reading(equal_run(), full=True))])
    open_page(driver, tmp_path / "equal.html", text)
    find = driver.find_element("id", "find")
    find.send_keys("zebra")
    wait_until(driver, "return document.getElementById('found').value.startsWith('1 of')")
    assert [e.text for e in shown(driver, ".graphs .item .number")] == ["2"]
    assert complaints(driver) == []


def test_without_javascript_a_command_is_named(driver: Any, tmp_path: Path) -> None:
    with without_scripts(driver):
        show(driver, tmp_path, PANES)
        assert "compilescope report --format md" in driver.find_element("tag name", "main").text


GRAPH_LINES = (
    'add: "f32[8, 64]" = torch.ops.aten.add.Tensor(x, 1.5);  x = None  # sum of {two}',
    "    return (view_3, max(1e-05, -2), None, self.abs, 0x1f)",
    "triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''",
    "''', device_str='cuda')",
    "@triton.jit",
    'def call(args):  # it\'s "it"',
    "from torch import device, empty_strided",
    "tmp4 = static_cast<float>(0.5) * r'a\\b';",
    "",
    "# ⋯ 3 more lines",
    r"x = 'it\'s' + \"a\\\\\" + b''",
)
SOURCE_LINES = ('"""Two', "  lines if any.", 'and the end.""" if x else 1', "return len(x)")


def colours(driver: Any, side: int) -> list[list[list[str]]]:
    """Each line's pieces with their classes."""
    return driver.execute_script(
        "return [...document.querySelectorAll('.pane')[arguments[0]].querySelectorAll('pre span')]"
        ".map((line) => [...line.childNodes].filter((node) => node.nodeName !== 'I')"
        ".map((node) => [node.className || '', node.textContent]))",
        side,
    )


def tokens(text: str) -> list[list[list[str]]]:
    """As the page's other code is coloured, neighbours of one class together."""
    return [joined(line) for line in code_tokens(text)]


def joined(pieces: Iterable[Sequence[str]]) -> list[list[str]]:
    groups = groupby(pieces, key=lambda piece: piece[0])
    found = [[style, "".join(piece[1] for piece in group)] for style, group in groups]
    return [piece for piece in found if piece[1]]


def test_code_has_the_colours_of_the_rest_of_the_page(driver: Any, tmp_path: Path) -> None:
    source = tuple(CodeLine(text, (), 7 + at) for at, text in enumerate(SOURCE_LINES))
    graph = tuple(CodeLine(text) for text in GRAPH_LINES)
    show(driver, tmp_path, Panes((Pane("Your source", source), Pane("Kernels", graph))))
    wait_until(driver, FILLED)
    assert [joined(line) for line in colours(driver, 0)] == tokens("\n".join(SOURCE_LINES))
    for line, text in zip(colours(driver, 1), GRAPH_LINES, strict=True):
        assert joined(line) == (tokens(text)[0] or [["", " "]]), text


def test_what_a_formatted_string_puts_in_is_coloured_as_code(driver: Any, tmp_path: Path) -> None:
    line = CodeLine("print(f'{len(x)} of {{2}}', f'{")
    show(driver, tmp_path, Panes((Pane("Your source", (line,)), Pane("Kernels", (line,)))))
    wait_until(driver, FILLED)
    found = joined(colours(driver, 1)[0])
    assert [style for style, text in found if text == "len"] == ["b"]
    assert "".join(text for _, text in found) == line.text
    assert complaints(driver) == []
