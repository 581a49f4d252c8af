"""Describes the machine that jobs run on, without importing torch."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import socket
from pathlib import Path

import psutil

from compilescope.record.benchmark import Machine

_PACKAGES = ("transformers", "triton", "ray")


def this_machine(name: str = "") -> Machine:
    """Versions are those of the installed packages; nothing is imported."""
    versions = {package: _version(package) for package in _PACKAGES}
    return Machine(
        name=name or socket.gethostname(),
        cpu=_cpu(),
        cores=_cores(),
        memory_bytes=int(psutil.virtual_memory().total),
        accelerators=accelerators(),
        python=platform.python_version(),
        torch=_version("torch"),
        packages={package: version for package, version in versions.items() if version},
    )


def accelerators() -> tuple[str, ...]:
    """NVIDIA's, as its driver lists them."""
    found = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                if line.startswith("Model:"):
                    found.append(line.partition(":")[2].strip())
    return tuple(found)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _cores() -> int | None:
    """That we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
