"""Changes as a unified diff, which `patch -p1` and `git apply` take."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping
from pathlib import Path

from compilescope.base.patterns import late
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.record.fingerprint import relative_file
from compilescope.record.plain_files import read_plain
from compilescope.record.stack import origin_of

_ODD = late(r"[\x00-\x1f\x7f\"\\\ud800-\udfff]")
_NO_END = "\\ No newline at end of file\n"


def unified_diff(originals: Mapping[str, str], files: Mapping[str, str], root: str) -> str:
    """All files that differ. The user's own are named from the program's folder, those of
    packages from the folder that holds the packages."""
    return "".join(
        file_diff(originals.get(path, ""), files[path], _name(path, root)) for path in sorted(files)
    )


def file_diff(old: str, new: str, name: str) -> str:
    if old == new:
        return ""
    import difflib  # Most runs propose nothing.

    lines = difflib.unified_diff(
        split_lines(old),
        split_lines(new),
        _quoted(f"a/{name}"),
        _quoted(f"b/{name}"),
        lineterm="\n",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


def split_lines(text: str) -> list[str]:
    """With their ends. Not `str.splitlines`: a form feed ends no line of a file."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _name(path: str, root: str) -> str:
    if origin_of(path) == "user" and root:
        return os.path.relpath(path, root).replace(os.sep, "/")
    return relative_file(path, root)


def _quoted(name: str) -> str:
    """As git writes names that a line of a diff cannot hold: a line break would begin a line of its
    own, which `patch` obeys."""
    if not _ODD.search(name):
        return name
    data = name.encode("utf-8", "surrogateescape")
    plain = (chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:03o}" for c in data)
    return f'"{"".join(plain)}"'


def patch_diff(subject: Subject, patch: Patch) -> str:
    """Of a patch that was proposed for a subject, against the version that it was proposed on."""
    program = subject.program
    originals = {file: byte_order_mark(file) + program.text(file) for file in patch.files}
    files = {file: byte_order_mark(file) + text for file, text in patch.files.items()}
    return unified_diff(originals, files, program.root)


def byte_order_mark(file: str) -> str:
    """The byte order mark of a file on disk, which its text is told without."""
    try:
        return "\ufeff" if read_plain(Path(file), most=3) == codecs.BOM_UTF8 else ""
    except (OSError, ValueError):
        return ""
