"""`compilescope runs`: the runs on disk; alone, it lists them."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

import click

from compilescope.apps.cli.commands import runs
from compilescope.apps.cli.options import FolderGroup

GROUP = "Share"


class _RunsGroup(FolderGroup):
    """Takes `runs --all` as `runs list --all`."""

    folder: ClassVar[ModuleType] = runs
    order: ClassVar[tuple[str, ...]] = ("list", "tag", "export", "import", "clean")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A shell that completes `runs ` wants the commands; it calls this without arguments.
        alone = not args and not ctx.resilient_parsing
        option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if alone or option else args)


@click.group(
    "runs",
    cls=_RunsGroup,
    short_help="List, tag, export, import and delete runs.",
)
def COMMAND() -> None:
    """List the runs on disk, tag them, pack one into a file, import one, delete them. `compilescope
    runs` alone is `compilescope runs list`, and takes its options."""
