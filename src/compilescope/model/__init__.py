"""The record: events, the run they belong to, graphs and artifacts. Knows nothing of torch."""

import sys
import threading


def _import_msgspec() -> None:
    """Without `typing_extensions`: of that msgspec takes, where it is installed, what `typing` has
    had since Python 3.11, and importing it is a thirtieth of a small command."""
    name = "typing_extensions"
    if sys.version_info < (3, 11) or name in sys.modules or threading.active_count() > 1:
        return
    sys.modules[name] = None
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


_import_msgspec()
