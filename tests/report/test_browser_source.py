"""The source view and the notebook's fragment in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browsing import CONTRAST, seen
from builders import ROOT
from compilescope.report.render.html import to_html
from compilescope.report.render.page import to_page
from report.test_browser import complaints, open_page, shown
from report.test_source_section import document, with_sources
from samples import SOURCE, full_run
from waiting import until

pytestmark = pytest.mark.browser

MODEL, OTHER = f"{ROOT}/model.py", f"{ROOT}/other.py"
LONG = "\n".join([*(["import torch"] * 300), *SOURCE.splitlines(), *(["x = 1"] * 300)])
FILES = {MODEL: LONG, OTHER: SOURCE, f"{ROOT}/third.py": SOURCE}
LINES = {MODEL: [308, 308, 309], OTHER: [8], f"{ROOT}/third.py": [8]}
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
TOP = "return document.getElementById(arguments[0]).getBoundingClientRect().top"


def show_source(driver: Any, folder: Path) -> None:
    open_page(driver, folder / "page.html", to_page([document(with_sources(FILES, LINES))]))


def test_a_line_leads_to_its_cause_and_back(driver: Any, tmp_path: Path) -> None:
    show_source(driver, tmp_path)
    assert len(driver.find_elements("css selector", ".srcfile")) == 3
    assert len(driver.find_elements("css selector", ".srcfile[open]")) == 2
    cell = driver.find_element("css selector", "#line-1-308 a.cell")
    assert cell.text == "2" and "A break" in cell.get_attribute("aria-label")
    driver.execute_script("arguments[0].click()", cell)
    item = seen(driver, ".item:target")
    link = item.find_element("css selector", ".left a")
    assert link.text == "model.py:308"
    driver.execute_script("arguments[0].click()", link)
    assert seen(driver, ".row:target").get_attribute("id") == "line-1-308"
    until(lambda: 0 <= driver.execute_script(TOP, "line-1-308") < 1000)
    assert complaints(driver) == []


def test_a_file_that_is_folded_opens_for_its_line(driver: Any, tmp_path: Path) -> None:
    show_source(driver, tmp_path)
    driver.execute_script("location.hash = 'line-3-8'")
    until(lambda: len(driver.find_elements("css selector", ".srcfile[open]")) == 3)
    assert driver.find_element("id", "line-3-8").is_displayed()


def test_a_long_file_opens_at_its_first_loss(driver: Any, tmp_path: Path) -> None:
    show_source(driver, tmp_path)
    box = driver.find_element("css selector", ".src")
    until(lambda: driver.execute_script("return arguments[0].scrollTop", box) > 2000)
    assert box.get_attribute("tabindex") == "0"
    assert box.get_attribute("role") == "region"
    assert box.get_attribute("aria-label") == "Source of model.py"
    driver.execute_script("document.querySelectorAll('.ruler i')[1].click()")
    until(lambda: driver.execute_script("return location.hash") == "#line-1-309")


def test_it_can_be_read_on_a_phone_and_in_the_dark(driver: Any, tmp_path: Path) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    feature = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        show_source(driver, tmp_path)
        assert driver.execute_script(WIDER) == 0
        assert driver.execute_script(CONTRAST) == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(
    ("system", "theme"),
    [
        ("light", "dark"),
        ("dark", "light"),
        # Where both say the same, nothing is decided.
        pytest.param("light", "light", marks=pytest.mark.slow),
        pytest.param("dark", "dark", marks=pytest.mark.slow),
    ],
)
def test_a_notebook_decides_between_light_and_dark(
    driver: Any, tmp_path: Path, system: str, theme: str
) -> None:
    feature = [{"name": "prefers-color-scheme", "value": system}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        fragment = to_html(document(full_run()))
        body = f'<body data-jp-theme-light="{str(theme == "light").lower()}">'
        page = (
            f'<!doctype html><meta charset="utf-8">{body}<div style="width:420px">{fragment}</div>'
        )
        open_page(driver, tmp_path / "notebook.html", page)
        (card,) = shown(driver, ".cscope")
        ground = card.value_of_css_property("background-color")
        assert ("255, 255, 255" in ground) == (theme == "light")
        assert driver.execute_script("return arguments[0].scrollWidth", card) <= 420
        driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert driver.execute_script(CONTRAST) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
