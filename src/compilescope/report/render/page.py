"""Documents as one page of HTML that needs nothing else: no network, and no script for reading.

The page forbids every request and every script but its own, so that a name which slipped through
the escaping would still be inert.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from markupsafe import Markup

from compilescope.base.patterns import late
from compilescope.record.uncollected import uncollected
from compilescope.report.blocks import Block, Document, Fold, Item
from compilescope.report.render.compressed_code import open_shelf, packed_code
from compilescope.report.render.html import amount, draw_template, scripts, styles

_ID = late(r' id="([^"]*)"')
_LINK = late(r' href="#([^"]*)"')
_FILTER_GROUPS = {"kind": "Kind", "whose": "Code", "category": "Category"}
_NAMES = {
    "kind:break": "graph breaks",
    "kind:recompile": "recompiles",
    "kind:failure": "failures",
    "kind:graph": "graphs",
    "whose:yours": "yours",
    "whose:library": "libraries",
}


class PageParts(NamedTuple):
    """What a page says, for whoever puts a frame around it."""

    title: str
    sections: Markup
    """A list of links for each document."""
    main: Markup
    packed: Markup
    """Code that is unpacked when it is asked for; it stands after all else."""


@uncollected()
@open_shelf()
def page_parts(documents: Sequence[Document], *, headed: bool = True) -> PageParts:
    """`headed`: each document begins with what was run; a page that says so itself needs it not."""
    many = len(documents) > 1
    values: dict[str, Any] = {
        "documents": [
            # What is said of all runs leads to them, so its own anchors have no prefix.
            (document, _program(document), f"r{number}-" if many and document.record.run else "")
            for number, document in enumerate(documents)
        ],
        "amount": amount,
    }
    main = draw_template(
        "documents",
        filters=_filters(documents),
        headed=headed,
        searched=any(True for document in documents for _ in _tagged(document)),
        **values,
    )
    return PageParts(
        title=_title(documents),
        sections=Markup(draw_template("sections", **values)),
        main=Markup(_without_dead_links(main)),
        packed=packed_code(),
    )


def _without_dead_links(main: str) -> str:
    """A page draws the first of many entries; what speaks of another one leads nowhere. Texts
    cannot look like attributes: their quotes are escaped."""
    drawn = set(_ID.findall(main))
    return _LINK.sub(lambda link: link[0] if link[1] in drawn else "", main)


def _title(documents: Sequence[Document]) -> str:
    """What is said of all runs names the page alone: a list of programs fits no tab."""
    first = documents[:1] if documents and not documents[0].record.run else documents
    return ", ".join(_program(document) for document in first)


def to_page(documents: Sequence[Document]) -> str:
    script = scripts()
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    parts = page_parts(documents)
    return draw_template(
        "page",
        policy=Markup(
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        ),
        style=styles(page=True),
        script=script,
        **parts._asdict(),
    )


def _program(document: Document) -> str:
    """What was run, as a reader knows it."""
    return " ".join(document.record.command) or document.title


def _filters(documents: Iterable[Document]) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Groups of tags that tell items apart: tag, its name, how many have it."""
    tags: Counter[str] = Counter()
    for document in documents:
        tags.update(tag for item in _tagged(document) for tag in item.tags)
    groups = []
    for group, title in _FILTER_GROUPS.items():
        chosen = [
            (tag, _NAMES.get(tag, tag.partition(":")[2].replace("-", " ")), number)
            for tag, number in tags.most_common()
            if tag.startswith(f"{group}:")
        ]
        if len(chosen) > 1:
            groups.append((title, chosen))
    return groups


def _tagged(document: Document) -> Iterable[Item]:
    """What can be searched and filtered."""
    return (item for part in document.parts for item in _items(part.blocks) if item.tags)


def _items(blocks: Iterable[Block]) -> Iterable[Item]:
    for block in blocks:
        if isinstance(block, Item):
            yield block
        if isinstance(block, (Item, Fold)):
            yield from _items(block.blocks)
