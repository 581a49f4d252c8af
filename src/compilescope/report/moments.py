"""Points in time, written for people."""

from __future__ import annotations

import time


def moment(seconds: float) -> str:
    """`2026-11-16 07:21`, where the server is; empty where it is not known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds > 0 else ""
