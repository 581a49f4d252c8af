"""The bars that every page clears, in a real browser: silence, keyboard, axe, width.

What falls short is named by a selector and the beginning of its HTML.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import NAMED, focus_walk, looking
from compilescope.record.run import Run, read_run
from compilescope.report.document import report_document
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from samples import RUNS

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parents[1] / "logs" / "golden"
LOGS = {"trace": "torch_trace_inductor.log.xz", "xla": "console/xla_openxla.c02_item.log.xz"}
PAGES = (*RUNS, *LOGS)
SIZES = {1280: 900, 400: 800}
WIDE = ("full", "models", "hostile")
NARROW = ("later", "logged", "swept", "xla")
"""By default each kind of page is looked at once; `slow` tests look at all of them in every way."""
UNFOLD = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"


class Pages:
    """The address of each page, of samples and of what real programs logged, drawn when needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._made:
            run = logged(name, self._folder) if name in LOGS else RUNS[name]
            self._made[name] = written(run, self._folder / f"{name}.html").as_uri()
        return self._made[name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"))


def by_default(*names: str) -> list[Any]:
    return [pytest.param(x, marks=() if x in names else pytest.mark.slow) for x in PAGES]


def logged(name: str, folder: Path) -> Run:
    tool = [sys.executable, "-m", "compilescope", "logs", "--dir", str(folder / "runs")]
    home = folder / "runs" / name
    subprocess.run(
        [*tool, "-o", str(home), str(GOLDEN / LOGS[name])], check=True, capture_output=True
    )
    return read_run(home)


def written(run: Run, path: Path) -> Path:
    text = to_page([report_document(Reading(run, full=True))])
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def opened(
    driver: Any, page: str, width: int = 1280, scheme: str = "light", unfolded: bool = True
) -> Iterator[None]:
    driver.get_log("browser")  # What earlier pages left behind.
    with looking(driver, width, SIZES[width], scheme):
        driver.get(page)
        if unfolded:
            driver.execute_script(UNFOLD)
        yield


PRESS = "document.querySelectorAll('button').forEach((b) => b.checkVisibility() && b.click())"


@pytest.mark.parametrize("name", by_default(*WIDE))
def test_a_wide_light_page(driver: Any, pages: Pages, name: str) -> None:
    with opened(driver, pages[name]):
        assert grave_findings(driver) == []
        check_silence(driver)


@pytest.mark.parametrize("name", by_default(*NARROW))
def test_a_narrow_dark_page(driver: Any, pages: Pages, name: str) -> None:
    """Boxes of code may scroll on their own; the page may not, folded or unfolded."""
    with opened(driver, pages[name], 400, "dark", unfolded=False):
        for fold in ("", UNFOLD):
            driver.execute_script(fold)
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            culprits = driver.execute_script(f"{NAMED} {_TOO_WIDE}")
            assert (wide <= 400, culprits) == (True, []), f"{wide} pixels wide {fold}"
        assert grave_findings(driver) == []


_TOO_WIDE = """
const held = (e) => {
  const up = e.parentElement;
  return up && up !== document.body && (getComputedStyle(up).overflowX !== 'visible' || held(up));
};
const end = (e) => Math.round(e.getBoundingClientRect().right);
return [...document.body.querySelectorAll('*')]
  .filter((e) => e.checkVisibility() && end(e) > innerWidth + 1 && !held(e))
  .slice(0, 10).map((e) => `${named(e)} ends at ${end(e)}`);
"""


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 400), ("dark", 1280)])
@pytest.mark.parametrize("name", PAGES)
def test_the_other_schemes_and_widths(
    driver: Any, pages: Pages, name: str, scheme: str, width: int
) -> None:
    with opened(driver, pages[name], width, scheme):
        assert grave_findings(driver) == []
        check_silence(driver)


def check_silence(driver: Any) -> None:
    """Of the console: since loading, for every button that is clicked, and scrolling to the end."""
    driver.execute_script(f"{PRESS}; scrollTo(0, document.body.scrollHeight)")
    assert [entry["message"] for entry in driver.get_log("browser")] == []


@pytest.mark.parametrize(
    "unfolded",
    # By default a folded page is walked in the narrow window below.
    [pytest.param(False, id="folded", marks=pytest.mark.slow), pytest.param(True, id="unfolded")],
)
@pytest.mark.parametrize(
    "name",
    [
        "full",
        "later",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("logged", "empty", "trace")),
    ],
)
def test_tab_reaches_everything(driver: Any, pages: Pages, name: str, unfolded: bool) -> None:
    with opened(driver, pages[name], unfolded=unfolded):
        walk = focus_walk(driver)
    assert walk["trapped"] == "", "Tab does not get past this"
    assert walk["missed"] == [], "no key reaches these"
    assert walk["unmarked"] == [], "these look the same with and without focus"
    assert walk["out_of_sight"] == [], "focus goes to these, and they are not in sight then"


@pytest.mark.slow
def test_tab_reaches_everything_in_a_narrow_window(driver: Any, pages: Pages) -> None:
    with opened(driver, pages["full"], 400, unfolded=False):
        walk = focus_walk(driver)
    assert walk == {"trapped": "", "missed": [], "unmarked": [], "out_of_sight": []}


def test_the_walk_sees_what_is_wrong(driver: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(_BAD)
    with opened(driver, bad.as_uri()):
        walk = focus_walk(driver)
    found = {kind: [name.split()[0] for name in names] for kind, names in walk.items() if names}
    assert found == {
        "missed": ["button#far"],
        "unmarked": ["a#plain"],
        "out_of_sight": ["button#off", "button#under"],
    }
    bad.write_text(f"{_BAD}<button id=t onkeydown='event.preventDefault()'>x</button>")
    with opened(driver, bad.as_uri()):
        assert focus_walk(driver)["trapped"].startswith("button#t ")


_BAD = """<!doctype html><body style="margin: 0"><a href="#x">good</a>
<button id=far tabindex=-1>x</button><a id=plain href="#y" style="outline: none">x</a>
<button id=off style="position: absolute; left: -999px">x</button>
<p role=tablist><button id=one role=tab>x</button><button id=two role=tab tabindex=-1>x</button></p>
<button id=under style="position: fixed; bottom: 0">x</button>
<p><b style="position: fixed; bottom: 0; width: 100%; height: 80px; background: red"></b></p>
<script>one.onkeydown = (e) => { if (e.key === 'ArrowRight') two.focus() }</script>
"""
