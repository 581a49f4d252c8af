"""One file a log format; each carries its `FORMAT`."""

from __future__ import annotations

import sys
from functools import cache

from compilescope.logs.format import Format
from compilescope.plugins import discover


@cache
def all_formats() -> tuple[Format, ...]:
    """Found once, not for each of thousands of files."""
    return tuple(discover(sys.modules[__name__], "FORMAT", Format))
