"""The link from a graph break to its page in the registry."""

from __future__ import annotations

from compilescope.registry.pages import Pages
from compilescope.report.blocks import Block, Paragraph, Span, words


def page_link(gb_id: str | None, pages: Pages | None) -> list[Block]:
    """Its page, or the command that shows the same; nothing for a break without an id."""
    hint = pages.hint(gb_id) if pages is not None and gb_id else ""
    if not hint:
        return []
    url = pages.url(gb_id) if pages is not None else ""
    return [Paragraph(words(Span(hint, url=url) if url else Span(hint, "code")), "More:")]
