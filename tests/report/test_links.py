"""The pages that a cause leads to: ours and PyTorch's, each once."""

from __future__ import annotations

from compilescope.knowledge.registry.pages import Pages, pytorch_page
from compilescope.report.blocks import Document, Part
from compilescope.report.finding import page_link
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text

PYTORCHS = pytorch_page("GB0170")


def document(*wanted: object, link: str = "") -> Document:
    return Document("t", "", (Part("p", "", tuple(page_link(*wanted, link=link))),))  # type: ignore[arg-type]


def test_both_pages_are_linked_once() -> None:
    ours = Pages(site="https://host.example/").url("GB0170")
    drawn = document("GB0170", Pages(site="https://host.example/"))
    text = to_text(drawn)
    assert text.count(ours) == text.count(PYTORCHS) == 1
    assert f"\n{PYTORCHS}\n" in text
    assert f'<a href="{PYTORCHS}" rel="noopener">PyTorch&#x27;s page</a>' in to_html(drawn)
    assert f"[PyTorch's page]({PYTORCHS})" in to_markdown(drawn)


def test_torchs_own_link_goes_before_ours_of_it() -> None:
    theirs = "https://docs.pytorch.org/gb/gb0170.html"
    text = to_text(document("GB0170", Pages(), link=theirs))
    assert theirs in text and PYTORCHS not in text
    assert text.count("compilescope registry show GB0170") == 1
    assert theirs in to_text(document(None, None, link=theirs))


def test_only_pytorchs_pages_are_called_so() -> None:
    for link in ("https://evil.example/gb", "https://pytorch.org.evil.example/", "javascript:x"):
        drawn = document(None, None, link=link)
        assert link in to_text(drawn) and "PyTorch" not in to_text(drawn)
        assert "href" not in to_html(drawn) and f"`{link}`" in to_markdown(drawn)


def test_without_pages_or_an_id_there_is_nothing() -> None:
    assert page_link("GB0170", None) == page_link(None, Pages()) == []


def test_a_site_that_is_pytorchs_is_not_linked_twice() -> None:
    site = PYTORCHS.removesuffix("gb/gb0170.html")
    assert to_text(document("GB0170", Pages(site=site))).count(PYTORCHS) == 1
