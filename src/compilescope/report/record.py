"""The run that a document is about: what its first lines name (command, torch, how it ended)."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.analysis.gate.doubts import Doubt

Style = Literal["plain", "strong", "dim", "code", "good", "warn", "bad"]
"""What a stretch of text means."""


class ShownRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The run that a document is about."""

    run: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    torch: str | None = None
    exit_status: int | None = None
    signal: int | None = None
    ended: str = ""
    """How the program ended, in a sentence; empty where nobody watched it to its end."""
    ended_style: Style = "plain"
    devices: tuple[str, ...] = ()
    """What its tensors lived on, and the name of the accelerator where that is known."""
    doubts: tuple[Doubt, ...] = ()
    """Why less may have been seen than there was."""
