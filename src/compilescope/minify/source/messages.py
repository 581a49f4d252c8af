"""The messages between the minifier and the process that tries a program. Needs no torch."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.minify.source.findings import SourceFinding

TASK = "compilescope.minify.source.trial:try_program"
ORIGINAL_TASK = "compilescope.minify.source.trial:try_original"


class TrialRequest(msgspec.Struct, frozen=True):
    """A program to run."""

    text: str
    folder: str
    """Its working folder, and where its file is written."""
    paths: tuple[str, ...] = ()
    """Folders in which it finds modules of its own."""
    compiled: bool = True
    """False: `torch.compile` is to do nothing."""


class Original(msgspec.Struct, frozen=True):
    """The user's program as it is, in its own folder."""

    kind: Literal["script", "module", "code"]
    words: tuple[str, ...]
    root: str
    compiled: bool = True


class TrialResult(msgspec.Struct, frozen=True):
    """What a program showed."""

    findings: tuple[SourceFinding, ...]
    error: str = ""
    """The class of the exception that it ended with; a status other than 0 counts as one."""
    message: str = ""
    graphs: int = 0
    torch: str = ""
    failed: bool = False
    """A compilation failed, and no graph break is behind it."""
