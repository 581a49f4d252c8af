"""What the tool prints of an example's run, the same on every machine."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from compilescope.model.run import Run

_WIDTH = 80
_ADDRESS = re.compile(rb"\b0x[0-9a-fA-F]{6,}\b")


def explained(run: Run) -> str:
    """What `compilescope explain` prints of a run, without the run's name.

    Where it has nothing to explain, since a function is given up without a break in it, that part
    of what `compilescope show` prints.
    """
    from compilescope.report.blocks import Part
    from compilescope.report.explanation import explanation
    from compilescope.report.render.terminal import to_text
    from compilescope.report.section import Reading
    from compilescope.report.sections.eager import SECTION

    reading = Reading(_neutral(run))
    seen = reading.digest
    document = explanation(reading, list(enumerate(seen.sites, 1)), with_rest=True)
    if not (seen.sites or seen.failures or seen.recompiles):
        part = Part(SECTION.id, SECTION.title, tuple(SECTION.build(reading)), SECTION.note)
        document = msgspec.structs.replace(document, parts=(part,))
    return to_text(document, width=_WIDTH, colour=False).partition("\n")[2].lstrip("\n")


def _neutral(run: Run) -> Run:
    """The run as on a machine whose Python lies in /usr, with the program in the current folder."""
    from compilescope.model.event import decode, encode
    from compilescope.model.run import Run

    changes = {f"{run.header.root}/": ""}
    changes |= {f"{prefix}/lib/": "/usr/lib/" for prefix in (sys.prefix, sys.base_prefix)}
    events = []
    for event in run.events:
        line = _ADDRESS.sub(b"0x...", encode(event))
        for old, new in changes.items():
            line = line.replace(old.encode(), new.encode())
        events.append(decode(line))
    return Run(run.header, events, run.artifacts)
