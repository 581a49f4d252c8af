"""The page of a run: its report inside the frame, what can be done with it, files to keep."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

import samples
from axe_checks import grave_findings
from browsing import focus_walk, looking, wait_until
from compilescope.apps.dashboard.pages.run import build_of, script_of
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.record.header import FILE_NAME
from compilescope.record.provenance import SEALS
from dashboard_server import Served, serving


def test_the_start_of_an_id_leads_to_its_run(history: Served) -> None:
    answer = history.client.get("/runs/000011", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/runs/000011-model")
    several = history.client.get("/runs/00001")
    assert several.status_code == 404 and "matches" in several.text
    assert history.client.get("/runs/nosuch").status_code == 404


def test_a_run_shows_its_report_and_what_can_be_done(history: Served) -> None:
    page = history.client.get("/runs/000011-model").text
    assert 'id="breaks"' in page and 'aria-label="Sections"' in page
    assert "GB0170 in the registry" in page and 'href="/registry/GB0170"' in page
    assert 'href="/start/run?script=%2Fwork%2Fmodel.py"' in page
    assert 'href="/start/fix?run=000011-model"' in page
    assert 'href="/compare?a=000010-model&amp;b=000011-model"' in page
    stranger = history.stranger().get("/runs/000011-model", headers={"accept": "text/html"}).text
    assert "/start/" not in stranger and "/compare?a=" in stranger


def test_a_run_of_somebody_else_offers_nothing_that_starts_it(history: Served) -> None:
    seals = history.home / "000011-model" / SEALS
    kept = seals.read_bytes()
    seals.unlink()
    try:
        page = history.client.get("/runs/000011-model").text
    finally:
        seals.write_bytes(kept)
    assert "/start/run?" not in page and "/start/fix?" not in page and "/start/minify?" not in page
    assert 'href="/start/preflight?run=000011-model"' in page


def test_a_run_can_be_taken_away(history: Served) -> None:
    html = history.client.get("/runs/000011-model/report.html")
    assert html.headers["content-disposition"].endswith("000011-model.html")
    assert html.text.startswith("<!doctype html>") and "<style>" in html.text
    assert "/registry/GB0170" not in html.text
    data = json.loads(history.client.get("/runs/000011-model/report.json").content)
    assert data["reports"][0]["run"] == "000011-model"
    archive = history.client.get("/runs/000011-model/archive.zip")
    assert archive.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
        assert FILE_NAME in packed.namelist()


def test_no_run_is_a_page_that_says_so(history: Served) -> None:
    for name in ("nothing", "%2e%2e", "a%2fb", "x" * 5000):
        for rest in ("", "/report.html", "/report.json", "/archive.zip"):
            answer = history.client.get(f"/runs/{name}{rest}")
            assert answer.status_code in (400, 404), (name, rest)


def test_a_damaged_run_and_one_that_is_deleted(tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    folder = samples.store(samples.full_run(), home, "abc-full")
    damaged = samples.store(samples.full_run(), home, "def-full")
    (damaged / FILE_NAME).write_text("{")
    with serving(home) as served:
        answer = served.client.get("/runs/def-full")
        assert answer.status_code == 400
        assert "damaged: it is not JSON" in answer.text
        assert served.client.get("/runs/abc-full").status_code == 200
        shutil.rmtree(folder)
        assert served.client.get("/runs/abc-full").status_code == 404


def test_what_was_run_is_found_again() -> None:
    assert script_of(("train.py", "-x"), "/models") == "/models/train.py"
    assert script_of(("../train.py",), "/models/sub") == "/models/train.py"
    assert script_of(("/abs/train.py",), "/models") == "/abs/train.py"
    for command in (("-m", "train"), ("-c", "pass"), ("torchrun", "train.py"), ()):
        assert script_of(command, "/models") == ""
    diff = ("compilescope", "diff", "--atol", "1e-5", "mlp.py:build")
    assert build_of(diff, "/models") == "/models/mlp.py:build"
    assert build_of(diff[:4], "/models") == ""


@pytest.mark.browser
def test_the_report_works_under_the_policy(driver: Any, history: Served) -> None:
    """As it does in its file: charts, panes of graphs, search. The console stays silent."""
    history.sign_in(driver)
    driver.get(f"{history.base}/runs/000014-big")
    driver.execute_script(
        "document.querySelectorAll('details').forEach((e) => { e.open = true });"
        "document.querySelector('.panes').scrollIntoView()"
    )
    wait_until(driver, "return document.querySelectorAll('.pane pre').length >= 2")
    code = "return [...document.querySelectorAll('.pane pre')].map((e) => e.textContent).join()"
    assert "l_x_ * 1" in driver.execute_script(code)
    driver.execute_script(
        "const find = document.querySelector('#find'); find.value = 'layer3';"
        "find.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    wait_until(driver, "return /\\d/.test(document.querySelector('#found').textContent)")
    assert driver.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_tab_reaches_everything_on_them(driver: Any, history: Served, width: int) -> None:
    history.sign_in(driver)
    with looking(driver, width, 1000, "light"):
        for path in PAGES:
            driver.get(history.base + path)
            walk = focus_walk(driver)
            assert walk == {"trapped": "", "missed": [], "unmarked": [], "out_of_sight": []}, path


@pytest.mark.slow
def test_a_large_run_is_drawn_while_readers_wait(tmp_path: Path) -> None:
    """As good as the file that `report` writes: the same sections, and every pane of code."""
    home = tmp_path / ".compilescope"
    samples.store(samples.big_run(), home, "abc-big")
    with serving(home, limits=BrowserLimits(drawing_seconds=0.5)) as served:
        answer = served.client.get("/runs/abc-big")
        assert answer.status_code == 202
        assert answer.headers["refresh"] == "1"
        assert "Preparing this page" in answer.text
        while answer.status_code == 202:
            assert served.client.get("/assets/none").status_code == 404  # Others are answered.
            answer = served.client.get("/runs/abc-big")
        assert answer.status_code == 200
        report = served.client.get("/runs/abc-big/report.html", timeout=300)
    for pattern in (r'<section class="part ([a-z]+)"', r'class="panes"', r'<article class="item"'):
        assert re.findall(pattern, answer.text) == re.findall(pattern, report.text)


@pytest.mark.slow
@pytest.mark.browser
def test_a_page_that_is_being_drawn_appears_by_itself(driver: Any, tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    for name in ("abc-full", "def-full"):
        samples.store(samples.full_run(), home, name)
    with serving(home, limits=BrowserLimits(drawing_seconds=0.01)) as served:
        driver.get(f"{served.base}/runs/abc-full")
        assert "Preparing this page" in driver.page_source
        wait_until(driver, "return Boolean(document.querySelector('#breaks'))")
        driver.get(f"{served.base}/runs/def-full")
        driver.execute_script("window.stop()")  # It would go away while it is looked at.
        assert "Preparing this page" in driver.page_source
        assert grave_findings(driver) == []


PAGES = (
    "/runs/000011-model",
    "/runs/00000b-sweep",
    "/runs/00000b-sweep/jobs",
    "/runs/00000b-sweep/jobs?cause=GB0170",
    "/runs/00000b-sweep/jobs/branching",
    "/runs/000000-bench",
    "/compare",
    "/compare?a=000010-model&b=000012-ranks",
    "/compare?a=000000-bench&b=000003-bench",
    "/benchmarks",
    "/sweeps",
    "/numbers",
    "/devices",
    "/devices/npu-a",
)
