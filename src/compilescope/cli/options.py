"""Options and output that several commands share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from compilescope.cli.streams import put_json
from compilescope.settings import read_settings, wants_colour

if TYPE_CHECKING:
    from compilescope.registry.pages import Pages

F = TypeVar("F", bound=Callable[..., Any])


def dir_option(function: F) -> F:
    return click.option(
        "--dir",
        "home",
        type=click.Path(path_type=Path),
        help="Where runs are stored. [default: .compilescope, or COMPILESCOPE_DIR]",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def home_folder(given: Path | None) -> Path:
    return given if given is not None else read_settings().home


def in_home(given: Path | None) -> list[str]:
    """The option that names the same folder again, for a command to copy."""
    return [] if given is None else ["--dir", str(given)]


def registry_pages() -> Pages:
    """Where links to graph breaks lead: COMPILESCOPE_REGISTRY_SITE, the project's registry-site,
    or the site that was built on this machine."""
    from compilescope.errors import ToolError
    from compilescope.project import read_project
    from compilescope.registry.pages import find_pages

    try:
        wanted = read_project().registry_site
    except ToolError:
        wanted = None  # `check` says what is wrong with the file; a report can do without it.
    return find_pages(wanted)


def has_colour(stream: IO[str]) -> bool:
    wanted = wants_colour()
    return stream.isatty() if wanted is None else wanted


def report_width() -> int:
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 100))


def print_json(value: Any) -> None:
    put_json(value, indent=2)
