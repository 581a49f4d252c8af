"""What the search of the home page looks into, as one block of JSON inside that page.

A file of its own would have to be fetched, which browsers forbid for pages opened from disk.
"""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from compilescope.site.content import Content, Page
from compilescope.texts import visible

_LONGEST = 1500
"""Letters of one text. Chosen: the whole index is part of the home page."""


def search_index(content: Content) -> Markup:
    """Ids and categories with their words; no character in it can end the block."""
    categories = [
        {
            "id": category.id,
            "title": category.title,
            "words": [*content.symptoms[category.id]],
            "types": list(category.types),
        }
        for category in content.taxonomy
    ]
    index = {"entries": [_entry(page) for page in content.pages], "categories": categories}
    text = json.dumps(_clean(index), ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _entry(page: Page) -> dict[str, Any]:
    entry = page.entry
    found: dict[str, Any] = {
        "id": entry.gb_id,
        "types": list(entry.titles),
        "category": page.category.id if page.category else "",
        "explanations": list(entry.explanations),
        "hints": list(entry.hints),
        "contexts": list(entry.contexts),
    }
    if page.example is not None:
        found["example"] = [page.example.description, page.example.broken]
    if page.notes:
        found["note"] = [note.text for note in page.notes]
    return found


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value[:_LONGEST])
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {name: _clean(each) for name, each in value.items()}
    return value
