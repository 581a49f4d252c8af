"""The command line, one file for each command; no other part of compilescope prints."""

import os
import sys


def _put_installed_first() -> None:
    """What lies in the current folder or on PYTHONPATH is the program's, and may be called like one
    of our libraries. Python puts its own archive, there or not, right behind those. The folder
    that we are in is ours wherever it is named: `--python` has our libraries there."""
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    names = [os.path.basename(path) for path in sys.path]
    if archive in names:
        at = names.index(archive)
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        first, rest = sys.path[at:], sys.path[:at]
        first += [path for path in rest if path == home]
        sys.path[:] = first + [path for path in rest if path != home]


def _is_our_command() -> bool:
    """The process of `compilescope` or `python -m compilescope`, and no other that imports us."""
    program = os.path.basename(sys.orig_argv[1]) if len(sys.orig_argv) > 1 else ""
    return sys.orig_argv[1:3] == ["-m", "compilescope"] or program == "compilescope"


def _import_msgspec() -> None:
    """Without `typing_extensions`: of that msgspec takes, where it is installed, what `typing` has
    had since Python 3.11, and importing it is a thirtieth of a small command."""
    name = "typing_extensions"
    if sys.version_info < (3, 11) or name in sys.modules:
        return
    sys.modules[name] = None
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


if _is_our_command():
    _put_installed_first()
    _import_msgspec()
