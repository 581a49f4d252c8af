"""What the tool prints of an example's run, the same on every machine."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compilescope.model.run import Run

_WIDTH = 80
_ADDRESS = re.compile(rb"\b0x[0-9a-fA-F]{6,}\b")


def explained(run: Run) -> str:
    """What `compilescope explain --all` prints of a run, without the run's name."""
    from compilescope.report.explanation import explanation
    from compilescope.report.render.terminal import to_text
    from compilescope.report.section import Reading

    reading = Reading(_neutral(run))
    document = explanation(reading, range(1, len(reading.causes) + 1))
    return to_text(document, width=_WIDTH, colour=False).partition("\n")[2].lstrip("\n")


def _neutral(run: Run) -> Run:
    """The run as on a machine whose Python lies in /usr, with the program in the current folder;
    without times, which differ from run to run."""
    import msgspec

    from compilescope.model.bodies import CompilePhases, CompileTime
    from compilescope.model.event import decode, encode
    from compilescope.model.run import Run

    changes = {f"{run.header.root}/": ""}
    changes |= {f"{prefix}/lib/": "/usr/lib/" for prefix in (sys.prefix, sys.base_prefix)}
    events = []
    for event in run.events:
        if isinstance(event.body, (CompileTime, CompilePhases)):
            continue
        line = _ADDRESS.sub(b"0x...", encode(event))
        for old, new in changes.items():
            line = line.replace(old.encode(), new.encode())
        events.append(decode(line))
    header = msgspec.structs.replace(run.header, root="", cwd="")
    return Run(header, events, run.artifacts)
