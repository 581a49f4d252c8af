"""Sweeps: a list, a matrix that can be clicked into, the jobs behind it."""

from __future__ import annotations

from html import unescape
from typing import Any
from urllib.parse import quote, urlencode

import pytest

import samples
from browsing import press, seen, wait_until
from dashboard_history import ODD_NAME, settle
from dashboard_server import Served
from waiting import until


def test_sweeps_with_their_pass_rate(history: Served) -> None:
    page = history.client.get("/sweeps").text
    assert page.index("00000c-sweep") < page.index("00000b-sweep")
    assert "44.4 %" in page and "100.0 %" in page
    assert 'href="/runs/00000b-sweep/jobs"' in page


def test_the_matrix_leads_to_jobs_and_causes(history: Served) -> None:
    page = history.client.get("/runs/00000b-sweep").text
    assert 'href="/runs/00000b-sweep/jobs/branching"' in page
    assert 'href="/runs/00000b-sweep/jobs?cause=GB0170"' in page
    assert 'href="/runs/00000b-sweep/jobs/branching?cause=GB0170"' in page
    hit = history.client.get("/runs/00000b-sweep/jobs", params={"cause": "GB0170"}).text
    assert "Jobs with GB0170" in hit and "also-branching" in hit and ">killed<" not in hit
    everything = history.client.get("/runs/00000b-sweep/jobs").text
    assert ">killed<" in everything and ">waiting<" in everything


def test_a_job_without_a_run_of_its_own_is_told_by_the_sweep(history: Served) -> None:
    answer = history.client.get("/runs/00000b-sweep/jobs/branching", params={"cause": "GB0170"})
    assert str(answer.url).endswith(f"/runs/00000b-sweep/jobs/branching#{'a' * 16}")
    assert f'id="{"a" * 16}"' in answer.text
    assert "does not contain the runs of its jobs" in answer.text


def test_what_is_no_job_is_told(history: Served) -> None:
    for path, words in (
        ("/runs/00000b-sweep/jobs/nothing", "has no job nothing"),
        ("/runs/000011-model/jobs", "is not a sweep"),
        ("/runs/000011-model/jobs/x", "is not a sweep"),
        ("/runs/00000b-sweep/jobs?cause=GB9999", "has the cause"),
        ("/runs/nothing/jobs", "There is no run"),
    ):
        answer = history.client.get(path)
        assert answer.status_code == 404, path
        assert words in unescape(answer.text)
    assert history.client.get(f"/runs/00000b-sweep/jobs/{'x' * 3000}").status_code == 400


def test_a_jobs_own_run_is_shown_to_who_has_the_token(history: Served) -> None:
    at = f"/runs/000013-sweep/jobs/{quote(ODD_NAME, safe='')}"
    assert f'href="{at}"' in history.client.get("/runs/000013-sweep").text
    assert history.stranger().get(at).status_code == 401
    page = history.client.get(at).text
    assert 'id="breaks"' in page and 'href="/registry/GB0170"' in page
    moved = history.client.get(at, params={"cause": "GB0170"}, follow_redirects=False)
    anchor = moved.headers["location"].partition("#")[2]
    assert moved.status_code == 303 and f'id="{anchor}"' in page


@pytest.mark.browser
def test_the_matrix_by_mouse_and_keyboard(driver: Any, history: Served) -> None:
    from selenium.webdriver.common.by import By

    history.sign_in(driver)
    driver.get_log("browser")
    driver.get(f"{history.base}/runs/00000b-sweep")
    focus = "return document.activeElement.getAttribute('href')"
    driver.execute_script("document.querySelector('.matrix tbody a').focus()")
    assert driver.execute_script(focus).endswith("/jobs/branching")
    press(driver, "ArrowRight", 39)
    assert driver.execute_script(focus).endswith("/jobs/branching?cause=GB0170")
    press(driver, "ArrowDown", 40)
    assert driver.execute_script(focus).endswith("/jobs/also-branching?cause=GB0170")
    press(driver, "ArrowUp", 38)
    press(driver, "ArrowUp", 38)
    assert driver.execute_script(focus).endswith("/jobs?cause=GB0170")
    driver.find_element(By.CSS_SELECTOR, ".matrix thead th:nth-child(3) button").click()
    first = driver.find_element(By.CSS_SELECTOR, ".matrix tbody th").text
    assert first == "also-branching"
    driver.find_element(By.CSS_SELECTOR, ".matrix tbody td a").click()
    until(lambda: driver.current_url.endswith(f"/jobs/also-branching#{'a' * 16}"))
    driver.back()
    seen(driver, ".matrix thead a").click()
    wait_until(driver, "return document.querySelector('h1').innerText === 'Jobs with GB0170'")
    assert driver.get_log("browser") == []


def test_names_of_others_stay_inert_on_every_page(served: Served) -> None:
    settle(served)
    (sweep,) = (path.name for path in served.home.glob("*-badswept"))
    for path in (
        "/sweeps",
        f"/runs/{sweep}/jobs",
        f"/runs/{sweep}/jobs?{urlencode({'cause': samples.HOSTILE})}",
        f"/runs/{sweep}/jobs/{quote(samples.HOSTILE, safe='')}",
        "/benchmarks",
        "/numbers",
        "/devices",
        "/devices/npu-a",
        "/compare",
    ):
        answer = served.client.get(path)
        assert answer.status_code in (200, 400), path
        assert "<script>window" not in answer.text and "<img src=x" not in answer.text, path
