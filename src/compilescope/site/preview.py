"""A preview of the site on this machine: served from a folder, built anew when a source changes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.registry import cases, history, notes, symptoms, taxonomy
from compilescope.registry.downloads import current_file
from compilescope.registry.torch_copy import read_table
from compilescope.site.build import BuiltSite, build_site
from compilescope.site.content import SiteSources
from compilescope.site.file_server import FileServer
from compilescope.site.pages import ASSETS, TEMPLATES

_PAUSE_S = 0.5
"""Between two looks at the sources. Chosen: a saved file is seen at once."""
_REGISTRY = Path(notes.__file__).parent
_WATCHED = (".py", ".md", ".txt", ".toml", ".json", ".html", ".css", ".js", ".svg")
Stamp = dict[str, tuple[int, int]]


@contextmanager
def preview(
    folder: Path, sources: SiteSources, port: int, told: Callable[[BuiltSite | ToolError], None]
) -> Iterator[str]:
    """Build, then serve until the block ends; gives the address. `told` hears of each build."""
    # Taken before the build: a change that comes while it is built, or before the watcher's thread
    # has begun, is a change.
    before = stamp_of(sources)
    told(build_site(folder, sources))
    try:
        server = FileServer(folder, port)
    except OSError as error:
        raise ToolError(
            f"Cannot use port {port}: {error.strerror}.",
            "Choose another with --port; 0 picks a free one.",
        ) from None
    ended = threading.Event()
    watched = (folder, sources, told, ended, before)
    watcher = threading.Thread(target=_watch, args=watched, daemon=True)
    answering = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    answering.daemon = True
    try:
        watcher.start()
        answering.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        watcher.join()
        answering.join()


def _watch(
    folder: Path,
    sources: SiteSources,
    told: Callable[[BuiltSite | ToolError], None],
    ended: threading.Event,
    before: Stamp,
) -> None:
    while not ended.wait(_PAUSE_S):
        now = stamp_of(sources)
        if now == before:
            continue
        before = now
        for load in (
            cases.load_unreachable,
            history.load_history,
            symptoms.load_symptoms,
            taxonomy.load_taxonomy,
        ):
            load.cache_clear()
        try:
            told(build_site(folder, sources))
        except ToolError as error:
            # A file that is being written: what is served stays as it was.
            told(error)


def stamp_of(sources: SiteSources) -> Stamp:
    """When each file that the site is made from was changed, and how long it is."""
    folders = [_REGISTRY, TEMPLATES, ASSETS, sources.notes, sources.examples]
    files = [_table_file(sources.table), sources.history]
    found: Stamp = {}
    for place in (*folders, *files):
        if place is None:
            continue
        for path in sorted(place.rglob("*")) if place.is_dir() and place in folders else [place]:
            if path.suffix in _WATCHED or path in files:
                try:
                    status = path.stat()
                except OSError:
                    continue
                found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found


@functools.lru_cache(maxsize=8)
def _table_file(table: Path | None) -> Path | None:
    """The file to watch: a wheel or a table as it is, in a folder or an installation the table."""
    if table is not None and not table.is_dir():
        return table
    try:
        return Path(read_table(table).path) if table else current_file()
    except ToolError:
        return None
