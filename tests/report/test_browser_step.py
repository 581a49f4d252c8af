"""The page of a profiled step in a real browser: its roofline, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, looking
from compilescope.report.document import report_document
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from profiles.traces import profiled_run

pytestmark = pytest.mark.browser

# Every dot and label of the drawing lies within the figure, and dots are round.
_OUTSIDE = """
const figure = document.querySelector('figure.roofline').getBoundingClientRect();
return [...document.querySelectorAll('.roofline .plot > *')].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.left < figure.left - 1 || box.right > figure.right + 1 || box.top < figure.top
    || (e.localName === 'i' && Math.abs(box.width - box.height) > 0.5);
}).map((e) => e.outerHTML);
"""
# The line that the first link of the kernel table leads to.
_LED_TO = """
const link = document.querySelector('section.step table a');
return document.querySelector(link.getAttribute('href')).textContent;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("page") / "step.html"
    file.write_text(to_page([report_document(Reading(profiled_run(), full=True, page=True))]))
    return file.as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_roofline(driver: Any, page: str, width: int, scheme: str) -> None:
    with looking(driver, width, 900, scheme):
        driver.get(page)
        assert driver.execute_script(CONTRAST) == []
        assert driver.execute_script(_OUTSIDE) == []
        wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        assert "return layer(x)" in driver.execute_script(_LED_TO)
        assert grave_findings(driver) == []
