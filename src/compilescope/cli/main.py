"""The entry point, and the one `try` around everything."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys
from types import ModuleType

import click

from compilescope.cli import commands
from compilescope.errors import ToolError
from compilescope.version import VERSION

GROUPS: dict[str, tuple[str, ...]] = {
    "Diagnose": ("run", "show", "explain", "compare", "sweep", "logs"),
    "Fix": ("fix", "minify"),
    "Numbers": ("diff", "bench"),
    "Hardware": ("preflight", "devices"),
    "Gate": ("check",),
    "Share": ("report", "serve", "export", "import", "list", "tag", "clean"),
    "Learn": ("learn", "demo", "registry"),
}
"""The headings of `--help` in the order in which a user meets them. A command names its own in
`GROUP`; here is only the order within each."""


class _Group(click.Group):
    """Commands under headings, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = {info.name for info in pkgutil.iter_modules(commands.__path__)}
        ordered = [name for group in GROUPS.values() for name in group if name in names]
        return ordered + sorted(names - set(ordered))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = _module(cmd_name).COMMAND
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        grouped: dict[str, list[tuple[str, str]]] = {heading: [] for heading in GROUPS}
        names = self.list_commands(ctx)
        widest = max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows = grouped.setdefault(_module(name).GROUP, [])
                rows.append((name.ljust(widest), command.get_short_help_str(100)))
        for heading, rows in grouped.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{commands.__name__}.{name}")


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A debugger for torch.compile: run a program unmodified and see every graph break, "
    "recompile and fallback to eager, and how to fix it.",
    epilog="\b\nStart with:    compilescope run your_script.py\nIn a browser:  compilescope serve",
)
@click.version_option(VERSION, prog_name="compilescope")
@click.option("-v", "--verbose", count=True, help="Log more; -vv logs everything.")
def group(verbose: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(name)s: %(message)s")


def main() -> None:
    try:
        status = group(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except ToolError as error:
        print(f"compilescope: error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print("compilescope: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        sys.stderr.close()
        sys.exit(141)


if __name__ == "__main__":
    main()
