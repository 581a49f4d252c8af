"""A sweep's report: the matrix in every format, and what stands around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from browsing import CONTRAST, looking, page_driver
from compilescope.apps.cli.run_json import sweep_value
from compilescope.knowledge.analysis.sweeps import regressions, sweep_of
from compilescope.record.run import Run
from compilescope.report.blocks import Matrix
from compilescope.report.document import report_document
from compilescope.report.render.html import draw, to_fragment
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import blocks_to_text, to_text
from compilescope.report.section import Reading
from compilescope.report.size_limits import fit_lines
from compilescope.report.sweeps import changes_document, sweep_blocks
from sweep_samples import BREAK, job, sweep_run

MATRIX = Matrix(
    "job",
    tuple((f"GB{n:04}", f"break {n}") for n in range(30)),
    tuple((f"SomeModel{n}", tuple((n * k) % 4 for k in range(30))) for n in range(1, 121)),
)


def big_sweep() -> Run:
    """120 models with 30 causes."""
    causes = [
        msgspec.structs.replace(BREAK, rule=f"GB{n:04}", fingerprint=f"{n:016}", title=f"Break {n}")
        for n in range(30)
    ]
    return sweep_run(
        *(job(f"Model{n}", causes=tuple(causes[: n % 31]), breaks=n % 31) for n in range(120))
    )


def test_no_word_of_a_program_that_did_not_run() -> None:
    for full in (False, True):
        text = to_text(report_document(Reading(sweep_run(), full=full)))
        assert "imported torch" not in text and "0 graphs" not in text
        assert "4 of 12 jobs ok (44.4 % of those that ran)" in text


def test_the_matrix_fits_a_terminal_and_says_what_is_left_out() -> None:
    text = blocks_to_text([MATRIX], width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "20 more columns are in the HTML report." in text
    assert len(text.splitlines()) > 120
    assert "SomeModel3" in text


def test_a_small_matrix_is_whole() -> None:
    small = Matrix("job", (("GB0001", "one"),), (("a", (2,)), ("b", (0,))))
    text = blocks_to_text([small], width=80)
    assert "HTML" not in text and "·" in text
    assert to_fragment([small]).count("<td") == 2 * 2 + 2


def test_a_big_sweep_fits_two_screens() -> None:
    document = report_document(Reading(big_sweep()))
    fitted = fit_lines(document, 47, lambda d: to_text(d).count("\n"), "compilescope show --all")
    text = to_text(fitted)
    assert text.count("\n") <= 47
    assert "Jobs by cause" in text and "Causes" in text and "more" in text


def test_markdown_has_the_matrix_as_a_table() -> None:
    text = to_markdown(report_document(Reading(big_sweep(), full=True)))
    assert "| Model30 | 1 | 1 |" in text
    assert len(text.encode()) < 60_000


def test_json_has_every_key() -> None:
    value = json.loads(msgspec.json.encode(sweep_value(sweep_of(sweep_run()))))
    keys = {"run", "jobs", "causes", "states", "pass_rate", "machines", "regressions"}
    assert keys <= set(value) and value["regressions"] is None
    for each in value["jobs"]:
        assert {"name", "state", "reason", "breaks", "recompiles", "seconds"} <= set(each)
    assert value["causes"][0]["models"] == ["branching", "also-branching"]
    assert {"rule", "title", "fix"} <= set(value["causes"][0])


def test_changes_are_drawn_for_people_and_machines() -> None:
    before, after = sweep_of(sweep_run(job("a"))), sweep_of(sweep_run(job("a", causes=(BREAK,))))
    changes = regressions(before, after)
    text = to_text(changes_document(changes, "/home/ada/project"))
    assert "1 new cause, 0 no longer present, 0 unchanged." in text
    assert "branching.py:8" in text
    value = json.loads(msgspec.json.encode(sweep_value(after, changes)))["regressions"]
    assert value["new"][0]["job"] == "a" and value["new"][0]["rule"] == "GB0170"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    yield from page_driver()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "sweep.html"
    path.write_text(to_page([report_document(Reading(big_sweep(), full=True, page=True))]))
    return path


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_at_any_width(driver: Any, page: Path, width: int, scheme: str) -> None:
    with looking(driver, width, 800, scheme):
        driver.get(page.as_uri())
        across = "return [document.documentElement.scrollWidth, innerWidth]"
        wide, room = driver.execute_script(across)
        assert wide <= room
        assert driver.execute_script(CONTRAST) == []
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.browser
@pytest.mark.slow
def test_headers_stay_in_sight_and_columns_sort(driver: Any, page: Path) -> None:
    with looking(driver, 1000, 800, "light"):
        driver.get(page.as_uri())
        driver.execute_script(
            "const m = document.querySelector('.matrix'); m.scrollTop = 900; m.scrollLeft = 300;"
        )
        head, name, box = driver.execute_script(
            "const m = document.querySelector('.matrix'), b = m.getBoundingClientRect();"
            "const h = m.querySelector('thead th:nth-child(12)').getBoundingClientRect();"
            "const n = m.querySelector('tbody th').getBoundingClientRect();"
            "return [h.top, n.left, [b.top, b.left]]"
        )
        assert abs(head - box[0]) < 3 and abs(name - box[1]) < 3
        first = "return document.querySelector('.matrix tbody th').textContent"
        driver.execute_script("document.querySelector('.matrix thead button').click()")
        assert driver.execute_script(first) == "Model1"
        driver.execute_script("document.querySelectorAll('.matrix thead button')[30].click()")
        assert driver.execute_script(first) == "Model30"


def test_a_matrix_leads_to_jobs_only_where_they_have_pages() -> None:
    sweep = sweep_of(sweep_run())
    plain, linked = (
        next(b for b in sweep_blocks(sweep, full=True, jobs_at=at) if isinstance(b, Matrix))
        for at in ("", "/runs/x/jobs")
    )
    assert "<a " not in draw([plain])
    page = draw([linked])
    assert 'href="/runs/x/jobs/branching"' in page
    assert 'href="/runs/x/jobs?cause=recompile%2Fsize-change"' in page
    assert 'href="/runs/x/jobs/branching?cause=GB0170"' in page
    outside = Matrix("job", (("A", ""),), (("x", (1,)),), ("javascript:1",), ("//e",), ("?b",))
    assert "<a " not in draw([outside])
