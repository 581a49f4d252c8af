"""The links from a graph break to its page in the registry, and to PyTorch's own page of it."""

from __future__ import annotations

from compilescope.patterns import late
from compilescope.registry.pages import Pages, pytorch_page
from compilescope.report.blocks import Block, Paragraph, Span, words

_OF_PYTORCH = late(r"https://(?:(?:[\w-]+\.)*pytorch\.org|(?:meta-)?pytorch\.github\.io)/")


def page_link(gb_id: str | None, pages: Pages | None, link: str = "") -> list[Block]:
    """Its page, or the command that shows the same; nothing for a break without an id.

    `link` is where torch's own message leads, where it was kept.
    """
    hint = pages.hint(gb_id) if pages is not None and gb_id else ""
    link = link or (pytorch_page(gb_id) if hint else "")
    if not hint:
        return pytorch_link(link)
    url = pages.url(gb_id) if pages is not None else ""
    more = Paragraph(words(Span(hint, url=url) if url else Span(hint, "code")), "More:")
    return [more, *(pytorch_link(link) if link != url else [])]


def pytorch_link(link: str) -> list[Block]:
    """On a line of its own: a link that is broken in two cannot be copied.

    A record may come from anyone: what leads elsewhere is no page of PyTorch's, and no link.
    """
    if not link:
        return []
    known = _OF_PYTORCH.match(link) is not None
    return [Paragraph(words(Span("PyTorch's page", url=link) if known else Span(link, "code")))]
