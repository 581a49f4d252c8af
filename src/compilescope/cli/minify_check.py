"""`minify --check`: any file, by a command of the user's."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from compilescope.cli.minifying import INTERRUPTED, Output, measured, progress_bar, say_how
from compilescope.cli.options import print_json
from compilescope.errors import ToolError


def minify_by_check(file: Path, output: Output, given: dict[str, Any]) -> int:
    from compilescope.minify.checking import CommandCheck, read_any, reduce_file
    from compilescope.minify.engine import Limits, NotInteresting

    if file.is_dir():
        raise ToolError(f"{file} is a folder.")
    check = CommandCheck(given["check"], file.name, given["candidate_time"] or 300.0)
    text = read_any(file)
    begun = time.monotonic()
    try:
        with progress_bar("tokens") as bar:
            done = reduce_file(
                text,
                check,
                jobs=given["jobs"],
                state=output.state,
                limits=Limits(given["limit_s"]),
                progress=bar,
            )
    except NotInteresting as error:
        raise ToolError(
            f"The check does not accept {file} itself: the result was {error.outcome}.",
            hint="It must exit with 0 for files to keep.",
        ) from None
    best = done.best.text()
    seconds = time.monotonic() - begun
    _write_bytes(output.path, best)
    if not done.stopped:
        output.state.unlink(missing_ok=True)
    if given["as_json"]:
        print_json({"output": str(output.path), **measured(done, seconds)})
    else:
        print(f"{output.path}: {len(text.splitlines())} -> {len(best.splitlines())} lines.")
        say_how(done, seconds, output)
    return INTERRUPTED if done.interrupted else 0


def _write_bytes(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(text.encode("utf-8", "surrogateescape"))
        part.replace(path)
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
