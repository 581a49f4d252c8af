"""The file that a program given on the command line begins in.

The one bridge from the recorder's `Target` to `fixes.main_file`, which knows no processes.
"""

from __future__ import annotations

import os

from compilescope.fixes.main_file import main_file_of
from compilescope.recorder.target import Target


def main_file(target: Target) -> str:
    """The absolute path; empty where the program has no file of its own."""
    return main_file_of(target.shown, os.getcwd())
