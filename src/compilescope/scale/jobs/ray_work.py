"""A job on a node of a Ray cluster: done by a worker of the local engine, as on one machine;
and the files that travel with it.

The job is not done in Ray's own worker process. That one has Ray's threads and variables, and when
it exits it kills its children only, not what they started; the local engine's worker has a keeper
that ends its program however it dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from compilescope.base.errors import ToolError
from compilescope.base.settings import current_environment
from compilescope.scale.jobs.job import Finished, Job, JobResult
from compilescope.scale.jobs.local_engine import LocalEngine

FOLDER = "compilescope_files"
"""Files lie in it rather than at the top: Ray puts the top on the module path of its workers, where
a program named like a module of the standard library would break them."""
_LEFT_OUT = frozenset(
    [
        *(".git", ".hg", ".svn", ".compilescope", ".venv", "venv", ".tox", ".nox", "node_modules"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"),
    ]
)
_MOST_BYTES = 200 << 20
"""Of a working folder. Chosen: room for source; data and weights would go to every node.
docs/guides/sweep-ray.md says it to users."""
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


# The user's folder, packed for the nodes of a Ray cluster, which don't have it.


def pack(folder: Path, archive: Path, *, most_bytes: int = _MOST_BYTES) -> None:
    """Write a zip file of the folder; equal files make equal bytes, so Ray sends them once."""
    if not folder.is_dir():
        raise ToolError(f"{folder} is not a folder.")
    files = _files(folder)
    sizes = {path: path.stat().st_size for path in files}
    whole = sum(sizes.values())
    if whole > most_bytes:
        largest = max(files, key=lambda path: sizes[path])
        raise ToolError(
            f"{folder} is too large to send to the nodes: {_mib(whole)}, and at most "
            f"{_mib(most_bytes)} can be sent. The largest file is {largest.relative_to(folder)} "
            f"({_mib(sizes[largest])}).",
            "Run the sweep from a smaller folder, or keep data and weights elsewhere.",
        )
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr(zipfile.ZipInfo(f"{FOLDER}/"), b"")
        for path in files:
            entry = zipfile.ZipInfo(f"{FOLDER}/{path.relative_to(folder).as_posix()}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            written.writestr(entry, path.read_bytes())


def _files(folder: Path) -> list[Path]:
    """Caches, environments and repositories stay here. Links to files are followed, to folders
    not: they may lead in circles."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        paths = (Path(place) / name for name in names if not name.endswith(".pyc"))
        found += [path for path in paths if path.is_file()]
    return sorted(found)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
