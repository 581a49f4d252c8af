"""`compilescope registry build` and `serve`: the registry as a site."""

from __future__ import annotations

import importlib
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compilescope.apps.cli.options import json_option, print_json
from compilescope.apps.cli.progress import on_end_signals, working
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.report.site.build import BuiltSite
    from compilescope.report.site.content import SiteSources

F = TypeVar("F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path)


def _sources_options(function: F) -> F:
    options = (
        click.option(
            "--torch-registry",
            "--file",
            "table",
            type=_FOLDER,
            metavar="SOURCE",
            help="A graph_break_registry.json, a torch wheel or a checkout. [default: the "
            "downloaded table, else the installed torch's]",
        ),
        click.option(
            "--notes",
            type=_FOLDER,
            metavar="DIR",
            help="Your own notes (gb0124.md), shown above ours. [default: those written in the "
            "dashboard or imported]",
        ),
        click.option("--examples", type=_FOLDER, metavar="DIR", help="Your own examples."),
        click.option("--history", type=_FOLDER, metavar="FILE", help="Your own history."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("build", short_help="Build the registry as a static site.")
@click.option(
    "-o",
    "--output",
    type=_FOLDER,
    metavar="DIR",
    help="Output folder. [default: the user's cache, where reports look for it]",
)
@click.option("--base-url", default="", metavar="URL", help="URL the site will be published at.")
@click.option("--edit-url", default="", metavar="URL", help="URL for editing notes.")
@click.option(
    "--own-notes/--no-own-notes",
    default=None,
    help="Include the notes written in the dashboard or imported. [default: yes, unless "
    "--base-url says that the site will be published]",
)
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@_sources_options
@json_option
def build(
    output: Path | None,
    base_url: str,
    edit_url: str,
    own_notes: bool | None,
    opened: bool,
    as_json: bool,
    **given: Path | None,
) -> None:
    """Build the registry as a static site: a page for each graph break, search and a dashboard.

    It opens from disk and can be published anywhere; it loads nothing from other servers.
    """
    _check_installed()
    from compilescope.knowledge.registry.pages import default_site
    from compilescope.report.site.build import build_site

    if given.get("notes") is not None and own_notes is not None:
        raise ToolError("--notes already says which notes to include.", "Pass one of the two.")
    folder = output if output is not None else default_site()
    sources = _sources(given, own=not base_url if own_notes is None else own_notes)
    with working("registry build", "building pages") as work:
        built = build_site(
            folder, sources, base_url=base_url, edit_url=edit_url, progress=work.count
        )
    if as_json:
        print_json(_value(built))
    else:
        print(f"{_told(built)}: {folder / 'index.html'}")
    if given.get("notes") is None and own_notes is None:
        _say_whose_notes(built, output, published=bool(base_url))
    if opened:
        _open((folder / "index.html").absolute().as_uri())


@click.command("serve", short_help="Preview the site, rebuilt on each change.")
@click.option("--port", type=click.IntRange(0, 65535), default=8717, show_default=True)
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@_sources_options
def serve(port: int, opened: bool, **given: Path | None) -> None:
    """Preview the site on this machine until Ctrl-C. It is rebuilt when the table, a note, an
    example or a template changes; reload the page to see it."""
    _check_installed()
    from compilescope.base.processes.cleaner import claimed
    from compilescope.report.site.preview import preview

    def told(done: BuiltSite | ToolError) -> None:
        if isinstance(done, ToolError):
            print(
                f"compilescope: error: {done.message} Keeping the last good build.", file=sys.stderr
            )
        else:
            print(_told(done), file=sys.stderr)

    ended = threading.Event()
    before = on_end_signals(lambda _: ended.set())
    try:
        with (
            tempfile.TemporaryDirectory(prefix="compilescope-site-") as folder,
            claimed(folder),
            preview(Path(folder) / "site", _sources(given, own=True), port, told) as address,
        ):
            print(f"Serving {address} until Ctrl-C.", flush=True)
            if opened:
                _open(address)
            try:
                # In steps: Windows hears no Ctrl-C inside a wait without an end.
                while not ended.wait(1.0):
                    pass
            except KeyboardInterrupt:
                print("Stopped.", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_installed() -> None:
    for name in ("jinja2", "markupsafe", "markdown_it"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise ToolError(
                f"The site needs the package {name}, which is not installed.",
                "Install it with: pip install 'compilescope[site]'",
            ) from None


def _sources(given: dict[str, Path | None], *, own: bool) -> SiteSources:
    """`own`: with the user's own notes where no other folder is given."""
    from compilescope.knowledge.registry.notes import default_notes
    from compilescope.report.site.content import SiteSources

    if own and given.get("notes") is None and default_notes().is_dir():
        given = {**given, "notes": default_notes()}
    return SiteSources(**given)


def _say_whose_notes(built: BuiltSite, output: Path | None, *, published: bool) -> None:
    """Notes may be private, and a folder that was asked for is often one to publish."""
    from compilescope.knowledge.registry.notes import default_notes, own_notes

    place = default_notes()
    if published:
        number = len(own_notes(place))
        text = f"Your notes ({number}) in {place} are left out; --own-notes includes them."
    else:
        number = _own(built)
        text = f"It contains your notes ({number}) from {place}; --no-own-notes leaves them out."
    if number and (published or output is not None):
        print(text, file=sys.stderr)


def _own(built: BuiltSite) -> int:
    return sum(page.own is not None for page in built.content.pages)


def _told(built: BuiltSite) -> str:
    content = built.content
    size = f"{built.bytes / 1e6:.1f} MB"
    own = _own(built)
    notes = f", {own} {'note' if own == 1 else 'notes'} of yours" if own else ""
    return (
        f"{len(content.pages)} graph breaks from {content.name}{notes}, {built.files} files, {size}"
    )


def _value(built: BuiltSite) -> dict[str, Any]:
    content = built.content
    return {
        "torch": content.table.torch,
        "file": content.table.path,
        "folder": str(built.folder),
        "files": built.files,
        "bytes": built.bytes,
        "removed": built.removed,
        "own_notes": _own(built),
        "counts": content.counts,
    }


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print(f"Could not open a browser. Open {address} yourself.", file=sys.stderr)
