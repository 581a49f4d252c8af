"""Finds the file in which a program given on the command line begins.

It joins the recorder's `Target` with `fixes.main_file`, which knows nothing of processes.
"""

from __future__ import annotations

import os

from compilescope.fixes.main_file import main_file_of
from compilescope.recorder.target import Target


def main_file(target: Target) -> str:
    """The absolute path; empty where the program has no file of its own."""
    return main_file_of(target.shown, os.getcwd())
