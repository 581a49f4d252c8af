"""Which file a target begins in."""

from __future__ import annotations

import os

from compilescope.capture.target import Target
from compilescope.fixes.main_file import main_file_of


def main_file(target: Target) -> str:
    """The absolute path; empty where the program has no file of its own."""
    return main_file_of(target.shown, os.getcwd())
