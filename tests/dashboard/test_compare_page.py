"""Two runs, chosen and compared."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest

import samples
from browsing import wait_until
from dashboard_server import Served, serving


def test_two_runs_can_be_chosen(history: Served) -> None:
    page = history.client.get("/compare").text
    assert '<option value="000012-ranks">' in page
    assert 'value="000010-model"' in page and 'value="000011-model"' in page
    assert 'href="/compare?a=000003-bench&amp;b=00000a-bench"' in page


def test_a_side_is_picked_from_a_list_and_the_other_stays(history: Served) -> None:
    asked = {"a": "000010-model", "b": "000011-model"}
    page = unescape(history.client.get("/compare", params=asked).text)
    assert 'href="/compare?a=000012-ranks&b=000011-model"' in page
    assert 'href="/compare?a=000010-model&b=000012-ranks"' in page


def test_two_runs_are_compared_as_the_command_does(history: Served) -> None:
    page = history.client.get("/compare", params={"a": "000010-model", "b": "000012"}).text
    assert page.count("<h1") == 1
    assert "1 new cause" in page or "no longer present" in page
    assert 'href="/compare?a=000012-ranks&amp;b=000010-model"' in page
    assert 'href="/runs/000010-model"' in page and 'href="/runs/000012-ranks"' in page


def test_a_renamed_folder_is_found_by_the_id_that_is_printed(tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    samples.store(samples.full_run(), home, "4a7b02-model").rename(home / "renamed")
    samples.store(samples.full_run(), home, "5b8c13-model")
    with serving(home) as served:
        for name in ("4a7b02", "4a7b02-model", "renamed"):
            page = served.client.get("/compare", params={"a": name, "b": "5b8c13"})
            assert page.status_code == 200 and 'href="/runs/renamed"' in page.text
        answer = served.client.get("/compare", params={"a": "4a7b03", "b": "5b8c13"})
        assert answer.status_code == 404


def test_ranks_of_a_run_are_compared(history: Served) -> None:
    page = history.client.get("/compare", params={"a": "000012-ranks@0", "b": "000012@1"}).text
    assert "1 new cause" in page and 'value="000012-ranks@1"' in page
    answer = history.client.get("/compare", params={"a": "000012@0", "b": "000012@7"})
    assert answer.status_code == 400
    assert "has no rank 7. Its ranks: 0, 1." in answer.text


def test_benchmarks_and_sweeps_are_compared_with_their_own_kind(history: Served) -> None:
    page = history.client.get("/compare", params={"a": "000002-bench", "b": "000003-bench"}).text
    assert "1 faster" in page
    page = history.client.get("/compare", params={"a": "00000b-sweep", "b": "00000c-sweep"}).text
    assert "Only in 00000c-sweep: new" in page
    for other in ("000003-bench", "000010-model"):
        answer = history.client.get("/compare", params={"a": "00000b-sweep", "b": other})
        assert answer.status_code == 400
        assert f"{other} is not a sweep" in unescape(answer.text)


RUNS = ("000010-model", "000011-model", "000012-ranks")


def test_several_runs_are_laid_over_each_other(history: Served) -> None:
    picked = history.client.get("/", params=[("pick", run) for run in reversed(RUNS)])
    assert picked.status_code == 200  # It leads to the page, the oldest first.
    page = unescape(picked.text)
    assert "/compare/runs?run=000010-model&run=000011-model&run=000012-ranks" in str(picked.url)
    assert "Runs over each other" in page and page.count('class="curves"') >= 1
    assert all(f'href="/runs/{run}"' in page for run in RUNS)
    assert 'href="/compare/runs?run=000010-model&run=000012-ranks"' in page  # Without the middle.
    assert "&run=00000d-diff-mlp" in page  # One more.


def test_two_runs_lead_from_causes_to_lines_and_back(history: Served) -> None:
    page = unescape(history.client.get("/compare", params={"a": RUNS[0], "b": RUNS[1]}).text)
    over_time = "/compare/runs?run=000010-model&run=000011-model"
    assert f'href="{over_time}"' in page
    page = unescape(history.client.get(over_time).text)
    assert 'href="/compare?a=000010-model&b=000011-model"' in page


@pytest.mark.parametrize(
    ("names", "status"),
    [
        ((), 400),
        (RUNS[:1], 400),
        ((RUNS[0], RUNS[0]), 400),
        ((RUNS[0], "nothing"), 404),
        (tuple("abcdefghi"), 400),
    ],
)
def test_what_cannot_be_laid_over_each_other_is_told(
    history: Served, names: tuple[str, ...], status: int
) -> None:
    answer = history.client.get("/compare/runs", params=[("run", name) for name in names])
    assert answer.status_code == status and "<h1" in answer.text


@pytest.mark.parametrize(
    ("name", "status"),
    [("nothing", 404), ("@1", 404), ("0000", 400), ("x" * 400, 400), ("../../etc", 404)],
)
def test_what_is_no_run_is_told(history: Served, name: str, status: int) -> None:
    answer = history.client.get("/compare", params={"a": "000010-model", "b": name})
    assert answer.status_code == status
    assert "<h1" in answer.text


@pytest.mark.browser
def test_runs_are_chosen_and_compared_by_keyboard(driver: Any, history: Served) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    history.sign_in(driver)
    driver.get_log("browser")
    driver.get(f"{history.base}/compare")
    for name, run in (("a", "000012-ranks@0"), ("b", "000012-ranks@1")):
        field = driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(run)
    field.send_keys(Keys.ENTER)
    wait_until(driver, "return document.getElementById('main').innerText.includes('1 new cause')")
    driver.find_element(By.LINK_TEXT, "Swap").click()
    gone = "document.getElementById('main').innerText.includes('1 no longer present')"
    wait_until(driver, f"return {gone}")
    assert driver.get_log("browser") == []
