"""A run or a log names source files as it likes: a pipe is not waited for, a device has no end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compilescope.change.fixes.diffs import byte_order_mark
from compilescope.change.fixes.kept_texts import _with_its_line_ends
from compilescope.change.fixes.program_files import _lines
from compilescope.logs.source_files import lines_here
from compilescope.record.packs import Pack
from compilescope.record.plain_files import LARGEST_SOURCE, read_source, read_source_text


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.py")
    return str(folder / "pipe.py")


def _large(folder: Path) -> str:
    with (folder / "large.py").open("wb") as file:
        file.truncate(LARGEST_SOURCE + 1)
    return file.name


NAMED = {"pipe": _pipe, "large": _large, "device": lambda _: "/dev/zero", "nul": lambda _: "a\0.py"}


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices have names on POSIX")
@pytest.mark.parametrize("kind", NAMED)
def test_what_is_no_source_file_is_not_read(kind: str, tmp_path: Path) -> None:
    file = NAMED[kind](tmp_path)
    with pytest.raises((OSError, ValueError)):
        read_source(file)
    with pytest.raises((OSError, ValueError)):
        Pack(Path(file))
    assert _with_its_line_ends(file, "kept") == "kept"
    assert byte_order_mark(file) == "" and _lines(file) == () and lines_here(file) == ()


def test_a_source_file_is_read_as_python_does(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"))
    assert read_source_text(str(path)) == "# coding: latin-1\nx = 'é'\n"
    path.write_bytes("\ufeffx = 1\n".encode())
    assert read_source_text(str(path)) == "x = 1\n"
