"""Build the documentation as a site: `make docs`.

    python docs/build.py [-o DIR]

The pages of docs/ and those that generated.py makes from the code are put together in a scratch
folder, where links to files that are no pages lead to the repository; Zensical builds the site from
there, with every link and anchor checked. The site opens from the disk and needs no network.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from generated import generated_pages

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
CONFIG = ROOT / "mkdocs.yml"
REPOSITORY = "https://github.com/compilescope/compilescope/blob/main"
ASSETS = ("*.png", "*.svg", "*.css", "*.js")
FETCHED = {"https://unpkg.com/iframe-worker/shim": "file_worker.js"}
"""What Zensical has its pages fetch -> what does that here."""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_CODE = re.compile(r"(^```.*?^```$|^ {4}[^\n]*$|`[^`\n]*`)", re.M | re.S)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.M | re.S)
"""What tests read; a reader of the site has no use for it."""
_UNPLACED = "More"


class DocsError(Exception):
    """The pages make no site; the message says why."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "site", metavar="DIR")
    output = parser.parse_args().output.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            put_together(Path(scratch))
        except DocsError as error:
            sys.exit(f"docs: {error}")
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"],
            cwd=scratch,
            env={**os.environ, "NO_COLOR": "1"},
        )
        if done.returncode:
            sys.exit(done.returncode)
        keep_at_home(Path(scratch) / "site")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(Path(scratch) / "site", output)
    print(f"docs: {output / 'index.html'}")


def put_together(folder: Path) -> None:
    """All that Zensical needs, in `folder`."""
    pages = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(DOCS.rglob("*.md"))
    }
    pages |= generated_pages()
    for place, text in pages.items():
        target = folder / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(outside_code(_COMMENT.sub("", text), place, pages), encoding="utf-8")
    for path in (path for pattern in ASSETS for path in DOCS.rglob(pattern)):
        target = folder / "docs" / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    settings, nav = CONFIG.read_text(encoding="utf-8").split("\nnav:\n")
    complete = completed(yaml.safe_load(nav), list(pages))
    # Whatever is JSON is YAML too.
    (folder / CONFIG.name).write_text(f"{settings}\nnav: {json.dumps(complete)}\n")


def keep_at_home(site: Path) -> None:
    """No page asks another machine for anything."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for far, near in FETCHED.items():
            text = text.replace(far, os.path.relpath(site / near, page.parent))
        page.write_text(text, encoding="utf-8")


def outside_code(text: str, place: str, pages: dict[str, str]) -> str:
    """The links of a page, but for those within code, as the site has them."""
    pieces = _CODE.split(text)
    led = _leading(place, pages)
    return "".join(
        piece if number % 2 else _LINK.sub(led, piece) for number, piece in enumerate(pieces)
    )


def _leading(place: str, pages: dict[str, str]) -> Callable[[re.Match[str]], str]:
    def lead(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(DOCS / Path(place).parent / match[1]))
        inside = target.relative_to(DOCS).as_posix() if target.is_relative_to(DOCS) else ""
        if inside in pages or (inside and any(target.match(asset) for asset in ASSETS)):
            return match[1]
        if target.is_relative_to(ROOT) and target.exists():
            return f"{REPOSITORY}/{target.relative_to(ROOT).as_posix()}"
        raise DocsError(f"{place} links to {match[1]}, which is not there")

    return lead


def completed(nav: list[dict[str, Any]], pages: list[str]) -> list[dict[str, Any]]:
    """The navigation with the pages that it does not name at the end of their parts."""
    parts = {name: items for part in nav for name, items in part.items()}
    named = _named(nav)
    if missing := [path for path in named if path not in pages]:
        raise DocsError(f"{CONFIG.name} names {', '.join(missing)}, which is not there")
    for page in pages:
        if page not in named:
            folder, _, rest = page.partition("/")
            _last_of(parts[folder.capitalize() if rest else next(iter(parts))]).append(page)
    return nav


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [path for item in items for path in _named(item)]


def _last_of(part: list[Any]) -> list[Any]:
    if not (isinstance(part[-1], dict) and _UNPLACED in part[-1]):
        part.append({_UNPLACED: []})
    last: list[Any] = part[-1][_UNPLACED]
    return last


if __name__ == "__main__":
    main()
