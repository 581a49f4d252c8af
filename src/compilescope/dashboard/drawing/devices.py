"""What worker processes draw of devices, and of what they refused across runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from compilescope.backends.device_files import shipped_devices
from compilescope.dashboard.addresses import Missing, device_address, run_address
from compilescope.errors import ToolError
from compilescope.model.run import Run, read_run
from compilescope.report.blocks import Block, Document, Part, note
from compilescope.report.device import device_blocks
from compilescope.report.device_runs import checked, devices_table, model_items, refused
from compilescope.report.render.page import PageParts, page_parts

Named = tuple[tuple[str, Path], ...]
"""Names of programs, and folders of their runs."""
_NOTHING = "No violations found. Run or check a program to see what this device would not support."


def draw_devices(runs: Named, programs: Named) -> PageParts:
    """`runs` with violations; `programs`: runs whose graphs are checked now."""
    devices = shipped_devices()
    found = refused(_read(runs)) + checked(_read(programs), devices)
    table = devices_table(devices, found, device_address)
    return _page([Part("devices", "", (table,))])


def draw_device(runs: Named, programs: Named, name: str) -> PageParts:
    """Violations by model, then what the device supports."""
    device = next((each for each in shipped_devices() if each.name == name), None)
    found = refused(_read(runs), name)
    if device is None and not found:
        known = ", ".join(each.name for each in shipped_devices())
        raise Missing(f"There is no device {name!r}.", hint=f"Known devices: {known}.")
    if device is not None:
        found += checked(_read(programs), [device])
    items: list[Block] = model_items(found, run_address)
    nothing: list[Block] = [note(_NOTHING)]
    parts = [Part("violations", "Violations", tuple(items or nothing), "by model")]
    if device is not None:
        declared = tuple(device_blocks(device))
        parts.append(Part("supports", "What it supports", declared, "as its file declares"))
    return _page(parts)


def _read(runs: Named) -> Iterator[tuple[str, Run]]:
    """Those that can be read: one that is deleted or damaged is no reason to hide the others."""
    for program, folder in runs:
        try:
            yield program, read_run(folder)
        except (ToolError, OSError):
            continue


def _page(parts: Sequence[Part]) -> PageParts:
    return page_parts([Document("Devices", "", tuple(parts))], headed=False)
