"""The worker process of the local engine: it does one job after the other, and reports each."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import msgspec
import psutil

from compilescope.base.processes.channel import Channel
from compilescope.base.processes.fork import die_with_parent
from compilescope.base.processes.pause import keep_time_with
from compilescope.scale.jobs.job import Finished, Job
from compilescope.scale.jobs.work import work

STUCK = b"Timeout ("
"""How faulthandler begins what it writes when a time is over."""
_MOST_RESIDENT = 1 << 30
"""Bytes, after which a worker makes room for a fresh one. Chosen: so that what tasks leave behind
does not add up."""


class Order(msgspec.Struct, frozen=True):
    """A job to do."""

    job: Job
    environment: dict[str, str] = {}


class JobReply(msgspec.Struct, frozen=True):
    """A job that is done; None: ready for the first."""

    finished: Finished | None = None
    retires: bool = False
    """The worker has grown too much, and takes no further job."""


def main(driver: int, machine: str, task_seconds: float) -> None:
    """Until the driver closes its end of the channel, or is gone."""
    die_with_parent(driver)
    faulthandler.enable()
    signal.signal(signal.SIGTERM, _stop)
    keep_time_with(int(sys.argv[-2]))
    with contextlib.suppress(OSError):  # Before the driver, after the programs.
        Path("/proc/self/oom_score_adj").write_text("500")
    try:
        _serve(Channel.given(int(sys.argv[-1])), machine, task_seconds)
    except (KeyboardInterrupt, OSError):
        return


def _serve(driver: Channel, machine: str, task_seconds: float) -> None:
    driver.send(msgspec.msgpack.encode(JobReply()))
    retires = False
    while not retires and (asked := driver.receive()):
        order = msgspec.msgpack.decode(asked, type=Order)
        os.ftruncate(sys.stderr.fileno(), 0)
        os.lseek(sys.stderr.fileno(), 0, os.SEEK_SET)
        watch = _TaskWatch(order.job, task_seconds)
        finished = work(order.job, machine, environment=order.environment, outside=watch)
        watch(False)
        retires = psutil.Process().memory_info().rss > _MOST_RESIDENT
        driver.send(msgspec.msgpack.encode(JobReply(finished, retires)))


class _TaskWatch:
    """A task that hangs outside its programs, even in C code, ends with its worker."""

    def __init__(self, job: Job, task_seconds: float) -> None:
        limit = job.limits.seconds
        self._seconds = None if limit is None else max(limit, task_seconds)

    def __call__(self, is_outside: bool) -> None:
        if self._seconds is not None and is_outside:
            faulthandler.dump_traceback_later(self._seconds, exit=True)
        else:
            faulthandler.cancel_dump_traceback_later()


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
