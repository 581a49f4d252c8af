"""Documents as one page of HTML that needs nothing else: no network, and no script for reading.

The page forbids every request and every script but its own, so that a name which slipped through
the escaping would still be inert.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from compilescope.report.blocks import Block, Document, Fold, Item, Part
from compilescope.report.render.html import clean, draw, heading, style_of

_FILTER_GROUPS = ("kind", "whose", "category")


def to_page(documents: Sequence[Document]) -> str:
    script = style_of("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = ", ".join(document.title for document in documents)
    prefixes = [f"r{number}-" if len(documents) > 1 else "" for number in range(len(documents))]
    runs = "".join(_run(d, prefix) for d, prefix in zip(documents, prefixes, strict=True))
    links = "".join(_links(d, prefix) for d, prefix in zip(documents, prefixes, strict=True))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{clean(title)}</title>"
        f"<style>{style_of('blocks.css')}{style_of('page.css')}</style></head>"
        '<body class="cscope"><a class="skip" href="#main">Skip to the report</a>'
        f'<nav aria-label="Sections"><div class="brand">compilescope</div>{links}</nav>'
        f'<main id="main">{_toolbar(documents)}{runs}</main>'
        f"<script>{script}</script></body></html>\n"
    )


def _run(document: Document, prefix: str) -> str:
    command = f"<p><code>{clean(document.subtitle)}</code></p>" if document.subtitle else ""
    head = f'<header class="run"><h1>{clean(document.title)}</h1>{command}</header>'
    return head + "".join(_part(part, prefix) for part in document.parts)


def _part(part: Part, prefix: str) -> str:
    title = heading(part.title, part.note, "h2") if part.title else ""
    anchor = f"{prefix}{clean(part.id)}"
    body = draw(part.blocks, prefix)
    return f'<section class="part {clean(part.id)}" id="{anchor}">{title}{body}</section>'


def _links(document: Document, prefix: str) -> str:
    label = f'<div class="of">{clean(document.title)}</div>' if prefix else ""
    items = "".join(
        f'<li><a href="#{prefix}{clean(part.id)}">{_name(part)}{_amount(part)}</a></li>'
        for part in document.parts
    )
    return f"{label}<ul>{items}</ul>"


def _name(part: Part) -> str:
    """A part without a title of its own goes by its id."""
    return clean(part.title or part.id.capitalize())


def _amount(part: Part) -> str:
    """How many entries a section has."""
    number = sum(isinstance(block, Item) for block in part.blocks)
    return f' <span class="dim">{number}</span>' if number else ""


def _toolbar(documents: Iterable[Document]) -> str:
    """Shown by the script alone: without one it could do nothing."""
    tags: Counter[str] = Counter()
    for document in documents:
        for part in document.parts:
            tags.update(tag for item in _items(part.blocks) for tag in item.tags)
    if not tags:
        return ""
    chips = ""
    for group in _FILTER_GROUPS:
        chosen = [
            (tag, number) for tag, number in tags.most_common() if tag.startswith(f"{group}:")
        ]
        if len(chosen) > 1:
            chips += f'<span class="group" role="group" aria-label="{group}">'
            chips += "".join(_chip(tag, number) for tag, number in chosen) + "</span>"
    return (
        '<div class="tools" hidden><input type="search" id="find" '
        'placeholder="Search causes, files, code  ( / )" aria-label="Search">'
        '<output id="found" aria-live="polite"></output>'
        '<button type="button" id="open">Open all</button>'
        f'<button type="button" id="shut">Shut all</button><div class="chips">{chips}</div></div>'
    )


def _chip(tag: str, number: int) -> str:
    name = tag.partition(":")[2]
    return (
        f'<button type="button" class="chip" data-tag="{clean(tag)}" aria-pressed="false">'
        f'{clean(name)} <span class="dim">{number}</span></button>'
    )


def _items(blocks: Iterable[Block]) -> Iterable[Item]:
    for block in blocks:
        if isinstance(block, Item):
            yield block
        if isinstance(block, (Item, Fold)):
            yield from _items(block.blocks)
