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

from compilescope.cli.options import json_option, print_json
from compilescope.cli.progress import working
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.site.building import Built
    from compilescope.site.content import Sources

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
            "installed torch's]",
        ),
        click.option(
            "--notes",
            type=_FOLDER,
            metavar="DIR",
            help="Your own notes (gb0124.md), shown above ours.",
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
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@_sources_options
@json_option
def build(
    output: Path | None,
    base_url: str,
    edit_url: str,
    opened: bool,
    as_json: bool,
    **given: Path | None,
) -> None:
    """Build the registry as a static site: a page for each graph break, search and a dashboard.

    It opens from disk and can be published anywhere; it loads nothing from other servers.
    """
    _check_installed()
    from compilescope.registry.pages import default_site
    from compilescope.site.building import build_site

    folder = output if output is not None else default_site()
    with working("registry build", "building pages") as work:
        built = build_site(
            folder, _sources(given), base_url=base_url, edit_url=edit_url, progress=work.count
        )
    if as_json:
        print_json(_value(built))
    else:
        print(f"{_told(built)}: {folder / 'index.html'}")
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
    from compilescope.site.serving import preview

    def told(done: Built | ToolError) -> None:
        if isinstance(done, ToolError):
            print(
                f"compilescope: error: {done.message} Keeping the last good build.", file=sys.stderr
            )
        else:
            print(_told(done), file=sys.stderr)

    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        with (
            tempfile.TemporaryDirectory(prefix="compilescope-site-") as folder,
            preview(Path(folder) / "site", _sources(given), port, told) as address,
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
        signal.signal(signal.SIGTERM, before)


def _check_installed() -> None:
    for name in ("jinja2", "markupsafe", "markdown_it", "pygments"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise ToolError(
                f"The site needs the package {name}, which is not installed.",
                "Install it with: pip install 'compilescope[site]'",
            ) from None


def _sources(given: dict[str, Path | None]) -> Sources:
    from compilescope.site.content import Sources

    return Sources(**given)


def _told(built: Built) -> str:
    content = built.content
    size = f"{built.bytes / 1e6:.1f} MB"
    return f"{len(content.pages)} graph breaks from {content.name}, {built.files} files, {size}"


def _value(built: Built) -> dict[str, Any]:
    content = built.content
    return {
        "torch": content.table.torch,
        "file": content.table.path,
        "folder": str(built.folder),
        "files": built.files,
        "bytes": built.bytes,
        "removed": built.removed,
        "counts": content.counts,
    }


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print(f"Could not open a browser. Open {address} yourself.", file=sys.stderr)
