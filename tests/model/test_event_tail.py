"""Event files that grow while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import event
from compilescope.record.bodies import CudagraphSkip
from compilescope.record.event import encode
from compilescope.record.eventfile import EventTail, Replaced


def line(number: int, reason: str = "mutated inputs") -> bytes:
    return encode(event(CudagraphSkip(reason), number=number)) + b"\n"


def ids(tail: EventTail) -> list[str]:
    return [found.id for found in tail.read()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events-0.jsonl"
    path.write_bytes(b"")
    return path


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


def test_each_line_is_read_once(file: Path) -> None:
    tail = EventTail(file)
    assert ids(tail) == []
    append(file, line(0) + line(1))
    assert ids(tail) == ["0.0", "0.1"]
    assert ids(tail) == []
    append(file, line(2))
    assert ids(tail) == ["0.2"]


@pytest.mark.parametrize("at", range(1, len(line(0)), 9))
def test_a_line_is_read_when_it_has_ended(file: Path, at: int) -> None:
    tail = EventTail(file)
    append(file, line(0) + line(1)[:at])
    assert ids(tail) == ["0.0"]
    append(file, line(1)[at:])
    assert ids(tail) == ["0.1"]


@pytest.mark.parametrize("most", [len(line(0)), 200, 333, 1000, 10_000])
def test_much_is_read_in_parts(file: Path, most: int) -> None:
    lines = [line(number) for number in range(50)]
    most = max(most, max(map(len, lines)))
    append(file, b"".join(lines))
    tail = EventTail(file, most)
    found = ids(tail)
    while tail.has_more:
        found += ids(tail)
    assert found == [f"0.{number}" for number in range(50)]


def test_a_line_without_end_is_passed_over(file: Path) -> None:
    append(file, line(0) + line(1, "x" * 5000) + line(2))
    tail = EventTail(file, 1000)
    found = ids(tail)
    while tail.has_more:
        found += ids(tail)
    assert found == ["0.0", "0.2"]
    assert tail.unread == 1


def test_what_is_no_event_is_counted(file: Path) -> None:
    append(file, b"\xff\n\n{}\n" + line(0) + b"[]\n")
    tail = EventTail(file)
    assert ids(tail) == ["0.0"]
    assert tail.unread == 3


@pytest.mark.parametrize("how", ["shorter", "another"])
def test_a_file_that_is_another_one_is_noticed(file: Path, how: str) -> None:
    append(file, line(0) + line(1))
    tail = EventTail(file)
    assert len(ids(tail)) == 2
    if how == "shorter":
        file.write_bytes(line(0))
    else:
        other = file.with_suffix(".new")
        other.write_bytes(line(0) + line(1) + line(2))
        other.replace(file)
    with pytest.raises(Replaced):
        tail.read()


def test_a_file_that_is_gone_is_an_error(file: Path) -> None:
    tail = EventTail(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        tail.read()
