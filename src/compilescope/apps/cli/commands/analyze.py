"""`compilescope analyze`: the old name of `show --section`."""

from __future__ import annotations

from pathlib import Path

import click

from compilescope.apps.cli.commands import show
from compilescope.apps.cli.options import RUN_NAME, dir_option, json_option
from compilescope.apps.cli.output import all_option

GROUP = "Diagnose"


@click.command("analyze", hidden=True, short_help="The old name of `show --section`.")
@click.argument("run", required=False, type=RUN_NAME)
@click.option(
    "--type",
    "side",
    type=click.Choice(["guards", "graphs", "constraints", "summary"]),
    default="summary",
    help="The section. [default: summary]",
)
@all_option
@json_option
@dir_option
@click.pass_context
def COMMAND(
    ctx: click.Context,
    run: str | None,
    side: str,
    everything: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """The old name of `compilescope show --section`; `--type summary` is `compilescope show`.

    guards: what every call checks, by kind and by the line of yours that needs it.
    graphs: what Dynamo handed to the backend. constraints: what a backend's device rejected during
    the run; `preflight --run RUN --device NAME` checks its graphs again.
    """
    section = None if side == "summary" else side
    ctx.invoke(
        show.COMMAND, run=run, section=section, everything=everything, as_json=as_json, home=home
    )
