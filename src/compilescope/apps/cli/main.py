"""The entry point: finds the command, runs it, and ends with a sentence and a status on errors."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import ClassVar, NoReturn

import click

from compilescope.apps.cli import commands
from compilescope.apps.cli.options import FolderGroup
from compilescope.apps.cli.streams import guard_streams, leave, open_streams, say, settle_streams
from compilescope.base.errors import ToolError, as_limit
from compilescope.base.processes.child_signal import hear_children
from compilescope.base.processes.deadline import begin_command
from compilescope.base.settings import AUTO_RUN, JOURNALS, set_variable, state_folder
from compilescope.base.version import VERSION

GROUPS: dict[str, tuple[str, ...]] = {
    "Diagnose": ("run", "show", "explain", "compare", "sweep", "logs"),
    "Fix": ("fix", "tune", "minify"),
    "Numbers": ("diff", "bench"),
    "Hardware": ("preflight", "devices"),
    "Gate": ("check", "verify"),
    "Share": ("report", "serve", "runs", "mcp", "agent-skill"),
    "Learn": ("learn", "demo", "registry"),
}
"""The headings of `--help` in the order in which a user meets them. A command names its own in
`GROUP`; here is only the order within each."""


OLD_NAMES = {name: "runs" for name in ("clean", "export", "import", "list", "tag")}
"""Commands that were of their own and now belong to a group. Both names work; help has the new."""


class _CommandGroup(FolderGroup):
    """Commands under headings."""

    folder: ClassVar[ModuleType] = commands
    order: ClassVar[tuple[str, ...]] = tuple(name for names in GROUPS.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OLD_NAMES:
            group = super().get_command(ctx, OLD_NAMES[cmd_name])
            return group.get_command(ctx, cmd_name) if isinstance(group, click.Group) else None
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        grouped: dict[str, list[tuple[str, str]]] = {heading: [] for heading in GROUPS}
        names = self.list_commands(ctx)
        widest = max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows = grouped.setdefault(self.import_command(name).GROUP, [])
                rows.append((name.ljust(widest), command.get_short_help_str(100)))
        for heading, rows in grouped.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


@click.group(
    cls=_CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A debugger for torch.compile: run a program unmodified and see every graph break, "
    "recompile and fallback to eager, and how to fix it.",
    epilog="\b\nStart with:    compilescope run your_script.py\nIn a browser:  compilescope serve",
)
@click.version_option(VERSION, prog_name="compilescope")
@click.option("-v", "--verbose", count=True, help="Log more; -vv logs everything.")
def group(verbose: int) -> None:
    if verbose:
        import logging  # Most commands log nothing, and importing it is a twentieth of a small one.

        level = logging.INFO if verbose == 1 else logging.DEBUG
        logging.basicConfig(level=level, format="%(name)s: %(message)s")


def _hints(error: ToolError) -> list[str]:
    """What to do; where torch is missing, the other Python that has it comes first."""
    if "torch" in error.message:
        from compilescope.apps.cli.interpreters import missing_torch

        missing = missing_torch(takes_python=_takes_python())
        if missing is not None:
            return list(missing)
    return [error.hint] if error.hint else []


def _takes_python() -> bool:
    """Has the command that was called the option `--python`?"""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    command = group.get_command(click.Context(group), words[0]) if words else None
    return command is not None and any("--python" in each.opts for each in command.params)


def _take_back_interrupted() -> None:
    """Files that a command was replacing when it was killed are what they were, as a set."""
    try:
        if not os.listdir(state_folder() / JOURNALS):
            return
    except OSError:
        return
    from compilescope.base.processes.cleaner import restore_interrupted

    for path in restore_interrupted():
        words = "an earlier command was killed before it had written all of its files"
        say(f"compilescope: restored {path}: {words}")


def _folder_exists() -> bool:
    """The current one. Where it was deleted, whoever asks for its name fails."""
    try:
        os.getcwd()
        return True
    except FileNotFoundError:
        return False


def _fail(error: ToolError) -> NoReturn:
    say(f"compilescope: error: {error.message}", *(f"  {line}" for line in _hints(error)))
    settle_streams()
    leave(error.exit_code)


def main() -> None:
    open_streams()
    hear_children()
    # Neither a command nor what it starts is a user's plain program.
    set_variable(AUTO_RUN, "0")
    guard_streams()
    begin_command()
    try:
        _take_back_interrupted()
        status = group(standalone_mode=False)
        leave(status if isinstance(status, int) else 0)
    except ToolError as error:
        _fail(error)
    except click.ClickException as error:
        with suppress(OSError):
            error.show(sys.stderr)
        settle_streams()
        leave(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("compilescope: stopped")
        leave(130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        settle_streams()
        leave(141)
    except FileNotFoundError:
        if _folder_exists():
            raise
        hint = "  Change to a folder that exists and run the command again."
        say("compilescope: error: The current folder was deleted.", hint)
        settle_streams()
        leave(2)
    except (OSError, RuntimeError) as error:
        limit = as_limit(error)
        if limit is None:
            raise
        _fail(limit)


if __name__ == "__main__":
    main()
