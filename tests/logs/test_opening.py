"""What a user may name as a log, and what may be wrong with it."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.logs import input_files
from compilescope.logs.format import ReadTally
from compilescope.logs.input_files import LogLines, Opened, blocks, log_files, source_of


def read(name: str, tally: ReadTally | None = None) -> bytes:
    tally = tally if tally is not None else ReadTally()
    opened = Opened(name, tally)
    try:
        return b"".join(blocks(opened, tally))
    finally:
        opened.close()


@pytest.mark.parametrize("packer", [lambda data: data, gzip.compress, lzma.compress])
def test_packed_or_not_told_by_content(tmp_path: Path, packer) -> None:  # type: ignore[no-untyped-def]
    text = b"".join(b"line %d\n" % n for n in range(10_000))
    (tmp_path / "a.log").write_bytes(packer(text))
    assert read(str(tmp_path / "a.log")) == text


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb")))
    assert read("-") == b"a\nb"


def test_folders_are_searched_and_pipes_left_alone(tmp_path: Path) -> None:
    for number in range(2500):
        folder = tmp_path / f"{number % 7}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.log").write_text("x\n")
    os.mkfifo(tmp_path / "pipe")
    names, problems = log_files([str(tmp_path)])
    assert len(names) == 2500
    assert not problems


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"There is no .*absent\.log"):
        log_files([str(tmp_path / "absent.log")])
    names, problems = log_files([str(tmp_path)])
    assert not names
    assert "contains no files" in problems[0]


def test_rank_of_a_name() -> None:
    assert source_of("x/dedicated_log_torch_trace_rank_12_ab3.log").rank == 12
    assert source_of("x/dedicated_log_torch_trace_ab3.log").rank is None


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_bomb_is_left_where_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(input_files, "_FREE_BYTES", 4 << 20)
    packer = gzip.compress if suffix == ".gz" else lzma.compress
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(packer(b"\0" * (64 << 20)))
    tally = ReadTally()
    assert len(read(str(path), tally)) < 64 << 20
    assert "times its size" in tally.problems[0]
    assert tally.cut_tail


def test_a_damaged_archive_gives_what_it_can(tmp_path: Path) -> None:
    text = os.urandom(200_000).hex().encode() + b"\n"
    packed = gzip.compress(text)
    path = tmp_path / "a.gz"
    path.write_bytes(packed[: len(packed) // 2])
    tally = ReadTally()
    assert read(str(path), tally) == b"" or tally.problems
    assert "could not be read past" in tally.problems[0]


def test_endless_lines_keep_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "LONGEST_LINE", 1000)
    tally = ReadTally()
    lines = LogLines(tally)
    got = [lines.add(b"short\n"), *(lines.add(b"x" * 600) for _ in range(10))]
    got += [lines.add(b"end of it\nnext\nla"), lines.end()]
    text = b"".join(got)
    assert text == b"short\n" + b"x" * 1000 + b"\nnext\nla"
    assert tally.cut_lines == 1


def test_lines_are_whole_however_they_come() -> None:
    data = b"".join(b"%d%s\n" % (n, b"y" * (n % 50)) for n in range(500))
    for step in (1, 7, 64, 5000):
        lines = LogLines(ReadTally())
        parts = [lines.add(data[at : at + step]) for at in range(0, len(data), step)]
        assert b"".join([*parts, lines.end()]) == data
        assert all(part.endswith(b"\n") for part in parts if part)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    from compilescope.logs.reader import read_logs

    path = tmp_path / "a.log"
    path.write_text("x\n")
    path.chmod(0)
    read = read_logs([str(path)], tmp_path / "home")
    assert "cannot be opened" in read.sources[0].problems[0]
