"""The command line, one file for each command; no other part of compilescope prints."""

import os
import sys


def _is_our_command() -> bool:
    """The process of `compilescope` or `python -m compilescope`, whatever options Python was given,
    and no other that imports us."""
    at = len(sys.orig_argv) - len(sys.argv)  # Where Python's options end and ours begin.
    program = os.path.basename(sys.orig_argv[at]) if at > 0 else ""
    return sys.orig_argv[at - 1 : at + 1] == ["-m", "compilescope"] or program == "compilescope"


if _is_our_command():
    from compilescope.apps.cli.quick_start import begin

    begin()
