"""The entry point, and the one `try` around everything."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys

import click

from compilescope.cli import commands
from compilescope.errors import ToolError
from compilescope.version import VERSION

_ORDER = (
    "run",
    "show",
    "explain",
    "report",
    "compare",
    "check",
    "logs",
    "diff",
    "minify",
    "fix",
    "preflight",
    "devices",
    "list",
    "analyze",
    "registry",
    "export",
    "import",
    "clean",
)


class _Group(click.Group):
    """Commands in the order in which a user meets them, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = {info.name for info in pkgutil.iter_modules(commands.__path__)}
        return [name for name in _ORDER if name in names] + sorted(names - set(_ORDER))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = module.COMMAND
        return command


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A debugger for torch.compile: run a program unmodified and see every place where "
    "compilation was lost.",
    epilog="Start with:  compilescope run your_script.py",
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
