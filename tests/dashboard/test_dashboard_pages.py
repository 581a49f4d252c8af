"""What holds for every page of the dashboard."""

from __future__ import annotations

import re
from html import unescape

import pytest

from compilescope.apps.dashboard.server.app import all_pages
from dashboard_server import Served

LISTED = [page for page in all_pages() if page.title]


@pytest.mark.parametrize("page", LISTED, ids=lambda page: page.id)
def test_a_page_of_the_navigation_answers(page, served: Served) -> None:
    answer = served.client.get(page.link)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    title = re.search(r"<title>(.+?)</title>", answer.text)
    assert title is not None and unescape(title[1]).endswith("· compilescope")
    assert len(re.findall(r"<h1\b", answer.text)) == 1
    assert re.search(rf'href="{page.link}" aria-current="page"', answer.text)


def test_a_page_shows_where_it_belongs_to(served: Served) -> None:
    folder = next(folder for folder in served.home.iterdir() if folder.is_dir())
    answer = served.client.get(f"/runs/{folder.name}")
    assert '<a href="/" aria-current="true">Runs</a>' in answer.text
    assert "aria-current=" not in served.client.get("/sign-in/nothing").text
