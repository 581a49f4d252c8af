"""The device that graphs are checked against where none is named: the generic one.

Its file lies among the devices that are shipped, so that there is one place to read and to copy it.
"""

from __future__ import annotations

import functools
from pathlib import Path

from compilescope.model.device import Device
from compilescope.model.devicefile import read_device

_FILE = Path(__file__).parents[2] / "backends" / "devices" / "generic.toml"


@functools.lru_cache(maxsize=1)
def default_device() -> Device:
    return read_device(_FILE)
