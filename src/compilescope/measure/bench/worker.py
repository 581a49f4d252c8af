"""The process that one backend of one model is measured in:
`python -m compilescope.measure.bench.worker`.

Its arguments are the ledger of `processes.pause` and its end of the channel.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.channel import Channel, leave_with
from compilescope.base.processes.pause import keep_time_with
from compilescope.measure.bench.protocol import WorkerReply, WorkerRequest

_MOST = 300
"""Characters of an error's own words. Chosen: a line or two of a table."""


def main() -> None:
    driver = Channel.given(int(sys.argv[-1]))
    keep_time_with(int(sys.argv[-2]))
    _offer_for_sacrifice()
    # A driver that dies is noticed also in the middle of a step.
    leave_with(driver)
    # Torch is imported here, so that what a broken one says is a reply like any other.
    work: Any = None
    while asked := driver.receive():
        request = msgspec.json.decode(asked, type=WorkerRequest)
        try:
            if work is None:
                from compilescope.measure.bench.worker_tasks import WorkerTasks

                work = WorkerTasks()
            reply = WorkerReply(value=msgspec.Raw(msgspec.json.encode(work.do(request))))
        except ToolError as error:
            reply = WorkerReply(error=error.message, hint=error.hint)
        except Exception as error:  # The border to the user's model and to the backend.
            reply = WorkerReply(error=_sentence(error))
        with contextlib.suppress(OSError):
            driver.send(msgspec.json.encode(reply))
    os._exit(0)


def _offer_for_sacrifice() -> None:
    """Where memory runs out, the system is to end this process and not the one that measures."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _sentence(error: Exception) -> str:
    find = _finder()
    root = find(error) if find is not None else error
    said = " ".join(str(root).split())
    said = said if len(said) <= _MOST else said[:_MOST].rstrip() + " …"
    return f"{type(root).__name__}: {said}" if said else type(root).__name__


def _finder() -> Callable[[BaseException], BaseException] | None:
    """Looks through torch's wrapping around an error; None where torch cannot be imported."""
    try:
        from compilescope.instrument.torchapi.trials.backends import root_error
    except Exception:  # The border to torch: whatever its import raised is the error itself.
        return None
    return root_error


if __name__ == "__main__":
    main()
