"""A version of a program: the files on disk, with other texts in place of some of them.

A value: making one changes nothing on disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.fixes.patch import Patch


@dataclass(frozen=True)
class Version:
    """The program as it is on disk, but for these files and these variables."""

    files: Mapping[str, str] = field(default_factory=dict)
    """By absolute path: the whole text."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the program is started with, beside ours."""

    @property
    def key(self) -> object:
        """Equal for equal versions."""
        return tuple(sorted(self.files.items())), tuple(sorted(self.environment.items()))

    def with_patch(self, patch: Patch) -> Version:
        """This one with a patch on top. The patch's texts are whole: they replace ours."""
        files = {os.path.abspath(path): text for path, text in patch.files.items()}
        return Version({**self.files, **files}, {**self.environment, **patch.environment})

    def text_of(self, path: str) -> str | None:
        """The text of a file in this version; None where there is none, or no text."""
        path = os.path.abspath(path)
        if path in self.files:
            return self.files[path]
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None
