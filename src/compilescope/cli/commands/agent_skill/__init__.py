"""`compilescope agent-skill`: an instruction file with which a coding agent can use this tool."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.options import write_whole
from compilescope.errors import ToolError

GROUP = "Share"


@click.command(
    "agent-skill", short_help="Print an instruction file that teaches a coding agent this tool."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to FILE, for example SKILL.md in your agent's skills folder.",
)
@click.option("--force", is_flag=True, help="For --output: overwrite FILE.")
def COMMAND(output: Path | None, force: bool) -> None:
    """Print a Markdown file with front matter (name, description): when to use compilescope, the
    commands, their JSON keys and exit statuses, and what to do with each verdict."""
    from compilescope.cli.commands.agent_skill.text import skill_text

    if output is None:
        if force:
            raise ToolError("--force needs --output.")
        sys.stdout.write(skill_text())
        return
    if output.exists() and not force:
        raise ToolError(f"{output} already exists.", hint="Use --force to overwrite it.")
    if not output.absolute().parent.is_dir():
        raise ToolError(f"Cannot write {output}: there is no folder {output.parent}.")
    write_whole(output, skill_text())
    print(output)
