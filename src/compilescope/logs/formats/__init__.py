"""One file a log format; each carries its `FORMAT`."""

from __future__ import annotations

import sys
from functools import cache

from compilescope.base.plugins import discover
from compilescope.logs.format import Format

GROUP = "compilescope.formats"
"""The entry points of packages that bring formats of their own."""


@cache
def all_formats() -> tuple[Format, ...]:
    """Found once, not for each of thousands of files."""
    return tuple(discover(sys.modules[__name__], "FORMAT", Format, group=GROUP))
