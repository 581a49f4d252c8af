"""A job on a node of a Ray cluster: done by a worker of the local engine, as on one machine.

The job is not done in Ray's own worker process. That one has Ray's threads and variables, and when
it exits it kills its children only, not what they started; the local engine's worker has a keeper
that ends its program however it dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from compilescope.errors import ToolError
from compilescope.scale.job import Finished, Job, JobResult
from compilescope.scale.local_engine import LocalEngine
from compilescope.scale.ray_files import FOLDER
from compilescope.settings import current_environment

_DEVICES = "CUDA_VISIBLE_DEVICES"
_THREADS = "OMP_NUM_THREADS"

_engine: tuple[str, LocalEngine] | None = None
"""Of this process of Ray's, and the devices that its worker was started with."""


def do(job: bytes) -> bytes:
    """A Job to its Finished, both as MessagePack."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Of a node started in the background. Ray cancels a task by this signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    decoded = msgspec.msgpack.decode(job, type=Job)
    return msgspec.msgpack.encode(_done(decoded))


def _done(job: Job) -> Finished:
    devices = current_environment().get(_DEVICES, "") if job.gpus else ""
    # Ray has chosen the devices already, so the engine below has none to give.
    plain = msgspec.structs.replace(job, gpus=0)
    try:
        for finished in _engine_for(devices).run([plain], lambda progress: None):
            return finished
    except ToolError as error:
        return Finished(JobResult(name=job.name, state="failed", reason=error.message))
    raise AssertionError("An engine ends every job.")


def _engine_for(devices: str) -> LocalEngine:
    """One worker does all jobs of this process, until Ray gives it other devices."""
    global _engine
    if _engine is not None and _engine[0] != devices:
        _engine[1].__exit__()
        _engine = None
    if _engine is None:
        if Path(FOLDER).is_dir():
            os.chdir(FOLDER)
        _engine = devices, LocalEngine(1, environment=_environment(devices))
    return _engine[1]


def _environment(devices: str) -> dict[str, str]:
    """What a program would have on this node without Ray: that of the node's own Ray process, to
    which Ray's workers add threads (OMP_NUM_THREADS), paths and much else."""
    env: Mapping[str, str] = {}
    with contextlib.suppress(psutil.Error, OSError):
        env = psutil.Process(os.getppid()).environ()
    if "PATH" not in env:
        env = {name: each for name, each in current_environment().items() if name != _THREADS}
    found = {name: each for name, each in env.items() if not name.startswith("RAY_")}
    if devices:
        found[_DEVICES] = devices
    return found
