"""Writes the site into a folder, and only into one that is empty or that holds a site of ours.

A list of the files (`.compilescope-site`) lies beside them: what a later build no longer has is
removed, what somebody else put there is never touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.pages import folder_address
from compilescope.report.site.content import Content, SiteSources, check_sources, gather
from compilescope.report.site.pages import draw_site

MANIFEST = ".compilescope-site"
_SAFE = re.compile(r"(?:[\w-]+(?:\.[\w-]+)*/)*[\w-]+(?:\.[\w-]+)*")


@dataclass(frozen=True)
class BuiltSite:
    """What a build did."""

    folder: Path
    content: Content
    files: int
    bytes: int
    removed: int


def build_site(
    folder: Path,
    sources: SiteSources | None = None,
    *,
    base_url: str = "",
    edit_url: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> BuiltSite:
    """Make the site. `progress` is called with how many pages are done, and of how many."""
    sources = sources or SiteSources()
    check_sources(sources)
    base_url = folder_address(base_url, "--base-url") if base_url else ""
    edit_url = folder_address(edit_url, "--edit-url") if edit_url else ""
    before = _files_before(folder)
    content = gather(sources)
    total = len(content.pages) + len(content.taxonomy.categories) + len(content.history.steps)
    files = {".nojekyll": ""}
    for number, (path, text) in enumerate(draw_site(content, base_url, edit_url)):
        if not _SAFE.fullmatch(path):
            raise ToolError(f"The site would contain a file named {path[:60]!r}.")
        files[path] = text
        if progress is not None:
            progress(min(number, total), total)
    size = 0
    names = sorted(files)
    # The list first: whatever is interrupted, the next build knows the files as its own.
    _write(folder / MANIFEST, _listed(sorted({*names, *before})))
    for path in names:
        size += _write(folder / path, files[path])
    removed = _remove(folder, [path for path in before if path not in files])
    _write(folder / MANIFEST, _listed(names))
    return BuiltSite(folder, content, len(files), size, removed)


def _files_before(folder: Path) -> list[str]:
    """The files of an earlier build; refuses a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise ToolError(f"Cannot write {folder}: it is a file.")
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ToolError(f"Cannot write {folder}: {error.strerror}.") from None
    if MANIFEST not in names:
        if names:
            raise ToolError(
                f"{folder} contains files that are not a compilescope site.",
                "Pass an empty or new folder with -o.",
            )
        return []
    try:
        lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ToolError(f"{folder / MANIFEST} could not be read: {error}.") from None
    return [line for line in lines if _SAFE.fullmatch(line) or line == ".nojekyll"]


def _listed(names: list[str]) -> str:
    return "".join(f"{name}\n" for name in names)


def _write(path: Path, text: str) -> int:
    """Nothing is written where the same bytes already are: a server's watchers see real changes."""
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            try:
                part.write_bytes(data)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
    return len(data)


def _remove(folder: Path, names: list[str]) -> int:
    removed = 0
    for name in names:
        path = folder / PurePosixPath(name)
        if path.is_file():
            path.unlink()
            removed += 1
            if path.parent != folder and not any(path.parent.iterdir()):
                path.parent.rmdir()
    return removed
