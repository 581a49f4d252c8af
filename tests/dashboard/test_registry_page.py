"""The registry in the dashboard: the site's own pages in another frame, searched by the server."""

from __future__ import annotations

import itertools
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, focus_walk, looking, seen
from compilescope.apps.dashboard import graph_breaks
from compilescope.apps.dashboard.graph_breaks import RegistryQuery, find
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.registry.cases import load_break_counts
from compilescope.knowledge.registry.table import load_registry, table_file
from compilescope.knowledge.registry.taxonomy import load_taxonomy
from compilescope.record.run import read_run
from compilescope.report.site.content import Content
from compilescope.report.site.pages import draw_site
from dashboard_server import Served
from waiting import until

try:
    table_file()
except ToolError:
    pytest.skip("there is no torch with a table", allow_module_level=True)


@pytest.fixture(scope="module")
def content(registry: Served) -> Content:
    return graph_breaks.GraphBreaks(None).content()


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def rows(page: str) -> list[str]:
    """Ids of the rows that are shown, in order."""
    found = re.findall(r'<li class="row"[^>]*data-id="(GB\d+)"[^>]*?( hidden)?>', page)
    return [gb_id for gb_id, hidden in found if not hidden]


def test_all_of_them_and_whose_table_it_is(registry: Served) -> None:
    page = registry.client.get("/registry").text
    table = load_registry()
    by_met = sorted((entry.gb_id for entry in table), key=load_break_counts().rank)
    assert rows(page) == by_met and "Most common first" in plain(page)
    by_id = registry.client.get("/registry", params={"sort": "id"}).text
    assert rows(by_id) == [entry.gb_id for entry in table]
    assert f"{len(table)} graph breaks in torch {table.torch}" in plain(page)
    assert '<form class="finder" role="search" method="get" action="/registry">' in page


@pytest.mark.parametrize(
    "asked", ["item", "data-dependent branching", "GB0170", "124", "context manager"]
)
def test_words_are_ranked_as_on_the_command_line(
    registry: Served, content: Content, asked: str
) -> None:
    table, taxonomy = load_registry(), load_taxonomy()
    labels = {
        entry.gb_id: f"{known.id} {known.title}"
        for entry in table
        if (known := taxonomy.category_of(entry.gb_id, entry.title))
    }
    expected = [entry.gb_id for entry in table.search([asked], labels)]
    page = registry.client.get("/registry", params={"q": asked}).text
    found = rows(page)
    assert found[: len(expected)] == expected and expected
    assert f">{asked}</textarea>" in page


def test_a_pasted_message(content: Content) -> None:
    message = """torch._dynamo.exc.Unsupported: Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not
  support tracing dynamic control flow.
  Hint: Use `torch.cond` to express dynamic control flow.
  For more details about this graph break, please visit: https://host/gb/gb0170.html
from user code: File "/home/ada/train.py", line 12, in forward: if x.sum() > 0:"""
    assert find(content, RegistryQuery(q=message))[0].gb_id == "GB0170"
    without_link = message.replace("gb0170", "there")
    assert find(content, RegistryQuery(q=without_link))[0].gb_id == "GB0170"
    assert find(content, RegistryQuery(q="nothing has these words xyzzy")) == []


def test_filters(registry: Served, content: Content) -> None:
    category = next(iter(content.taxonomy)).id
    since = content.by_id["GB0170"].since
    for name, value, fits in (
        ("category", category, lambda page: page.category and page.category.id == category),
        ("since", since, lambda page: page.since == since),
        ("has", "note", lambda page: page.note is not None),
        ("means", "config", lambda page: page.category and "config" in page.category.means),
    ):
        page = registry.client.get("/registry", params={name: value}).text
        wanted = [each.gb_id for each in content.ranked if fits(each)]
        assert rows(page) == wanted
        assert f"{len(wanted)} of {len(content.pages)}" in plain(page)
        assert re.search(rf'<option value="{value}" selected>', page)


@pytest.mark.parametrize("sort", ["id", "type", "category", "newest"])
def test_sorting(content: Content, sort: str) -> None:
    found = find(content, RegistryQuery(sort=sort))
    assert {page.gb_id for page in found} == {page.gb_id for page in content.pages}
    titles = [page.title.casefold() for page in found]
    assert sort != "type" or titles == sorted(titles)


@pytest.mark.parametrize(
    "query",
    [{"category": "nope"}, {"since": "<b>"}, {"has": "x"}, {"sort": "by me"}, {"q": "x" * 20_001}],
)
def test_questions_that_the_form_would_not_ask(registry: Served, query: dict[str, str]) -> None:
    answer = registry.client.get("/registry", params=query)
    assert answer.status_code in (400, 414) and "<b>" not in answer.text


def test_an_entry_says_what_the_site_says(registry: Served, content: Content) -> None:
    """Word for word, but for the frame, the links and what only the dashboard has."""
    site = dict(itertools.islice(draw_site(content), 130))

    def article(page: str) -> str:
        inside = re.search(r"<article.*?</article>", page, re.S)
        assert inside is not None
        text = re.sub(r'<section id="note">.*?</section>', "", inside[0], flags=re.S)
        text = re.sub(r"<h2>Seen in your runs.*?(?=<h2>Related)", "", text, flags=re.S)
        return " ".join(re.sub(r'href="[^"]*"', "", text).split())

    for gb_id in ("GB0124", "GB0059", "GB0001"):
        page = registry.client.get(f"/registry/{gb_id}")
        assert page.status_code == 200
        assert article(page.text) == article(site[f"gb/{gb_id.lower()}.html"])


def test_links_lead_to_pages(registry: Served) -> None:
    page = registry.client.get("/registry/GB0170").text
    for address in sorted(set(re.findall(r'href="(/registry[^"#]*)"', page))):
        assert registry.client.get(unescape(address)).status_code == 200, address
    # A note of the site leads to another as a file.
    answer = registry.client.get("/registry/gb0170.html")
    assert answer.url.path == "/registry/GB0170"
    assert registry.client.get("/registry/170").url.path == "/registry/GB0170"


@pytest.mark.parametrize("gb_id", ["GB9999", "nope", "GB0170x", "%3Cscript%3E", "GB0170%00"])
def test_ids_that_are_not_there(registry: Served, gb_id: str) -> None:
    answer = registry.client.get(f"/registry/{gb_id}")
    assert answer.status_code in (400, 404)
    assert "<script>" not in answer.text


def test_runs_that_have_it(registry: Served) -> None:
    wanted = {
        f"/runs/{folder.name}"
        for folder in registry.home.iterdir()
        if folder.is_dir() and "GB0170" in figures(read_run(folder)).gb_ids
    }
    assert wanted

    def found() -> set[str]:
        page = registry.client.get("/registry/GB0170").text
        return set(re.findall(r'href="(/runs/[^"]+)"', page))

    until(lambda: found() == wanted)  # Another process reads them, one after the other.
    assert "In none of them." in registry.client.get("/registry/GB0000").text


def test_without_a_table_it_says_so(registry: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise ToolError("This Python has no torch with a graph-break table.")

    monkeypatch.setattr(graph_breaks, "current_file", none)
    for address in ("/registry", "/registry/GB0170"):
        answer = registry.client.get(address)
        assert answer.status_code == 200
        assert "There is no graph-break table here" in plain(answer.text)
    assert registry.client.get("/registry/GB0170/note").status_code == 400


def test_who_has_no_token_reads_nothing(registry: Served) -> None:
    with registry.stranger() as stranger:
        for address in ("/registry", "/registry/GB0170", "/registry/GB0170/note"):
            assert stranger.get(address).status_code == 401


@pytest.mark.browser
def test_searching_as_one_types(driver: Any, registry: Served) -> None:
    registry.sign_in(driver)
    driver.get(f"{registry.base}/registry?category=data-dependent-branch")
    assert shown(driver)
    assert "category=data-dependent-branch" in driver.current_url
    seen(driver, "#clear").click()
    # At once: what a part of the words suggests would be gone before it is clicked.
    driver.execute_script(
        "const f = document.getElementById('find'); f.value = 'if on a tensor';"
        "f.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    # A category that the words speak of leads to its graph breaks.
    seen(driver, "#suggestions a").click()
    seen(driver, "#category option[value=data-dependent-branch]:checked")
    seen(driver, "#clear").click()
    seen(driver, "#find").send_keys("Data-dependent branching")
    seen(driver, "#rows .row:first-child[data-id=GB0170]")
    assert seen(driver, "#found").text.split(" of ")[1].isdecimal()
    # A pasted message may be longer than an address, and is never sent.
    pasted = "Data-dependent branching\n" + "  File train.py, line 3, in forward\n" * 1000
    driver.execute_script("arguments[0].value = arguments[1]", seen(driver, "#find"), pasted)
    seen(driver, ".finder button:not([type])").click()
    seen(driver, "#rows .row:first-child[data-id=GB0170]")
    seen(driver, "#find").clear()
    seen(driver, "#find").send_keys("Data-dependent branching\n")
    seen(driver, "article.entry")
    assert driver.find_element("css selector", "pre.code .here").text.endswith("# breaks here")
    assert driver.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    "address", ["/registry?category=data-dependent-branch", "/registry/GB0170"]
)
def test_pages_that_everybody_can_use(driver: Any, registry: Served, address: str) -> None:
    registry.sign_in(driver)
    for width, scheme in ((1280, "light"), (400, "dark")):
        with looking(driver, width, 900, scheme):
            driver.get(registry.base + address)
            assert grave_findings(driver) == []
            assert driver.execute_script(CONTRAST) == []
            wide = "return document.documentElement.scrollWidth - innerWidth"
            assert driver.execute_script(wide) <= 0
    assert not any(focus_walk(driver).values())


def shown(driver: Any) -> list[str]:
    return [row.get_attribute("data-id") for row in driver.find_elements("css selector", ".row")]
