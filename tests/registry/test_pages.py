"""Where links to graph breaks lead, and how each format draws them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.pages import Pages, find_pages, pytorch_page
from compilescope.knowledge.registry.taxonomy import CATEGORY_IDS, load_symptoms, read_symptoms


def test_a_site_that_was_set() -> None:
    pages = find_pages(None, {"COMPILESCOPE_REGISTRY_SITE": "https://host.example/breaks"})
    assert pages.url("GB0124") == "https://host.example/breaks/gb/gb0124.html"
    assert pages.hint("gb124") == pages.url("GB0124")
    assert pages.url(None) == "" and pages.hint("nonsense") == ""
    project = find_pages("https://project.example/", {})
    assert project.url("GB0124") == "https://project.example/gb/gb0124.html"
    both = find_pages(
        "https://project.example/", {"COMPILESCOPE_REGISTRY_SITE": "http://e.example"}
    )
    assert both.site == "http://e.example/"


def test_a_site_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    pages = find_pages(None, {})
    assert pages.url("GB0124") == ""
    assert pages.hint("GB0124") == "compilescope registry show GB0124"
    page = tmp_path / "a cache" / "compilescope" / "site" / "gb" / "gb0124.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    assert pages.url("GB0124") == page.as_uri() and "%20" in page.as_uri()
    assert pages.hint("GB0125") == "compilescope registry show GB0125"


@pytest.mark.parametrize(
    "site",
    ["javascript:alert(1)", "file:///etc", 'https://x/"onclick=', "https://x/)[a](", "https://"],
)
def test_what_is_no_address_is_refused(site: str) -> None:
    with pytest.raises(ToolError, match="not the http address"):
        find_pages(site, {})


def test_nothing_set_and_nothing_built() -> None:
    assert Pages().hint("GB0170") == "compilescope registry show GB0170"


@pytest.mark.torch
def test_pytorchs_own_page_is_the_one_that_torch_links() -> None:
    from torch._dynamo.exc import get_gbid_documentation_link

    assert pytorch_page("GB0170") == get_gbid_documentation_link("Data-dependent branching")
    assert pytorch_page("nonsense") == pytorch_page(None) == ""


def test_every_category_has_symptoms(tmp_path: Path) -> None:
    symptoms = load_symptoms()
    assert set(symptoms) == set(CATEGORY_IDS)
    for words in symptoms.values():
        assert len(words) == len(set(words)) > 3
    (tmp_path / "s.toml").write_text('logging = ["print"]\n')
    with pytest.raises(ToolError, match="each category"):
        read_symptoms(tmp_path / "s.toml")
