"""`logs --follow` on the screen: the summary, drawn anew as the log grows."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.apps.cli.output import told_text
from compilescope.apps.cli.streams import put

if TYPE_CHECKING:
    from compilescope.logs.growing_logs import Follower
    from compilescope.logs.reader import ReadLogs

# Chosen: new lines seem to come at once, and the screen does not flicker.
_LOOK_S = 0.3
_DRAW_S = 1.0
_SHARE = 5
"""Drawing may take one part in so many of the time. Chosen: the rest is for the program that
writes."""


def follow_logs(
    paths: list[str], home: Path, output: Path | None, source_folders: tuple[str, ...] = ()
) -> ReadLogs:
    """Until Ctrl-C, or until nobody is left who could write more."""
    from compilescope.logs.growing_logs import Follower
    from compilescope.record.home import new_run_id

    folder = output if output is not None else home / new_run_id(Path(paths[0]).name or "log")
    follower = Follower(paths, folder, source_folders)
    print(f"Following into {folder}; press Ctrl-C to stop.", file=sys.stderr)
    try:
        _follow(follower, folder)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return follower.finish()


def _follow(follower: Follower, folder: Path) -> None:
    drawn, pause, waiting = 0.0, _DRAW_S, True
    while not follower.ended():
        waiting = follower.poll() or waiting
        now = time.monotonic()
        if waiting and sys.stdout.isatty() and now - drawn > pause:
            _draw(folder)
            drawn, waiting = time.monotonic(), False
            pause = max(_DRAW_S, _SHARE * (drawn - now))
        time.sleep(_LOOK_S)


def _draw(folder: Path) -> None:
    from compilescope.record.run import read_run
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    document = report_document(Reading(read_run(folder, live=True)))
    text = told_text(document, shlex.join(["compilescope", "show", "--all", str(folder)]))
    put(f"\x1b[2J\x1b[H{text}")
