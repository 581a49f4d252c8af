"""What is recorded of a version's run: by capture, or by replaying its compiled regions.

Data only; other modules judge it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.analysis.digest import Digest
from compilescope.model.run import Run
from compilescope.repair.trials.version import Version


@dataclass(frozen=True)
class CapturedRun:
    """A version that ran under capture."""

    version: Version
    run: Run
    digest: Digest
    exit_status: int
    """As subprocess has it: negative for a signal."""
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float
    operators: int
    """Captured in Dynamo's graphs, each piece of a function once."""
    folder: Path
    """Of the run; gone when its workbench is closed."""


@dataclass(frozen=True)
class ReplayedRun:
    """A version whose compiled regions were called again, on copies of what they were given."""

    version: Version
    folder: Path
    """Where the child wrote; gone when its workbench is closed."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What it wrote, but for the tensors."""
    exit_status: int = 0
    timed_out: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of regions that were recorded, each with its replays."""
        return list(self.record.get("calls", ()))

    @property
    def told(self) -> dict[str, Any]:
        """For who judges it elsewhere."""
        return {"folder": str(self.folder), "exit_status": self.exit_status}

    @property
    def plan(self) -> list[dict[str, Any]]:
        """For another version: the same calls, the same inputs."""
        return [
            {
                "region": call["region"],
                "call": call["call"],
                "train": any(replay["train"] for replay in call["replays"]),
                "weights": call.get("weights", []),
                "forms": call.get("forms", {}),
                "changed": sorted({path for r in call["replays"] for path in r["changed"]}),
                "recipes": [
                    [replay["recipe"], _is_safe(replay)]
                    for replay in call["replays"]
                    if replay["mode"] == "eager"
                ],
            }
            for call in self.calls
        ]


def _is_safe(replay: Mapping[str, Any]) -> bool:
    """An index out of range is an error in eager mode; compiled code may read where it points."""
    error = replay["error"]
    return error is None or error["raised"] or error["type"] != "IndexError"


def read_record(folder: Path) -> dict[str, Any]:
    """What a child wrote; empty where it wrote nothing."""
    try:
        found = json.loads((folder / "record.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
