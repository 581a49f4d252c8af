"""The user's folder, packed for the nodes of a Ray cluster, which don't have it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from compilescope.errors import ToolError

FOLDER = "compilescope_files"
"""Files lie in it rather than at the top: Ray puts the top on the module path of its workers, where
a program named like a module of the standard library would break them."""
_LEFT_OUT = frozenset(
    [
        *(".git", ".hg", ".svn", ".compilescope", ".venv", "venv", ".tox", ".nox", "node_modules"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"),
    ]
)
_MOST_BYTES = 200 << 20
"""Of a working folder. Chosen: room for source; data and weights would go to every node.
docs/guides/sweep-ray.md says it to users."""


def pack(folder: Path, archive: Path, *, most_bytes: int = _MOST_BYTES) -> None:
    """Write a zip file of the folder; equal files make equal bytes, so Ray sends them once."""
    if not folder.is_dir():
        raise ToolError(f"{folder} is not a folder.")
    files = _files(folder)
    sizes = {path: path.stat().st_size for path in files}
    whole = sum(sizes.values())
    if whole > most_bytes:
        largest = max(files, key=lambda path: sizes[path])
        raise ToolError(
            f"{folder} is too large to send to the nodes: {_mib(whole)}, and at most "
            f"{_mib(most_bytes)} can be sent. The largest file is {largest.relative_to(folder)} "
            f"({_mib(sizes[largest])}).",
            "Run the sweep from a smaller folder, or keep data and weights elsewhere.",
        )
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr(zipfile.ZipInfo(f"{FOLDER}/"), b"")
        for path in files:
            entry = zipfile.ZipInfo(f"{FOLDER}/{path.relative_to(folder).as_posix()}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            written.writestr(entry, path.read_bytes())


def _files(folder: Path) -> list[Path]:
    """Caches, environments and repositories stay here. Links to files are followed, to folders
    not: they may lead in circles."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        paths = (Path(place) / name for name in names if not name.endswith(".pyc"))
        found += [path for path in paths if path.is_file()]
    return sorted(found)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
