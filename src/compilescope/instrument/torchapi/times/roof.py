"""Measures what this machine can do at most: bytes a second by a large copy, operations a second by
products of large matrices. Once, unless something says that it was busy with other work meanwhile.
Kept in the user's cache, by machine.

Run as a program it measures, in a process of its own, so that it takes nothing from the user's.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from compilescope.base.outputs import write_output
from compilescope.base.settings import cache_folder
from compilescope.knowledge.profiles.kernel_rows import Roof

_COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 27}
"""Chosen: beyond every cache, and little beside what a device has."""
_MATRIX = {"cuda": 8192, "cpu": 768}
"""Chosen: large enough for the library's fastest kernel, some milliseconds each."""
_TIMES = 5
"""The best one counts: a roof is what was reached."""
CPU = "cpu"

_Roofs = dict[str, dict[str, Roof]]
"""By machine and device."""


def machine() -> str:
    return f"{platform.node()} {platform.machine()} {os.cpu_count()}"


def roofs_file() -> Path:
    return cache_folder() / "roofs.json"


def known_roof(device: str) -> Roof | None:
    """Of a device of this machine, by its name; None where it was not measured."""
    return _read().get(machine(), {}).get(device)


def is_measured() -> bool:
    """And no doubt about it is left, or none that measuring it again would end."""
    known = _read().get(machine(), {})
    return bool(known) and all(
        roof.is_certain or not roof.has_tries_left for roof in known.values()
    )


def note_beaten(device: str) -> None:
    """A kernel was faster than what is known: to be measured again."""
    known = _read()
    roof = known.get(machine(), {}).get(device)
    if roof is not None:
        _write(known, {device: msgspec.structs.replace(roof, beaten=True)})


def _read() -> _Roofs:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(roofs_file().read_bytes(), type=_Roofs)
    return {}


def measure() -> None:
    """Of the CPU and, if there is one, the first GPU; for all later runs on this machine."""
    import torch

    own = {CPU: _roof(torch.device("cpu"))}
    if torch.cuda.is_available():
        own[torch.cuda.get_device_name()] = _roof(torch.device("cuda"))
    known = _read()
    before = known.get(machine(), {})
    _write(known, {name: _better(before.get(name), roof) for name, roof in own.items()})


def _write(known: _Roofs, own: dict[str, Roof]) -> None:
    """With what is known of this machine's other devices."""
    file = roofs_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    roofs = {**known, machine(): {**known.get(machine(), {}), **own}}
    write_output(file, msgspec.json.encode(roofs))


def _better(before: Roof | None, now: Roof) -> Roof:
    """The best of both."""
    if before is None:
        return now
    rates = {
        name: max(rate, before.flops_per_second.get(name, 0.0))
        for name, rate in now.flops_per_second.items()
    }
    most = max(before.bytes_per_second, now.bytes_per_second)
    return Roof(most, rates, now.spread, tries=before.tries + 1)


def _roof(device: Any) -> Roof:
    import torch

    count = _COPY_BYTES[device.type] // 4
    one, other = torch.ones(count, device=device), torch.empty(count, device=device)
    seconds, spread = _best(lambda: other.copy_(one), device)
    rates = {}
    names = ["float32", "tf32", "bfloat16", "float16", "float64"]
    for name in names if device.type == "cuda" else ["float32", "float64"]:
        with contextlib.suppress(RuntimeError):
            rates[name], differ = _product_rate(device, name)
            spread = max(spread, differ)
    return Roof(2 * count * 4 / seconds, rates, spread)


def _product_rate(device: Any, name: str) -> tuple[float, float]:
    """And the spread."""
    import torch

    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    dtype = getattr(torch, "float32" if name == "tf32" else name)
    size = _MATRIX[device.type]
    matrix = torch.ones(size, size, device=device, dtype=dtype)
    seconds, spread = _best(lambda: matrix @ matrix, device)
    return 2.0 * size**3 / seconds, spread


def _best(work: Any, device: Any) -> tuple[float, float]:
    """Seconds that it takes, at best, and how much more the middle one took, as a share of that."""
    import torch

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    work()
    found = []
    for _ in range(_TIMES):
        wait()
        began = time.perf_counter()
        work()
        wait()
        found.append(time.perf_counter() - began)
    return min(found), median(found) / min(found) - 1


if __name__ == "__main__":
    measure()
    sys.exit(0)
