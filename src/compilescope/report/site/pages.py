"""Content -> the text of every file of the site, by its path. Writes nothing.

Templates escape all that they print; `words` holds the few things that pass as HTML. What the
search of the home page looks into is one block of JSON inside that page: a file of its own would
have to be fetched, which browsers forbid for pages opened from disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from compilescope.base.texts import visible
from compilescope.base.version import VERSION
from compilescope.change.fixes.catalogue import fixes_answering
from compilescope.change.fixes.diffs import file_diff
from compilescope.knowledge.registry.history import HistoryStep, release_key
from compilescope.knowledge.registry.notes import note_name
from compilescope.knowledge.rules.causes.explanations import break_rules
from compilescope.report.render.safe_html import finalize
from compilescope.report.site.content import Content, Page
from compilescope.report.site.dashboard import dashboard_values
from compilescope.report.site.words import diff_lines, note_html, python_lines, sentence

_LINK = re.compile(r"\[(?P<words>[^\]\n]{1,200})\]\((?P<id>gb\d{4,6})\.html\)")
"""In a note, to the page of another id."""

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


TEMPLATES = Path(__file__).with_name("templates")
ASSETS = Path(__file__).with_name("assets")
EDIT_URL = "https://github.com/compilescope/compilescope/edit/main/src/compilescope/knowledge/registry/notes"
# Every request and every script but the site's own is forbidden, so that a text which slipped
# through the escaping would still be inert.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
MEANS = {
    "config": "a config flag",
    "rewrite": "a mechanical rewrite",
    "judgement": "a change you must judge",
    "upgrade": "another torch or backend",
}
KINDS = {
    "internal": {"badge": "internal", "heading": "Not reachable from user code"},
    "hardware": {"badge": "needs hardware", "heading": "Reaching this needs hardware"},
    "version": {"badge": "other versions", "heading": "Reaching this needs another version"},
    "process": {"badge": "special setup", "heading": "Reaching this needs a special setup"},
}
_FLAG = re.compile(r"torch\._\w+\.config\.\w+(?:\s*=\s*\w+)?")
_BRIEF = 220
"""Letters of a description in a page's head. Chosen: two sentences or so."""


def draw_site(
    content: Content, base_url: str = "", edit_url: str = ""
) -> Iterator[tuple[str, str]]:
    """Path and text of each file, pages first. `base_url` ends in a slash, or is empty."""
    edit_url = (edit_url or EDIT_URL).rstrip("/")
    page_of = _PageWriter(content, base_url)
    home = home_values(content)
    yield page_of("registry_home.html", "index.html", here="home", **home)
    for page in content.pages:
        path = f"gb/{page.gb_id.lower()}.html"
        values = {**entry_values(content, page), "edit": _edit(page, edit_url)}
        yield page_of("registry_entry.html", path, **values)
    yield page_of("categories.html", "categories.html", here="categories")
    for category in content.taxonomy:
        values = {"category": category, "pages": content.of_category(category.id)}
        values["patterns"] = _patterns(category.id)
        path = f"category/{category.id}.html"
        yield page_of("category.html", path, here="categories", **values)
    unknown = [page for page in content.pages if page.since is None]
    yield page_of("versions.html", "versions.html", here="versions", unknown=unknown)
    yield from _versions(page_of, content)
    dashboard = dashboard_values(content)
    yield page_of("dashboard.html", "dashboard.html", here="dashboard", **dashboard)
    yield page_of("missing.html", "404.html", root=base_url)
    yield "feed.json", feed_text(content, base_url)
    for asset in sorted(ASSETS.iterdir()):
        if asset.suffix in (".css", ".js", ".svg"):
            yield f"assets/{asset.name}", asset.read_text(encoding="utf-8")


@dataclass(frozen=True)
class _PageLinks:
    """From a page of the site to others."""

    root: str

    @property
    def home(self) -> str:
        return f"{self.root}index.html"

    def entry(self, gb_id: str) -> str:
        return f"{self.root}gb/{gb_id.lower()}.html"

    def category(self, category_id: str) -> str:
        return f"{self.root}category/{category_id}.html"

    def version(self, release: str) -> str:
        return f"{self.root}version/{release}.html"


def shared_values(content: Content) -> dict[str, Any]:
    """What the pages of a graph break and of all of them know."""
    steps = content.history.steps
    return {
        "content": content,
        "counts": content.counts,
        "means": MEANS,
        "kinds": KINDS,
        "first_release": steps[0].torch if steps else None,
        "steps_here": _steps_here(content),
    }


class _PageWriter:
    """Draws a template at a path, with what every page knows."""

    def __init__(self, content: Content, base_url: str) -> None:
        self._environment = _environment()
        self._values: dict[str, Any] = {
            **shared_values(content),
            "frame": "base.html",
            "base_url": base_url,
            "policy": _POLICY,
            "version": VERSION,
            "here": "",
        }

    def __call__(self, template: str, path: str, /, **values: Any) -> tuple[str, str]:
        root = "../" * path.count("/")
        known = {**self._values, "root": root, "link": _PageLinks(root), "path": path, **values}
        return path, self._environment.get_template(template).render(known)


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters.update(template_filters())
    return environment


def template_filters() -> dict[str, Any]:
    """What the templates write texts of others with."""
    return {"words": sentence, "brief": _brief, "flags": _flags, "marks": _marks}


def home_values(content: Content, listed: Sequence[Page] | None = None) -> dict[str, Any]:
    """The search over all graph breaks. `listed`: in this order."""
    return {
        "index": search_index(content),
        "listed": content.ranked if listed is None else listed,
        "shown": None,
        "action": "",
        "asked": {},
    }


def entry_values(content: Content, page: Page) -> dict[str, Any]:
    """The page of one graph break."""
    example = page.example
    broken = fixed = Markup("")
    if example is not None:
        mark = _mark(example.broken, example.source, example.break_line)
        # Numbered as in its file, which is what the tool's own words name.
        first = example.break_line - mark + 1 if mark is not None else 1
        broken = python_lines(example.broken, mark and example.break_line, first)
        fixed = python_lines(example.fixed) if example.fixed else fixed
    fixes = _fixes(page)
    before, after = content.neighbours(page)
    return {
        "page": page,
        "before": before,
        "after": after,
        "broken": broken,
        "fixed": fixed,
        "notes": _notes(page, content),
        "fixes": fixes,
        "remedies": _remedies(page) if not fixes else [],
    }


def _notes(page: Page, content: Content) -> list[tuple[str, Markup]]:
    """Whose they are is said where there may be two. A note speaks of ids of more than one torch;
    to those that are not in this table there is no link."""

    def linked(found: re.Match[str]) -> str:
        return found[0] if found["id"].upper() in content.by_id else found["words"]

    found = []
    if page.own is not None:
        found.append(("Local note", note_html(_LINK.sub(linked, page.own.text))))
    if page.note is not None:
        label = "Comes with compilescope" if page.own is not None else ""
        found.append((label, note_html(_LINK.sub(linked, page.note.text))))
    return found


def _edit(page: Page, edit_url: str) -> str:
    """Where the note is edited, or made where there is none: GitHub wants another address then."""
    name = note_name(page.gb_id)
    if not page.notes and "/edit/" in edit_url:
        return f"{edit_url.replace('/edit/', '/new/', 1)}?filename={name}"
    return f"{edit_url}/{name}"


def _mark(broken: str, source: str, break_line: int) -> int | None:
    """The line of the broken part that is the marked one of the file."""
    lines = source.splitlines()
    wanted = lines[break_line - 1] if 0 < break_line <= len(lines) else None
    return next((n for n, line in enumerate(broken.splitlines(), 1) if line == wanted), None)


def _fixes(page: Page) -> list[tuple[str, str, Markup]]:
    """What `compilescope fix` tries for breaks of this kind: title, why it holds, a change that
    the tests make and prove."""
    keys = {page.gb_id}
    if page.category is not None:
        keys |= {f"category/{page.category.id}"}
        keys |= {rule.id for rule in break_rules() if rule.category == page.category.id}
    return [
        (fix.title, fix.why, diff_lines(file_diff(example.bad, example.good, "program.py")))
        for fix in fixes_answering(keys)
        if fix.kind != "scaffold"
        for example in fix.examples[:1]
    ]


def _remedies(page: Page) -> list[tuple[str, str]]:
    """In general words, where no fix speaks: the category's, and flags that PyTorch hints at."""
    flags = dict.fromkeys(flag for hint in page.entry.hints for flag in _FLAG.findall(hint))
    found = [
        ("Flag", f"`{flag}`, as PyTorch suggests. A flag can move the break elsewhere.")
        for flag in flags
    ]
    category = page.category
    if category is None:
        return found
    change = "Change" if "rewrite" in category.means else "Consider"
    found.insert(0, (change, category.fix))
    if "upgrade" in category.means:
        found.append(("Upgrade", "A newer PyTorch may trace it; if not, report it with the line."))
    return found


def _patterns(category_id: str) -> list[tuple[str, Markup, Markup]]:
    """What our rules recognise in this category, with programs that the tests run."""
    found = []
    for rule in break_rules():
        if rule.category == category_id and rule.examples:
            example = rule.examples[0]
            drawn = python_lines(example.good) if example.good else Markup("")
            found.append((rule.id.replace("-", " "), python_lines(example.bad), drawn))
    return found


def _versions(page_of: _PageWriter, content: Content) -> Iterator[tuple[str, str]]:
    before = None
    for step in content.history.steps:
        newer = bool(content.release) and release_key(step.torch) > release_key(
            content.release or "0"
        )
        path = f"version/{step.torch}.html"
        yield page_of("version.html", path, here="versions", step=step, before=before, newer=newer)
        before = step.torch


def _steps_here(content: Content) -> list[HistoryStep]:
    """Versions that brought an id of this table, the newest first."""
    brought = {page.since for page in content.pages}
    return [step for step in reversed(content.history.steps) if step.torch in brought]


def _brief(text: str) -> str:
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def _flags(config: dict[str, Any]) -> Markup:
    parts = (f"torch._dynamo.config.{name} = {value!r}" for name, value in config.items())
    return Markup(", ").join(Markup("<code>%s</code>") % part for part in parts)


def _marks(page: Page) -> str:
    """What the filters of the home page go by."""
    means = page.category.means if page.category else ()
    return str(escape(" ".join([*page.marks, *means])))


_FEED_VERSION = "https://jsonfeed.org/version/1.1"


def feed_text(content: Content, base_url: str) -> str:
    """Addresses are relative to the feed where the site has no address of its own."""
    feed: dict[str, Any] = {
        "version": _FEED_VERSION,
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
    return _printable_json(feed)


def _printable_json(value: Any) -> str:
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
