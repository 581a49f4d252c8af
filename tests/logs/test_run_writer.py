"""Names of the processes of a log in its run: alone in a folder, and beside other writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.logs.run_writer import RunWriter, remove_marks
from compilescope.record.bodies import ProcessEnded, ProcessStarted, StanceChanged
from compilescope.record.header import RunHeader
from compilescope.record.run import read_run

_SEEN = ((0, 7), (1, 7), (1, 8), (0, 10_000_007), (0, 7), (2, 7))
"""Rank and pid of each event, as a log may tell them: a second 7 becomes 10,000,007."""


def _written(folder: Path, *, alone: bool) -> list[tuple[str, int, str]]:
    folder.mkdir()
    writer = RunWriter(folder, alone=alone)
    for time_ns, (rank, pid) in enumerate(_SEEN, 1):
        writer.event(StanceChanged("default"), time_ns=time_ns, pid=pid, rank=rank)
    writer.close()
    remove_marks(folder)
    run = read_run(folder, header=RunHeader(run="r", tool="1", command=("a",)))
    files = sorted(path.name for path in folder.glob("events-*"))
    return [(event.id, event.pid, file) for event, file in zip(run.events, files * 9, strict=False)]


def test_a_writer_alone_names_processes_as_it_would_beside_others(tmp_path: Path) -> None:
    alone = _written(tmp_path / "alone", alone=True)
    assert alone == _written(tmp_path / "shared", alone=False)
    assert len({pid for _, pid, _ in alone}) == len(set(_SEEN))


@pytest.mark.parametrize("alone", [True, False])
def test_only_writers_that_share_a_folder_leave_marks_in_it(tmp_path: Path, alone: bool) -> None:
    writer = RunWriter(tmp_path, alone=alone)
    writer.started(pid=7)
    assert bool(list(tmp_path.glob(".process-*"))) is not alone
    writer.close()
    assert (tmp_path / "events-0.jsonl").is_file()


def test_thousands_of_processes_share_files_and_are_told_apart(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, alone=True)
    most = 1_200
    for time_ns, pid in enumerate([*range(most)] * 2, 10):
        writer.event(StanceChanged("default"), time_ns=time_ns, pid=pid, rank=pid % 3)
    writer.close()
    run = read_run(tmp_path, header=RunHeader(run="r", tool="1", command=("a",)))
    seen = [(event.pid, event.rank) for event, _ in run.of(StanceChanged)]
    assert seen == [(pid, pid % 3) for pid in range(most)] * 2
    assert run.count(ProcessStarted) == run.count(ProcessEnded) == most
    assert len({event.id for event in run.events}) == len(run.events) == 4 * most
    assert len([*tmp_path.glob("events-*")]) == 1_000 and not run.unread
