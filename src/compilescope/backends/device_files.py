"""Where devices come from: those that are shipped, by name, and any TOML file."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.record.device import Device
from compilescope.record.devicefile import read_device

FOLDER = Path(__file__).parent / "devices"


@functools.lru_cache(maxsize=1)
def shipped_devices() -> tuple[Device, ...]:
    """In order of name."""
    return tuple(read_device(path) for path in sorted(FOLDER.glob("*.toml")))


def find_device(wanted: str) -> Device:
    """A shipped device by its name, or a file by its path."""
    path = device_path(wanted)
    shipped = {device.name: device for device in shipped_devices()}
    return shipped[path.stem] if is_shipped(path) else read_device(path)


def find_devices(wanted: Iterable[str]) -> list[Device]:
    """Several, each once. No two may have one name: nobody could tell what was said of which."""
    paths: dict[Path, str] = {}
    for name in wanted:
        paths.setdefault(device_path(name).resolve(), name)
    found: dict[str, tuple[str, Device]] = {}
    for name in paths.values():
        device = find_device(name)
        if device.name in found:
            raise ToolError(
                f"{found[device.name][0]} and {name} are both named {device.name}.",
                hint="Change `name` in one of the files.",
            )
        found[device.name] = (name, device)
    return [device for _, device in found.values()]


def is_shipped(path: Path) -> bool:
    return path.parent == FOLDER


def device_path(wanted: str) -> Path:
    """The file of a device."""
    names = [path.stem for path in sorted(FOLDER.glob("*.toml"))]
    if wanted in names:
        return FOLDER / f"{wanted}.toml"
    path = Path(wanted).expanduser()
    if path.is_file():
        return path
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise ToolError(f"There is no device file {wanted}.", hint=_hint(path.stem, names))
    raise ToolError(f"There is no device named {wanted!r}.", hint=_hint(wanted, names))


def _hint(wanted: str, names: list[str]) -> str:
    here = Path(f"{wanted}.toml")
    if here.is_file():
        return f"There is a file with that name here: {here}"
    near = difflib.get_close_matches(wanted.lower(), names, 3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"Known devices: {', '.join(names)}. You can also give the path of a TOML file."
