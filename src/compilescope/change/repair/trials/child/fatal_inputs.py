"""Notes which made-up inputs ended a process, so that the next one is not given them again.

An index out of range is an exception on a CPU, but on a GPU it ends all further work, and C++ code
may abort. So the process writes the family of inputs down before it replays a call on them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LOST_DEVICE = 70
"""The exit status of a process whose GPU refuses to work on (EX_SOFTWARE)."""
_FILE = "asked.json"


class FatalInputs(NamedTuple):
    """What a process was asked when it ended."""

    region: int
    family: str
    words: str


@contextlib.contextmanager
def asking(folder: Path, inputs: FatalInputs) -> Iterator[None]:
    """Made-up inputs are asked within this block."""
    file = folder / _FILE
    file.write_text(json.dumps(inputs), encoding="utf-8")
    try:
        yield
    finally:
        if _device_is_lost():
            # Nothing can be put back as it was: the program could only fail in our name.
            os._exit(LOST_DEVICE)
        file.unlink(missing_ok=True)


def read_fatal(folder: Path) -> FatalInputs | None:
    """None where the process has not ended while it was asked something made up."""
    try:
        return FatalInputs(*json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _device_is_lost() -> bool:
    """After an assertion in a kernel, every further call fails, whatever it is."""
    import torch  # The parent, which reads what was left, has none.

    if not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False
