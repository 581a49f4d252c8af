"""The registry as one JSON Feed (version 1.1): an item for each id, all under `_registry`."""

from __future__ import annotations

import json
from typing import Any

from compilescope.site.content import Content, Page
from compilescope.texts import visible

VERSION = "https://jsonfeed.org/version/1.1"


def feed_text(content: Content, base_url: str) -> str:
    """Addresses are relative to the feed where the site has no address of its own."""
    feed: dict[str, Any] = {
        "version": VERSION,
        "title": f"Graph breaks in {content.name}",
        "description": "Every torch.compile graph break: PyTorch's text, category, examples.",
    }
    if base_url:
        feed |= {"home_page_url": base_url, "feed_url": f"{base_url}feed.json"}
    feed["_registry"] = {
        "torch": content.table.torch,
        "release": content.release,
        "counts": dict(sorted(content.counts.items())),
        "met": {
            "torch": content.met.torch,
            "transformers": content.met.transformers,
            "models": content.met.models,
            "programs": content.met.programs,
        },
        "categories": [_category(content, category.id) for category in content.taxonomy],
        "versions": [
            {
                "torch": step.torch,
                "also": list(step.also),
                "came": list(step.came),
                "went": list(step.went),
                "reworded": list(step.reworded),
            }
            for step in content.history.steps
        ],
    }
    feed["items"] = [_item(page, base_url) for page in content.pages]
    return printable_json(feed)


def printable_json(value: Any) -> str:
    # Escaped to ASCII: a lone surrogate in a text would make the file invalid.
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def _category(content: Content, category_id: str) -> dict[str, Any]:
    category = content.taxonomy.get(category_id)
    assert category is not None
    return {
        "id": category.id,
        "title": category.title,
        "why": category.why,
        "fix": category.fix,
        "means": list(category.means),
        "ids": [page.gb_id for page in content.of_category(category.id)],
    }


def _item(page: Page, base_url: str) -> dict[str, Any]:
    entry = page.entry
    words = [*entry.explanations, *(f"Hint: {hint}" for hint in entry.hints)]
    return {
        "id": entry.gb_id,
        "url": f"{base_url}gb/{entry.gb_id.lower()}.html",
        "title": visible(f"{entry.gb_id} {entry.title}"),
        "content_text": visible("\n".join(words) or entry.title),
        "tags": [page.category.id] if page.category else [],
        "_registry": {
            "types": list(entry.titles),
            "wordings": [
                {
                    "type": wording.variant.gb_type,
                    "context": wording.variant.context,
                    "explanation": wording.variant.explanation,
                    "hints": list(wording.variant.hints),
                    "since": wording.since,
                }
                for wording in page.wordings
            ],
            "category": page.category.id if page.category else None,
            "since": page.since,
            "raised": page.raised,
            "example": page.example.source if page.example else None,
            "has_fixed": bool(page.example and page.example.has_fixed),
            "output": page.output or None,
            "unreachable": (
                {"kind": page.unreachable.kind, "reason": page.unreachable.reason}
                if page.unreachable and page.example is None
                else None
            ),
            "note": page.notes[0].text if page.notes else None,
            "met": (
                {"models": page.met.models, "programs": page.met.programs} if page.met else None
            ),
            "related": [other.gb_id for other in page.related],
        },
    }
