"""The page in a real browser: what a reader clicks works, and nothing that a program wrote does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browsing import CONTRAST, wait_until, without_scripts
from compilescope.report.document import report_document
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from samples import RUNS, big_run
from waiting import until

pytestmark = pytest.mark.browser


def show(driver: Any, folder: Path, *names: str) -> None:
    documents = [report_document(Reading(RUNS[name], full=True, page=True)) for name in names]
    open_page(driver, folder / "page.html", to_page(documents))


def open_page(driver: Any, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    for log in ("browser", "performance"):
        driver.get_log(log)  # What earlier pages left behind.
    driver.get(path.as_uri())


def complaints(driver: Any) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser")]


def requests(driver: Any) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


_SHOWN = """
return [...document.querySelectorAll(arguments[0])]
  .filter((e) => e.checkVisibility({visibilityProperty: true}));
"""


def shown(driver: Any, selector: str) -> list[Any]:
    """In one question: the driver's own takes one for each element."""
    return list(driver.execute_script(_SHOWN, selector))


@pytest.mark.parametrize("name", RUNS)
def test_sections_are_there_and_nothing_complains(driver: Any, tmp_path: Path, name: str) -> None:
    show(driver, tmp_path, name)
    parts = report_document(Reading(RUNS[name], full=True)).parts
    ids = driver.execute_script(_SHOWN.replace(";", ".map((e) => e.id);"), ".part")
    assert ids == [part.id for part in parts]
    assert len(shown(driver, "nav a")) == len(parts)
    assert driver.find_elements("css selector", "html[lang]") and driver.title
    assert complaints(driver) == []
    assert requests(driver) == [(tmp_path / "page.html").as_uri()]


def test_hostile_names_are_inert(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, "hostile")
    assert driver.execute_script("return window.hurt") is None
    assert driver.find_elements("css selector", "img") == []
    assert len(driver.find_elements("css selector", "script")) == 1
    assert "<script>window.hurt=1</script>" in driver.find_element("css selector", "main").text
    # A name of hundreds of letters must not push the page wider than the window.
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert driver.execute_script(wide) == 0


def test_search_filters_and_folding_by_clicking(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, "full", "ranks")
    everything = len(shown(driver, ".item[data-tags]"))
    find = driver.find_element("id", "find")
    find.send_keys("BackendCompilerFailed")
    # Not what the first letters find, where they came slowly.
    wait_until(driver, f"return document.getElementById('found').value === '1 of {everything}'")
    assert len(shown(driver, ".item[data-tags]")) == 1
    find.clear()
    find.send_keys("\ue00c")  # Escape.
    until(lambda: len(shown(driver, ".item[data-tags]")) == everything)
    driver.find_element("css selector", ".filters summary").click()
    chip = driver.find_element("css selector", ".chip[data-tag='kind:recompile']")
    chip.click()
    kinds = {e.get_attribute("data-tags").split()[0] for e in shown(driver, ".item[data-tags]")}
    assert kinds == {"kind:recompile"}
    chip.click()
    stack = driver.find_element("css selector", ".breaks details")
    assert stack.get_attribute("open") is None
    stack.find_element("tag name", "summary").click()
    assert stack.get_attribute("open") is not None
    driver.find_element("id", "close").click()
    assert stack.get_attribute("open") is None
    driver.find_element("id", "open").click()
    assert stack.get_attribute("open") is not None
    assert complaints(driver) == []


def test_a_link_opens_what_it_leads_to(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, "full")
    link = driver.find_element("css selector", ".summary .item header a")
    target = link.get_attribute("href").rpartition("#")[2]
    link.click()
    until(driver.find_element("id", target).is_displayed)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("full", "dark"),
        ("later", "light"),
        # Each scheme and most of what is drawn are seen already.
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("full", "light"),
                ("later", "dark"),
                ("ranks", "light"),
                ("ranks", "dark"),
            )
        ),
    ],
)
def test_contrast_is_aa(driver: Any, tmp_path: Path, name: str, scheme: str) -> None:
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        show(driver, tmp_path, name)
        driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert driver.execute_script(CONTRAST) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_reads_without_javascript(driver: Any, tmp_path: Path) -> None:
    with without_scripts(driver):
        show(driver, tmp_path, "full")
        text = driver.find_element("tag name", "main").text
        assert "GB0170" in text and "expected 2, got 3" in text
        assert shown(driver, ".tools") == []
        driver.find_element("css selector", ".breaks summary").click()
        assert driver.find_element("css selector", ".breaks details p").is_displayed()


def test_it_prints(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, "full")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert shown(driver, "nav") == [] and shown(driver, ".tools") == []
        assert shown(driver, ".item")
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert driver.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi0")


def test_a_narrow_window_needs_no_sideways_scrolling(driver: Any, tmp_path: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(driver, tmp_path, "full")
        wide = "return document.documentElement.scrollWidth"
        assert driver.execute_script(wide) <= 390
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
def test_a_long_job_opens_and_filters(driver: Any, tmp_path: Path) -> None:
    """Ten thousand events and five hundred graphs: under 3 MB, and it still works."""
    text = to_page([report_document(Reading(big_run(), full=True))])
    assert len(text.encode()) < 3_000_000
    open_page(driver, tmp_path / "big.html", text)
    find = driver.find_element("id", "find")
    find.send_keys("f17")
    wait_until(driver, "return document.getElementById('found').value !== ''")
    assert driver.find_element("id", "found").text.split()[0] != "0"
    assert complaints(driver) == []
