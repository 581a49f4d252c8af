"""`compilescope serve`: the dashboard."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.apps.cli.options import dir_option, home_folder
from compilescope.base.errors import ToolError
from compilescope.base.settings import config_folder, state_folder

if TYPE_CHECKING:
    from compilescope.apps.dashboard.server.options import Options

GROUP = "Share"
_PACKAGES = ("starlette", "uvicorn", "sse_starlette", "python_multipart", "markdown_it")
_FOLDER = click.Path(path_type=Path)
_NAME = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


@click.command("serve", short_help="Serve the dashboard: watch, run and compare in a browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=8718, show_default=True)
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@click.option(
    "--allow",
    "folders",
    multiple=True,
    type=_FOLDER,
    metavar="DIR",
    help="A folder that programs may be started from; repeatable. [default: the current one]",
)
@click.option("--private", is_flag=True, help="Ask for the token even to look at runs.")
@click.option("--new-token", is_flag=True, help="Replace the token: all browsers must sign in.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. With one that others can reach, every page needs the token.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Another name that browsers use for this server, such as that of a proxy; repeatable. "
    "Every page then needs the token.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many started jobs may run at once.",
)
@click.option(
    "--notes",
    type=_FOLDER,
    metavar="DIR",
    help="Your own notes on graph breaks, which pages can edit. [default: compilescope/notes in "
    "your configuration folder]",
)
@dir_option
def COMMAND(
    port: int,
    opened: bool,
    folders: tuple[Path, ...],
    private: bool,
    new_token: bool,
    host: str,
    names: tuple[str, ...],
    jobs: int,
    notes: Path | None,
    home: Path | None,
) -> None:
    """Serve the dashboard on this machine until Ctrl-C.

    The address it prints signs a browser in. Without its token, other users of this machine can
    look at the runs (unless --private), and nothing more.
    """
    _check_installed()
    from compilescope.apps.dashboard.server.app import serve
    from compilescope.apps.dashboard.server.options import BrowserLimits, Options

    kept = _home(home)
    options = Options(
        home=kept,
        token=_token(kept, new_token),
        once=secrets.token_urlsafe(32) if opened else "",
        folders=tuple(_existing(folder) for folder in folders or (Path.cwd(),)),
        host=host,
        port=port,
        hosts=_names(names),
        private=private,
        notes=_notes(notes),
        limits=BrowserLimits(jobs=jobs),
    )
    serve(options, lambda address: _tell(options, address))
    print("Stopped.", file=sys.stderr)


def _tell(options: Options, address: str) -> None:
    from compilescope.apps.dashboard.server.options import is_loopback

    print(f"Serving {address} until Ctrl-C.", flush=True)
    if not is_loopback(options.host):
        print(
            "Other machines may be able to connect, without encryption. "
            "Every page needs the token.",
            file=sys.stderr,
        )
    if options.once:
        _open(address.replace(options.token, options.once), address)


def _check_installed() -> None:
    for name in _PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise ToolError(
                f"The dashboard needs the package {name}, which is not installed.",
                hint='Install it with: pip install "compilescope[dashboard]"',
            )


def _home(given: Path | None) -> Path:
    """It need not exist before the first run, unless it was named."""
    home = home_folder(given).absolute()
    hint = "`compilescope run --dir DIR SCRIPT` stores runs; without --dir, in .compilescope."
    return _existing(home, hint) if given is not None or home.exists() else home


def _existing(folder: Path, hint: str = "") -> Path:
    try:
        found = folder.resolve(strict=True)
        with os.scandir(found):
            return found
    except FileNotFoundError:
        raise ToolError(f"There is no folder {folder}.", hint=hint) from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "it leads in a circle"
        raise ToolError(f"Cannot read the folder {folder}: {reason}.") from None


def _notes(given: Path | None) -> Path:
    """Made when the first note is written."""
    notes = (given if given is not None else config_folder() / "notes").absolute()
    return _existing(notes) if notes.exists() else notes


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ToolError(
                f"{name!r} is not the name of a host.",
                hint="Give it without http://, as in --name gpu-box or --name gpu-box:9000.",
            )
    return names


def _token(home: Path, new: bool) -> str:
    """The same as before, so that open pages and links outlive a restart."""
    from compilescope.record.token_file import keep_token, token_path

    path = token_path(state_folder(), home)
    try:
        return keep_token(path, new=new)
    except OSError as error:
        print(
            f"Cannot keep the token in {path}: {error.strerror}. It ends with this server.",
            file=sys.stderr,
        )
        return secrets.token_urlsafe(32)


def _open(address: str, instead: str) -> None:
    """The command line of a browser can be seen by others: its token works once."""
    import webbrowser

    if not webbrowser.open(address):
        print(f"Could not open a browser. Open {instead} yourself.", file=sys.stderr)
