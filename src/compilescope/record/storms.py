"""The numbers in a compile id, and how much capture keeps of a frame compiled again and again.

In such a recompile storm, past some compilations its cache entries are no longer walked, and past
some more its graphs and guards are no longer written: events are still counted, and the program is
not slowed down. torch's own limit is 8 compilations of a frame, so only programs that raise it come
this far.
"""

from __future__ import annotations

from compilescope.base.texts import whole_number

MOST_WALKED = 16
"""Compilations of a frame after which its cache entries are no longer walked one by one. Chosen:
twice torch's limit; what capture then costs is shown by benchmarks/storms.py."""
MOST_KEPT = 32
"""Compilations of a frame after which neither graphs nor guards are written out. Chosen: four times
torch's limit, likewise."""


def compilation_number(compile_id: str | None) -> int:
    """How often torch had compiled the frame before: `17` in `0/17_1`; 0 where it is not known."""
    number = (compile_id or "").rpartition("/")[2].partition("_")[0]
    return whole_number(number) or 0


def frame_number(compile_id: str | None) -> str:
    """What all compilations of one code object share: `3` of `3/0`, `!0/3` of `!0/3/0`."""
    compile_id = compile_id or ""
    return compile_id.rpartition("/")[0] or compile_id
