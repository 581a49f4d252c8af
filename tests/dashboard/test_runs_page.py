"""The page of runs: search, sort, filter, pages of rows, tags and notes, the same as data."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest

import samples
from browsing import CONTRAST, focus_walk, looking, wait_until
from compilescope.apps.dashboard.runs import run_list
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.base.errors import ToolError
from compilescope.record.header import RunHeader, write_header
from compilescope.record.labels import Labels, read_labels, write_labels
from dashboard_server import Served, serving
from waiting import until

MANY = 230


def shown(answer: httpx.Response) -> list[str]:
    """Ids of the rows, from above."""
    assert answer.status_code == 200, answer.text
    return [unescape(run) for run in re.findall(r'<tr id="run-([^"]+)"', answer.text)]


def data(served: Served, **asked: str) -> dict[str, Any]:
    answer = served.client.get("/runs.json", params=asked, headers={"accept": "*/*"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def make_home(home: Path) -> Path:
    """Many small runs of three programs, the newest first by name, and some that say something."""
    now = time.time_ns()
    for number in range(MANY):
        folder = home / f"r{number:03}"
        folder.mkdir(parents=True)
        header = RunHeader(
            run=folder.name,
            tool="0",
            command=(f"train{number % 3}.py", "--seed", str(number)),
            cwd="/home/ada/gpt",
            started_ns=now - (number + 20) * 60 * 10**9,
            ended_ns=now - (number + 20) * 60 * 10**9 + 10**9,
            exit_status=0 if number % 10 else 1,
        )
        write_header(folder, header)
    write_labels(home / "r007", Labels(("base", "a100"), "The best one."))
    write_labels(home / "r150", Labels(("base",)))
    samples.store(samples.RUNS["full"], home, "zz-full")
    samples.store(samples.RUNS["hostile"], home, "zz-hostile")
    samples.store(samples.RUNS["models"], home, "zz-models")
    return home


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = make_home(tmp_path_factory.mktemp("many") / ".compilescope")
    with serving(home) as made:
        until(lambda: (seen := data(made))["read"] == seen["total"])
        yield made


def test_a_page_has_a_hundred_rows_and_the_rest_follow(many: Served) -> None:
    first = many.client.get("/")
    runs = shown(first)
    assert runs == [f"r{number:03}" for number in range(100)]
    assert f"1–100 of {MANY + 3} runs" in first.text
    assert 'rel="next" href="/?page=2"' in first.text and 'rel="prev"' not in first.text
    last = many.client.get("/?page=3")
    assert len(shown(last)) == 33 and 'rel="next"' not in last.text
    assert shown(many.client.get("/?page=99")) == shown(last)


def test_a_search_needs_all_its_words(many: Served) -> None:
    some = shown(many.client.get("/", params={"q": "TRAIN1 seed 7"}))
    assert some == shown(many.client.get("/?q=7+seed+train1")) and "r007" in some
    assert shown(many.client.get("/?q=best")) == ["r007"]
    assert shown(many.client.get("/?q=a100 exit")) == []
    assert "No run matches" in many.client.get("/?q=zebra").text
    assert len(shown(many.client.get("/", params={"q": "exit 1 train0.py"}))) == 8


def test_filters(many: Served) -> None:
    assert shown(many.client.get("/?tag=base")) == ["r007", "r150"]
    assert shown(many.client.get("/?kind=benchmark")) == ["zz-models"]
    failed = shown(many.client.get("/?status=exit 1"))
    assert failed == [f"r{number:03}" for number in range(0, MANY, 10)]
    of_one = many.client.get("/", params={"program": "gpt/train2.py"})
    assert f"1–{MANY // 3} of" not in of_one.text and f"{MANY // 3} runs (of" in of_one.text
    assert '<option value="gpt/train2.py" selected>gpt/train2.py (76)</option>' in of_one.text
    assert of_one.text.count('<figure class="trend">') == 1
    both = shown(many.client.get("/?tag=base&program=gpt/train1.py"))
    assert both == ["r007"]
    assert "No run matches" in many.client.get("/?tag=nothing").text


@pytest.mark.parametrize("column", [name for name, _ in run_list.COLUMNS])
def test_every_column_sorts_both_ways(column: str, many: Served) -> None:
    up, down = (many.client.get("/", params={"sort": sort}) for sort in (column, f"-{column}"))
    assert 'aria-sort="ascending"' in up.text and 'aria-sort="descending"' in down.text
    assert len(shown(up)) == len(shown(down)) == 100
    for answer in (up, down):
        assert answer.text.count("aria-sort") == 1


def test_sorting_by_figures(many: Served) -> None:
    assert shown(many.client.get("/?sort=-breaks"))[0] in ("zz-models", "zz-full", "zz-hostile")
    rows = data(many, sort="-compile")["runs"]
    seconds = [row["compile_seconds"] for row in rows]
    assert seconds == sorted(seconds, reverse=True) and seconds[0] > 0
    assert data(many, sort="-tags")["runs"][0]["run"] == "r007"
    assert data(many, sort="tags")["runs"][0]["run"] == "r150"
    links = re.findall(r'<th[^>]*><a href="([^"]+)">([^<]+)</a>', many.client.get("/").text)
    assert dict((title, link) for link, title in links)["When"] == "/?sort=started"
    assert dict((title, link) for link, title in links)["Breaks"] == "/?sort=-breaks"
    assert dict((title, link) for link, title in links)["Run"] == "/?sort=run"


def test_links_keep_what_was_asked(many: Served) -> None:
    text = many.client.get("/?q=train&status=ok&sort=run").text
    following = re.search(r'rel="next" href="([^"]+)"', text)
    assert following is not None
    asked = parse_qs(urlsplit(unescape(following[1])).query)
    assert asked == {"q": ["train"], "status": ["ok"], "sort": ["run"], "page": ["2"]}


def test_rows_agree_with_the_runs_own_pages(many: Served) -> None:
    row = next(row for row in data(many, q="zz-full")["runs"])
    page = many.client.get("/runs/zz-full").text
    figure = re.search(r"<dt>Graph breaks</dt>\s*<dd>(.*?)</dd>", page, re.S)
    assert figure is not None
    told = re.sub(r"<[^>]+>", "", figure[1])
    assert told == ("at least " if row["breaks_hidden"] else "") + str(row["breaks"])


def test_the_same_as_data(many: Served) -> None:
    seen = data(many, q="best", since="0")
    (row,) = seen.pop("runs")
    assert seen == {
        "total": MANY + 3,
        "matching": 1,
        "page": 1,
        "pages": 1,
        "read": MANY + 3,
        "new": MANY,
        "unreadable": [],
    }
    assert row["tags"] == ["base", "a100"] and row["note"] == "The best one."
    assert row["program"] == "gpt/train1.py" and row["command"][1:] == ["--seed", "7"]
    assert (row["breaks"], row["status"], row["live"], row["seconds"]) == (0, "ok", False, 1.0)
    assert "home" not in row and "folder" not in row
    assert data(many)["new"] is None


@pytest.mark.parametrize(
    "query",
    ["sort=size", "page=0", "page=x", "page=-1", "who=me", f"q={'x' * 201}", "measure=all"],
)
def test_what_makes_no_sense_is_said(query: str, many: Served) -> None:
    for path in ("/", "/runs.json"):
        answer = many.client.get(f"{path}?{query}")
        assert answer.status_code == 400 and "<h1>" in answer.text
    assert many.client.get("/runs.json?since=x").status_code == 400


def test_nothing_hostile_gets_into_the_page(many: Served) -> None:
    text = many.client.get("/?q=zz-hostile").text
    assert shown(many.client.get("/?q=zz-hostile")) == ["zz-hostile"]
    assert "<script>window" not in text and "<img" not in text and "\x1b" not in text
    for query in ('/?q="><script>alert(1)</script>', "/?tag=<script>", "/?program=<b>"):
        assert "<script>alert" not in many.client.get(query).text
        assert "<b>" not in many.client.get(query).text


def test_two_runs_are_compared(many: Served) -> None:
    answer = many.client.get("/?pick=r003&pick=r010", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/compare?a=r010&b=r003"
    several = many.client.get("/?pick=r003&pick=r010&pick=r001", follow_redirects=False)
    assert several.headers["location"] == "/compare/runs?run=r010&run=r003&run=r001"
    nine = "&".join(f"pick=r00{n}" for n in range(1, 10))
    for query in ("pick=r003", "pick=r003&pick=r003", nine):
        assert many.client.get(f"/?{query}").status_code == 400
    assert many.client.get("/?pick=r003&pick=../etc").status_code == 404


def test_who_has_no_token_sees_rows_and_no_form(many: Served) -> None:
    with many.stranger(headers={"accept": "text/html"}) as stranger:
        text = stranger.get("/?edit=r000").text
        assert 'id="run-r000"' in text and "/labels" not in text
        headers = {"origin": many.base, "sec-fetch-site": "same-origin"}
        answer = stranger.post("/runs/r000/labels", data={"tags": "x"}, headers=headers)
        assert answer.status_code == 401
    assert 'action="/runs/r000/labels"' in many.client.get("/?edit=r000").text


def test_tags_and_a_note_are_saved(tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    folder = samples.store(samples.RUNS["full"], home, "abc-full")
    with serving(home) as served:
        form = {"tags": "base, a100 base", "note": "Why\r\nnot.", "back": "/?q=full#run-abc-full"}
        answer = served.client.post("/runs/abc-full/labels", data=form, follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/?q=full#run-abc-full"
        assert read_labels(folder) == Labels(("base", "a100"), "Why\nnot.")
        assert shown(served.client.get("/?tag=a100")) == ["abc-full"]
        for back in ("//evil.example/", "/\\evil.example", "https://evil.example", ""):
            answer = served.client.post(
                "/runs/abc-full/labels", data={"tags": "x", "back": back}, follow_redirects=False
            )
            assert answer.headers["location"] == "/runs/abc-full"
        bad = [{"tags": "x" * 50}, {"note": "x" * 3000}, {"note": "\x00"}, {"other": "1"}]
        for form in bad:
            answer = served.client.post("/runs/abc-full/labels", data=form)
            assert answer.status_code == 400, form
        assert read_labels(folder).tags == ("x",)
        assert served.client.post("/runs/absent/labels", data={}).status_code == 404
        served.client.post("/runs/abc-full/labels", data={})
        assert not (folder / "labels.json").exists()


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / "none") as served:
        text = served.client.get("/").text
        assert "No runs yet" in text and "compilescope run train.py" in text
        assert data(served)["runs"] == []
        (tmp_path / "none" / "odd").mkdir(parents=True)
        assert "1 folder can't be read" in served.client.get("/").text


def made_row(name: str) -> RunRow:
    known = {"run": name, "home": Path(), "kind": "run", "program": "train.py", "command": ()}
    none = dict.fromkeys(("torch", "seconds", "step_seconds", "peak_bytes", "devices"))
    counts = (
        "breaks",
        "recompiles",
        "graphs",
        "eager",
        "failures",
        "compile_seconds",
        "violations",
    )
    flags = dict.fromkeys(("live", "breaks_hidden", "on_device"), False)
    words = dict.fromkeys(("models", "gb_ids", "tags"), ())
    more = {"status": "ok", "started": 0.0, "note": ""}
    row: RunRow = msgspec.convert(
        {**known, **none, **dict.fromkeys(counts, 0), **flags, **words, **more},
        RunRow,
        dec_hook=lambda kind, value: value,
    )
    return row


def test_a_program_without_a_figure_is_not_said_to_be_read_still() -> None:
    rows = [made_row(name) for name in ("a", "b")]
    found = run_list.programs(rows, run_list.parse_query([("measure", "step")]), 0.0)
    assert {each.last for each in found if not each.trend.points} == {"–"}
    later = [msgspec.structs.replace(row, pending=True) for row in rows]
    found = run_list.programs(later, run_list.parse_query([("measure", "step")]), 0.0)
    assert {each.last for each in found if not each.trend.points} == {"…"}


def test_words_of_a_list() -> None:
    assert run_list.ago(5) == "just now" and run_list.ago(7300) == "2 h ago"
    assert run_list.shown_seconds(None) == "…" and run_list.shown_seconds(0) == "0 s"
    assert run_list.shown_seconds(75) == "1 min 15 s"
    assert run_list.exact(1e300) == ""
    with pytest.raises(ToolError):
        run_list.parse_query([("sort", "--run")])
    query = run_list.parse_query([("q", " a b "), ("tag", "")])
    assert query.address() == "/?q=a+b" and query.is_filtered
    assert run_list.RunQuery().address() == "/"


def wait(driver: Any, script: str) -> None:
    wait_until(driver, f"return {script}")


def runs_of(driver: Any) -> list[str]:
    script = "return [...document.querySelectorAll('tr[data-run]')].map((r) => r.dataset.run)"
    return list(driver.execute_script(script))


@pytest.fixture
def unlabelled(many: Served) -> Iterator[str]:
    """A run that may be labelled: others find it as it was."""
    yield "r002"
    many.client.post("/runs/r002/labels", data={})
    assert not shown(many.client.get("/?tag=fast"))


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, pytest.param(400, marks=pytest.mark.slow)])
def test_clicked_through(width: int, driver: Any, many: Served, unlabelled: str) -> None:
    served, home = many, many.home
    with looking(driver, width, 900, "dark" if width < 600 else "light"):
        served.sign_in(driver)

        def click(css: str) -> None:
            driver.find_element("css selector", css).click()

        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        assert driver.execute_script(CONTRAST) == []
        # Search, and back.
        driver.find_element("id", "q").send_keys("seed 7\n")
        wait(driver, "location.search === '?q=seed+7'")
        found = runs_of(driver)
        assert found and len(found) < 100
        driver.back()
        wait(driver, "location.search === ''")
        # Sort by a column, once and once more.
        click("thead th:nth-child(2) a")
        wait(driver, "location.search === '?sort=run'")
        assert runs_of(driver)[0] == "r000"
        click("thead th:nth-child(2) a")
        wait(driver, "location.search === '?sort=-run'")
        assert runs_of(driver)[0] == "zz-models"
        # Filter: the choice acts at once.
        click("#filter-tag option[value=base]")
        wait(driver, "location.search.includes('tag=base')")
        assert runs_of(driver) == ["r150", "r007"]
        click("#runs-filter a.button")
        wait(driver, "!location.search.includes('tag')")
        # The next page.
        click("a[rel=next]")
        wait(driver, "location.search.includes('page=2')")
        assert "101–200" in driver.find_element("id", "runs-compare").text
        # By program.
        driver.get(f"{served.base}/")
        click("#by-program li a")
        wait(driver, "location.search.includes('program=')")
        assert driver.execute_script("return document.querySelectorAll('.trend .plot > a').length")
        # Two runs to compare.
        driver.get(f"{served.base}/")
        assert not driver.find_element("css selector", "#runs-compare button").is_enabled()
        click("input[value=r001]")
        click("input[value=r004]")
        assert driver.find_element("css selector", "input[value=r005]").is_enabled()
        assert driver.find_element("id", "runs-picked").text == "2 runs chosen."
        click("#runs-compare button")
        wait(driver, "location.pathname === '/compare'")
        assert urlsplit(driver.current_url).query == "a=r004&b=r001"
        # Tags and a note.
        driver.get(f"{served.base}/?q=seed+2")
        click("#run-r002 a.edit")
        wait(driver, "document.getElementById('tags-r002')")
        driver.find_element("id", "tags-r002").send_keys("fast, small")
        driver.find_element("id", "note-r002").send_keys("Half the time.")
        click(".labels-form button")
        wait(driver, "document.querySelector('#run-r002 .badge.tag')")
        assert read_labels(home / "r002") == Labels(("fast", "small"), "Half the time.")
        assert "q=seed+2" in driver.current_url
        click("#run-r002 .badge.tag")
        wait(driver, "location.search === '?tag=fast'")
        assert runs_of(driver) == ["r002"]
        said = [each for each in driver.get_log("browser") if each["level"] != "INFO"]
        assert [each for each in said if "/compare" not in each["message"]] == []


@pytest.mark.slow
@pytest.mark.browser
def test_what_is_new_is_announced_and_what_changes_is_drawn(driver: Any, tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    samples.store(samples.RUNS["full"], home, "abc-full")
    with serving(home) as served:
        served.sign_in(driver)
        # Figures that were not known when the page was drawn come by themselves.
        wait(driver, "document.querySelector('#run-abc-full .breaks').innerText.includes('1')")
        write_labels(home / "abc-full", Labels(("late",)))
        wait(driver, "document.querySelector('#run-abc-full .badge.tag')")
        folder = home / "def-new"
        folder.mkdir()
        write_header(folder, RunHeader(run="def-new", tool="0", started_ns=time.time_ns()))
        wait(driver, "!document.getElementById('runs-news').hidden")
        assert runs_of(driver) == ["abc-full"]
        driver.find_element("css selector", "#runs-news a").click()
        wait(driver, "document.getElementById('run-def-new')")


@pytest.mark.browser
def test_keys_reach_everything(driver: Any, tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    for name in ("full", "later", "models"):
        samples.store(samples.RUNS[name], home, f"abc-{name}")
    with serving(home) as served, looking(driver, 1280, 900, "light"):
        until(lambda: (seen := data(served))["read"] == seen["total"])
        served.sign_in(driver)
        driver.get(f"{served.base}/?edit=abc-full&program=Python+session")
        walked = focus_walk(driver)
    assert walked == {"trapped": "", "missed": [], "unmarked": [], "out_of_sight": []}


@pytest.mark.parametrize(
    ("measure", "title", "points"),
    [("breaks", "Graph breaks", 0), ("recompiles", "Recompiles", 0), ("time", "Run time", 1)],
)
def test_lines_of_a_program_show_what_was_chosen(
    many: Served, measure: str, title: str, points: int
) -> None:
    page = many.client.get("/", params={"program": "gpt/train1.py", "measure": measure}).text
    assert f'<strong aria-current="true">{title}</strong>' in page
    lines = page.partition('id="by-program"')[2].partition("</section>")[0]
    # These runs hold no events: how long each took is known all the same.
    assert ("1.0 s" in lines or "1 s" in lines or "1.00 s" in lines) is bool(points)
