"""Groups of commands that know what a misspelt one was meant to be."""

from __future__ import annotations

import click


class SuggestingGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            import difflib

            names = self.list_commands(ctx)
            near = difflib.get_close_matches(args[0].lower(), names, n=3)
            guess = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{guess}")
        return super().resolve_command(ctx, args)
