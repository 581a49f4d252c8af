"""The command line, one file for each command; no other part of compilescope prints."""

import os
import sys


def _is_our_command() -> bool:
    """The process of `compilescope` or `python -m compilescope`, whatever options Python was given,
    and no other that imports us."""
    at = len(sys.orig_argv) - len(sys.argv)  # Where Python's options end and ours begin.
    program = os.path.basename(sys.orig_argv[at]) if at > 0 else ""
    return sys.orig_argv[at - 1 : at + 1] == ["-m", "compilescope"] or program == "compilescope"


def _put_installed_first() -> None:
    """What lies in the current folder or on PYTHONPATH is the program's, and may be called like one
    of our libraries. Python puts its own archive, there or not, right behind those. The folder
    that we are in is ours wherever it is named: `--python` has our libraries there."""
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    names = [os.path.basename(path) for path in sys.path]
    if archive in names:
        at = names.index(archive)
        home = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
        first, rest = sys.path[at:], sys.path[:at]
        first += [path for path in rest if path == home]
        sys.path[:] = first + [path for path in rest if path != home]


if _is_our_command():
    _put_installed_first()
