"""The page of a benchmark run in a real browser: bars and whiskers, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmark_runs import benchmark_run
from browsing import CONTRAST, looking
from compilescope.report.document import report_document
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading

pytestmark = pytest.mark.browser

# Each whisker lies within its scale, and its middle is about where its bar ends. What the page
# leaves out until one comes near it has no place yet: everything is shown before it is measured.
_WHISKERS = """
for (const item of document.querySelectorAll('.item')) item.style.contentVisibility = 'visible';
return [...document.querySelectorAll('.measures td.scale div')].filter((d) => d.querySelector('u'))
  .map((d) => {
    const [scale, bar, line] = [d, ...d.children].map((e) => e.getBoundingClientRect());
    return line.left >= scale.left - 1 && line.right <= scale.right + 1
      && line.left <= bar.right + 1 && line.right >= bar.right - 1 && line.height > 4;
  });
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("page") / "bench.html"
    file.write_text(to_page([report_document(Reading(benchmark_run(), full=True, page=True))]))
    return file.as_uri()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1400, "light"),
        (400, "dark"),
        pytest.param(1400, "dark", marks=pytest.mark.slow),
        pytest.param(400, "light", marks=pytest.mark.slow),
    ],
)
def test_bars_and_their_intervals(driver: Any, page: str, width: int, scheme: str) -> None:
    with looking(driver, width, 900, scheme):
        driver.get(page)
        assert driver.execute_script(CONTRAST) == []
        wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        found = driver.execute_script(_WHISKERS)
        assert len(found) == 9 and all(found)
