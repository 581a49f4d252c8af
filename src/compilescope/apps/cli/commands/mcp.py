"""`compilescope mcp`: the commands as tools for an agent."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click

from compilescope.apps.cli.options import dir_option, home_folder
from compilescope.apps.cli.streams import leave, settle_streams
from compilescope.base.errors import ToolError
from compilescope.base.settings import current_environment

GROUP = "Share"


@click.command("mcp", short_help="Serve the commands as tools for a coding agent (MCP).")
@click.option(
    "--allow",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder that programs may be run from; repeatable. [default: the current one]",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many calls may run programs at once.",
)
@click.option(
    "--python",
    default="",
    metavar="PATH",
    help="Run programs with this Python or virtual environment: one that has torch.",
)
@dir_option
def COMMAND(folders: tuple[Path, ...], jobs: int, python: str, home: Path | None) -> None:
    """Serve the Model Context Protocol on stdin and stdout until the client goes away.

    An agent's client starts it; docs/guides/mcp.md has the configuration. Its tools run, show,
    explain, fix, verify, tune, minify, diff and compare programs in the allowed folders, and write
    to the runs folder alone, but for those whose names say that they write files.
    """
    _check_installed()
    from compilescope.apps.cli.progress import ended_in_order
    from compilescope.apps.mcp.server import ServerOptions, serve

    options = ServerOptions(
        home=home_folder(home).absolute(),
        folders=tuple(_existing(folder) for folder in folders or (Path.cwd(),)),
        around=dict(current_environment()),
        python=python,
        jobs=jobs,
    )
    if sys.stdin is not None and sys.stdin.isatty():
        print("Waiting for an MCP client on stdin; Ctrl-C ends it.", file=sys.stderr)
    with ended_in_order():
        status = serve(options)
    settle_streams()
    leave(status)


def _check_installed() -> None:
    hint = 'Install it with: pip install "compilescope[mcp]"'
    if importlib.util.find_spec("mcp") is None:
        raise ToolError("The server needs the package mcp, which is not installed.", hint=hint)
    if importlib.util.find_spec("mcp.server.mcpserver") is None:
        raise ToolError("The server needs a later version of the package mcp.", hint=hint)


def _existing(folder: Path) -> Path:
    try:
        found = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        raise ToolError(f"There is no folder {folder}.") from None
    if not found.is_dir():
        raise ToolError(f"{folder} is not a folder.")
    return found
