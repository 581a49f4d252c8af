"""`minify --check`: any file, by a command of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilescope.apps.cli.commands.minify.shared import (
    INTERRUPTED,
    Output,
    measured,
    progress_bar,
    say_how,
)
from compilescope.apps.cli.options import print_json
from compilescope.base.errors import ToolError
from compilescope.base.outputs import write_output
from compilescope.base.processes.deadline import clock


def minify_by_check(file: Path, output: Output, given: dict[str, Any]) -> int:
    from compilescope.change.minify.check_command import CommandCheck, read_any, reduce_file
    from compilescope.change.minify.engine import NotInteresting, ReductionLimits

    if file.is_dir():
        raise ToolError(f"{file} is a folder.")
    check = CommandCheck(given["check"], file.name, given["limit"] or 300.0, given["deadline"])
    text = read_any(file)
    begun = clock()
    try:
        with progress_bar("tokens") as bar:
            done = reduce_file(
                text,
                check,
                jobs=given["jobs"],
                state=output.state,
                limits=ReductionLimits(deadline=given["deadline"]),
                progress=bar,
            )
    except NotInteresting as error:
        raise ToolError(
            f"The check does not accept {file} itself: the result was {error.outcome}.",
            hint="It must exit with 0 for files to keep.",
        ) from None
    best = done.best.text()
    seconds = clock() - begun
    write_output(output.path, best.encode("utf-8", "surrogateescape"))
    if not done.stopped:
        output.state.unlink(missing_ok=True)
    if given["as_json"]:
        print_json({"output": str(output.path), **measured(done, seconds)})
    else:
        print(f"{output.path}: {len(text.splitlines())} -> {len(best.splitlines())} lines.")
        say_how(done, seconds, output)
    return INTERRUPTED if done.interrupted else 0
