"""`minify` for what a graph shows: a crash, a difference, a violation."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from compilescope.cli.minifying import (
    INTERRUPTED,
    Output,
    measured,
    memory_for_candidates,
    progress_bar,
    say_how,
)
from compilescope.cli.options import print_json
from compilescope.errors import ToolError


def minify_graph(
    kind: str,
    words: tuple[str, ...],
    output: Output,
    given: dict[str, Any],
    *,
    known: bool = False,
) -> int:
    """`known`: the program was seen to crash; only the graph at which it does is looked for."""
    if kind != "script":
        raise ToolError(f"--predicate {given['predicate']} needs a script.")
    from compilescope.minify.engine import Limits
    from compilescope.minify.graph.from_program import Search, minify_program
    from compilescope.minify.source.choosing import read_site

    site = read_site(given["site"]) if given["site"] else None
    search = Search(
        given["predicate"],
        given["device"] or "",
        given["test_backend"] or "",
        site.file if site else "",
        site.line if site else None,
        known=known,
    )
    begun = time.monotonic()
    output.records.mkdir(parents=True, exist_ok=True)
    try:
        with progress_bar("operations") as bar:
            done = minify_program(
                Path(words[0]),
                words[1:],
                search,
                output.path,
                folder=output.records,
                limit_s=given["candidate_time"] or 120.0,
                memory_bytes=memory_for_candidates(),
                jobs=given["jobs"],
                state=output.state,
                limits=Limits(given["limit_s"]),
                progress=bar,
            )
    finally:
        shutil.rmtree(output.records, ignore_errors=True)
    seconds = time.monotonic() - begun
    if done.repro.path is not None and not done.reduction.stopped:
        output.state.unlink(missing_ok=True)
    path = str(done.repro.path) if done.repro.path is not None else None
    if given["as_json"]:
        facts = {"predicate": given["predicate"], "repro": path, "reason": done.repro.reason}
        print_json({**facts, **measured(done.reduction, seconds)})
    else:
        print(done.repro.words)
        say_how(done.reduction, seconds, output, "operations")
    if done.reduction.interrupted:
        return INTERRUPTED
    return 0 if path else 2
