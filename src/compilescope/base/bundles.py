"""Folders of many small text files, of which a wheel holds one file each.

In a checkout `examples` is a folder. setup.py puts `examples.json` in its place, which names each
file of it with its text: a thousand small files cost more as entries of a wheel than by what is in
them (1,324 files and 640 KB of a wheel; as 7 files 123 KB). `Bundled` is what both have in common.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec


class BundlePath(msgspec.Struct, frozen=True):
    """A file or folder in such a file, by the methods of `pathlib.Path` that are used of it."""

    file: Path
    at: str = ""

    def __str__(self) -> str:
        return f"{self.file}/{self.at}"

    @property
    def name(self) -> str:
        return self.at.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def parent(self) -> BundlePath:
        return BundlePath(self.file, self.at.rpartition("/")[0])

    def __truediv__(self, name: str) -> BundlePath:
        return BundlePath(self.file, f"{self.at}/{name}" if self.at else name)

    def is_file(self) -> bool:
        return self.at in _texts(self.file)

    def is_dir(self) -> bool:
        return any(True for _ in self.iterdir())

    def iterdir(self) -> Iterator[BundlePath]:
        within = f"{self.at}/" if self.at else ""
        inside = (each for each in _texts(self.file) if each.startswith(within))
        for name in dict.fromkeys(each[len(within) :].partition("/")[0] for each in inside):
            yield self / name

    def read_text(self, encoding: str = "utf-8") -> str:
        try:
            return _texts(self.file)[self.at]
        except KeyError:
            raise FileNotFoundError(str(self)) from None

    def read_bytes(self) -> bytes:
        return self.read_text().encode()


Bundled = Path | BundlePath


def bundled(folder: Path) -> Bundled:
    """The folder, or the file in its place."""
    file = folder.with_name(f"{folder.name}.json")
    return BundlePath(file) if not folder.is_dir() and file.is_file() else folder


@functools.cache
def _texts(file: Path) -> Mapping[str, str]:
    import json  # A checkout has folders.

    texts: dict[str, str] = json.loads(file.read_bytes())
    return texts
