"""That no process imported torch is said only where it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.knowledge.analysis.program_end import NONE_IMPORTED, without_torch
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.header import RunHeader
from compilescope.record.presence import FILE_NAME, begin_presence, read_presence
from compilescope.record.run import Run


@pytest.mark.parametrize(
    ("lines", "begins"),
    [
        ("7 start\n7 end\n", NONE_IMPORTED),
        ("7 start\n8 start\n8 end\n7 end\n", NONE_IMPORTED),
        ("", "Whether the program imported torch is unknown: compilescope could not watch"),
        ("8 start\n8 end\n", "Whether the program imported torch is unknown: compilescope could"),
        ("7 start\n", "Whether the program imported torch is unknown: process 7 was replaced"),
        ("7 start\n7 torch\n7 end\n", "torch was imported, but nothing was compiled."),
        (
            "7 start\n7 torch\n7 failed /usr/bin/python has no working compilescope: No module\n",
            "torch was imported, but nothing could be recorded: /usr/bin/python has no working",
        ),
        ("garbage\n\xff 5\n7 start\n7 end\n99999999999999999999999 end", NONE_IMPORTED),
    ],
)
def test_what_processes_said(tmp_path: Path, lines: str, begins: str) -> None:
    begin_presence(tmp_path)
    (tmp_path / FILE_NAME).write_text(lines, encoding="latin-1")
    assert without_torch(_run(tmp_path)).startswith(begins)


def test_a_run_of_an_earlier_version(tmp_path: Path) -> None:
    assert read_presence(tmp_path) is None
    assert without_torch(_run(tmp_path)) == NONE_IMPORTED


def _run(folder: Path) -> Run:
    header = RunHeader(
        run="a", tool="0", command=(), cwd="", root="", host="", started_ns=0, main_pid=7
    )
    return Run(header, [], MemoryArtifacts(), presence=read_presence(folder))
