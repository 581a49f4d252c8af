"""Pages of the original registry site, for what people wrote into them.

A page (`gb/gbNNNN.md`) is generated but for what stands between two HTML comments, ADDITIONAL
INFORMATION START and END. That is kept byte for byte, from the line after START up to END. Beside
the notes, `.imported.json` remembers what each import wrote: a note that nobody has edited since
follows its page, any other is left alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click
import msgspec

from compilescope.apps.cli.commands.registry.output import print_blocks
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.downloads import current_registry
from compilescope.knowledge.registry.history import load_history
from compilescope.knowledge.registry.notes import (
    BIGGEST_BYTES,
    default_notes,
    id_of,
    note_name,
    write_note,
)
from compilescope.knowledge.registry.taxonomy import load_taxonomy
from compilescope.report.blocks import Facts, Span
from compilescope.report.blocks import words as spans

IMPORTED = ".imported.json"
"""Beside notes: what the last import wrote."""

Fate = Literal[
    "imported",
    "updated",
    "replaced",
    "same",
    "kept",
    "empty",
    "unmarked",
    "unreadable",
    "unknown",
]
_PLACES = ("docs/gb", "gb", "gbid_directory/gb", "GBID directory/gb", ".")
"""Of the pages in a checkout, as the site has it now and had it before."""
_BIGGEST_PAGE = 8 * BIGGEST_BYTES
"""Chosen: a page is markup around a note."""


class ImportedPage(msgspec.Struct, frozen=True):
    """What became of one page."""

    gb_id: str
    page: str
    fate: Fate
    """`updated`: the page changed since its last import, the note didn't; `kept`: a note of other
    words is there and was left alone; `unmarked`: the page has no markers; `unknown`: no graph
    break of the table has the id; `unreadable`: it could not be read, is too long, or not UTF-8."""
    note: str = ""
    """The file of the note, where there is one now."""


def import_pages(
    folder: Path, notes: Path, known: frozenset[str], *, force: bool = False
) -> list[ImportedPage]:
    """Bring what people wrote on the pages of `folder` into notes; in order of id."""
    if not folder.is_dir():
        raise ToolError(f"There is no folder {folder}.")
    pages = dict(_pages(folder))
    if not pages:
        raise ToolError(
            f"{folder} contains no graph-break pages.",
            "Pass a checkout of the site, or the folder with gb0124.md.",
        )
    written = _written(notes)
    done = [_import(g, pages[g], notes, known, written, force=force) for g in sorted(pages)]
    if any(page.fate in ("imported", "updated", "replaced", "same") for page in done):
        _remember(notes, written)
    return done


def added_words(page: bytes) -> bytes | None:
    """What stands between the markers of a page; None where it has none."""
    start = end = None
    for comment in _comments(page):
        words = set(re.findall(rb"[a-z]+", page[comment].lower()))
        if not _about(words):
            continue
        if start is None and b"start" in words:
            start = comment.stop
        elif start is not None and b"end" in words:
            end = comment.start
            break
    if start is None or end is None:
        return None
    inside = page[start:end]
    for line_end in (b"\r\n", b"\n"):
        if inside.startswith(line_end):
            inside = inside[len(line_end) :]
            break
    return inside


def _comments(page: bytes) -> Iterator[slice]:
    """Where the HTML comments of a page stand. Plain scans: no page makes them run away."""
    start = page.find(b"<!--")
    while start >= 0:
        end = page.find(b"-->", start + 4)
        if end < 0:
            return
        yield slice(start, end + 3)
        start = page.find(b"<!--", end + 3)


def _about(words: set[bytes]) -> bool:
    """Is a comment about additional information, or about nothing else that it names?"""
    return b"additional" in words or b"custom" in words or words in ({b"start"}, {b"end"})


def _pages(folder: Path) -> Iterator[tuple[str, Path]]:
    for place in (folder / name for name in _PLACES):
        found = [(id_of(path), path) for path in sorted(place.glob("*.md"))]
        named = [(gb_id, path) for gb_id, path in found if gb_id is not None]
        if named:
            yield from named
            return


def _import(
    gb_id: str,
    page: Path,
    notes: Path,
    known: frozenset[str],
    written: dict[str, str],
    *,
    force: bool,
) -> ImportedPage:
    """One page. `written` is what each import wrote, by id; it learns what this one writes."""
    data = _read(page)
    if data is None:
        return ImportedPage(gb_id, str(page), "unreadable")
    words = added_words(data)
    if words is None:
        return ImportedPage(gb_id, str(page), "unmarked")
    if not words.strip():
        return ImportedPage(gb_id, str(page), "empty")
    if len(words) > BIGGEST_BYTES or not _is_text(words):
        return ImportedPage(gb_id, str(page), "unreadable")
    if gb_id not in known:
        return ImportedPage(gb_id, str(page), "unknown")
    target = notes / note_name(gb_id)
    fate = _fate(target, words, written.get(gb_id), force=force)
    if fate not in ("same", "kept"):
        _write(target, words)
    if fate != "kept":
        written[gb_id] = _mark(words)
    return ImportedPage(gb_id, str(page), fate, str(target))


def _fate(target: Path, words: bytes, last: str | None, *, force: bool) -> Fate:
    """What becomes of the note at `target`. `last`: the mark of what an import wrote there."""
    if not target.exists():
        return "imported"
    now = target.read_bytes()
    if now == words:
        return "same"
    if last == _mark(now):
        return "updated"
    return "replaced" if force else "kept"


def _mark(words: bytes) -> str:
    return hashlib.sha256(words).hexdigest()[:16]


def _written(notes: Path) -> dict[str, str]:
    """By id. A file that can't be read only means that no note follows its page."""
    try:
        return msgspec.json.decode((notes / IMPORTED).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _remember(notes: Path, written: dict[str, str]) -> None:
    if written != _written(notes):
        _write(notes / IMPORTED, msgspec.json.encode(dict(sorted(written.items()))))


def _read(page: Path) -> bytes | None:
    try:
        with page.open("rb") as stream:
            data = stream.read(_BIGGEST_PAGE + 1)
    except OSError:
        return None
    return data if len(data) <= _BIGGEST_PAGE else None


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _write(target: Path, words: bytes) -> None:
    try:
        write_note(target, words)
    except OSError as error:
        raise ToolError(f"Cannot write {target}: {error.strerror}.") from None


_FATES: dict[Fate, str] = {
    "imported": "imported",
    "updated": "updated: its page changed since the last import",
    "replaced": "replaced (--force)",
    "same": "already imported",
    "kept": "skipped: you have a different note (--force replaces it)",
    "empty": "skipped: nobody has added text to them",
    "unmarked": "skipped: no START and END markers",
    "unreadable": "skipped: too long, or not UTF-8 text",
    "unknown": "skipped: no torch we know has this ID",
}
_QUIET: tuple[Fate, ...] = ("same", "empty", "unmarked")
"""Of which most pages are: they are counted."""


@click.command("import", short_help="Import the notes of PyTorch's public registry site.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--notes",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for notes. [default: yours, where the dashboard saves them]",
)
@click.option("--force", is_flag=True, help="Replace existing notes.")
def COMMAND(folder: Path, notes: Path | None, force: bool) -> None:
    """Import what people wrote on the pages of PyTorch's public registry site, from a checkout of
    its repository (meta-pytorch/compile-graph-break-site) in DIR.

    The text between START and END becomes a note, byte for byte. A note of yours is never
    overwritten without --force; one that an earlier import wrote follows its page.
    """
    ids = {gb_id for category in load_taxonomy() for gb_id in category.ids}
    ids |= set(load_history().titles)
    with suppress(ToolError):
        ids |= {entry.gb_id for entry in current_registry()}
    target = notes or default_notes()
    done = import_pages(folder, target, frozenset(ids), force=force)
    counts = Counter(page.fate for page in done)
    rows = [(p.gb_id, spans(_FATES[p.fate])) for p in done if p.fate not in _QUIET]
    for fate in _QUIET:
        if counts[fate]:
            noun = "page" if counts[fate] == 1 else "pages"
            rows.append((f"{counts[fate]} {noun}", spans(Span(_FATES[fate], "dim"))))
    brought = counts["imported"] + counts["updated"] + counts["replaced"]
    print_blocks(f"Imported {brought} of {len(done)} pages", str(target), [Facts(tuple(rows))])
