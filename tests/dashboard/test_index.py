"""The index of runs: what it says, what it keeps, and what it reads again."""

from __future__ import annotations

import functools
import os
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import samples
from builders import event
from compilescope.apps.dashboard.runs import index as run_index
from compilescope.apps.dashboard.runs import reader_client
from compilescope.apps.dashboard.runs.entry import stamp_of
from compilescope.apps.dashboard.runs.index import RunIndex
from compilescope.apps.dashboard.runs.reader import KnownRun, examine
from compilescope.apps.dashboard.runs.reader_client import FailedRead, ReaderClient
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.base.processes import deadline
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import GraphCaptured
from compilescope.record.event import encode
from compilescope.record.header import RunHeader, read_header, write_header
from compilescope.record.labels import Labels, write_labels
from compilescope.record.run import read_run
from waiting import until


def is_read(index: RunIndex) -> bool:
    index.rows()
    progress = index.progress()
    return progress.read == progress.runs


def by_run(index: RunIndex) -> dict[str, RunRow]:
    return {row.run: row for row in index.rows()}


def captured(number: int) -> bytes:
    return encode(event(GraphCaptured(stage="dynamo", ops=1), number=number)) + b"\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three runs, from the oldest to the newest."""
    home = tmp_path / ".compilescope"
    for number, name in enumerate(("full", "ranks", "swept"), 1):
        folder = samples.store(samples.RUNS[name], home, name)
        header = msgspec.structs.replace(
            read_header(folder), started_ns=number * 10**9, ended_ns=(number + 5) * 10**9
        )
        write_header(folder, msgspec.structs.replace(header, exit_status=0))
    return home


@pytest.fixture
def index(home: Path) -> Iterator[RunIndex]:
    with closing(RunIndex(home)) as made:
        yield made


def test_rows_say_what_the_reports_say(sample_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(sample_home, home, ignore=shutil.ignore_patterns(".*"))
    with closing(RunIndex(home)) as index:
        assert len(index.rows()) == len(samples.RUNS)
        until(lambda: is_read(index))
        rows = by_run(index)
    for run, row in rows.items():
        seen = digest(read_run(home / run))
        assert row.problem == ""
        if row.kind == "benchmark":
            continue  # Its figures are sums over its models: see test_figures.
        jobs = seen.jobs
        assert row.breaks == len(seen.sites) + sum(job.breaks or 0 for job in jobs)
        assert row.graphs == seen.graphs
        assert row.compile_seconds == pytest.approx(seen.compile_seconds, abs=1e-3)
        again = sum(frame.avoidable for frame in seen.recompiles)
        assert row.recompiles == again + sum(job.recompiles or 0 for job in jobs)
        assert row.torch == (seen.torch or "")


def test_rows_come_at_once_and_figures_later(index: RunIndex, home: Path) -> None:
    first = index.rows()
    assert [row.run for row in first] == ["swept", "ranks", "full"]
    assert first[0].status == "ok" and first[0].seconds == 5 and first[0].started == 3
    assert first[2].folder == home / "full"
    until(lambda: is_read(index))
    assert by_run(index)["full"].breaks == 1
    assert [row.kind for row in index.rows()] == ["sweep", "run", "run"]
    assert not any(row.pending for row in index.rows())


def test_what_was_read_is_there_after_a_restart(home: Path) -> None:
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
        rows = index.rows()
    with closing(RunIndex(home)) as again:
        assert again.rows() == rows


def test_only_what_changed_is_read_again(index: RunIndex, home: Path) -> None:
    until(lambda: is_read(index))
    header = read_header(home / "full")
    with (home / "full" / "events-0.jsonl").open("ab") as file:
        file.write(captured(90))
    write_header(home / "full", msgspec.structs.replace(header, exit_status=3))
    until(lambda: by_run(index)["full"].status == "exit 3")
    until(lambda: by_run(index)["full"].graphs == 2)
    assert by_run(index)["ranks"].graphs == 2


def test_labels_are_seen_and_figures_stay(index: RunIndex, home: Path) -> None:
    until(lambda: is_read(index))
    write_labels(home / "full", Labels(("a", "b"), "Why."))
    index.changed("full")
    row = by_run(index)["full"]
    assert (row.tags, row.note, row.breaks) == (("a", "b"), "Why.", 1)
    (home / "full" / "labels.json").write_text("{")
    index.changed("full")
    row = by_run(index)["full"]
    assert row.tags == () and "damaged" in row.problem and row.breaks == 1


def test_what_is_deleted_disappears(index: RunIndex, home: Path) -> None:
    until(lambda: is_read(index))
    shutil.rmtree(home / "ranks")
    assert set(by_run(index)) == {"full", "swept"}
    samples.store(samples.RUNS["later"], home, "later")
    assert set(by_run(index)) == {"full", "swept", "later"}
    until(lambda: is_read(index))
    shutil.rmtree(home)
    assert index.rows() == []


def test_what_cannot_be_read_has_a_reason(index: RunIndex, home: Path) -> None:
    (home / "odd").mkdir()
    (home / "future").mkdir()
    (home / "future" / "run.json").write_text('{"schema": 99}')
    (home / ".jobs").mkdir()
    (home / "link").symlink_to(home / "full")
    (home / "file").touch()
    assert len(index.rows()) == 3
    reasons = dict(index.unreadable())
    assert set(reasons) == {"odd", "future"}
    assert "no run.json" in reasons["odd"] and "newer compilescope" in reasons["future"]
    shutil.copy(home / "full" / "run.json", home / "odd")
    until(lambda: "odd" in by_run(index))


@pytest.mark.parametrize("data", [b"garbage" * 999, b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_cache_is_made_anew(data: bytes, home: Path) -> None:
    (home / reader_client.FILE_NAME).write_bytes(data)
    for _ in range(2):
        with closing(RunIndex(home)) as index:
            until(functools.partial(is_read, index))
            assert by_run(index)["full"].breaks == 1
    with closing(sqlite3.connect(home / reader_client.FILE_NAME)) as opened:
        assert opened.execute("SELECT count(*) FROM entries").fetchone() == (3,)


def test_entries_that_make_no_sense_are_read_again(home: Path) -> None:
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
    with closing(sqlite3.connect(home / reader_client.FILE_NAME)) as opened, opened:
        opened.execute("UPDATE entries SET data = 'x' WHERE name = 'full'")
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
        assert by_run(index)["full"].breaks == 1


def test_another_version_counts_for_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
    monkeypatch.setattr(reader_client, "_FORM", "another")
    assert reader_client.Cache(home).load() == []


def test_a_folder_without_a_cache_has_one_in_memory(home: Path) -> None:
    (home / reader_client.FILE_NAME).mkdir()
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
        assert by_run(index)["full"].breaks == 1


def test_two_servers_of_one_folder(index: RunIndex, home: Path) -> None:
    with closing(RunIndex(home)) as other:
        until(lambda: is_read(index) and is_read(other))
        samples.store(samples.RUNS["later"], home, "later")
        until(lambda: is_read(index) and is_read(other))
        assert index.rows() == other.rows()


def test_a_live_run_grows(index: RunIndex, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LIVE_S", "_LIVE_SHARE", "_TRUST_S"):
        monkeypatch.setattr(run_index, name, 0)  # Every look is one at the files.
    header = RunHeader(
        run="live",
        tool="0",
        command=("train.py",),
        host=socket.gethostname(),
        launcher_pid=os.getpid(),
        started_ns=time.time_ns(),
    )
    (home / "live").mkdir()
    write_header(home / "live", header)
    events = home / "live" / "events-0.jsonl"
    events.write_bytes(captured(0))
    row = by_run(index)["live"]
    assert row.live and row.status == "running" and row.seconds is not None
    until(lambda: by_run(index)["live"].graphs == 1)
    with events.open("ab") as file:
        file.write(captured(1))
    until(lambda: by_run(index)["live"].graphs == 2)
    with events.open("ab") as file:
        file.write(captured(2))
    ended = msgspec.structs.replace(header, ended_ns=time.time_ns(), signal=9)
    write_header(home / "live", ended)
    until(lambda: by_run(index)["live"].status == "SIGKILL")
    until(lambda: by_run(index)["live"].graphs == 3)
    assert not by_run(index)["live"].live


def test_a_run_that_ended_while_no_server_ran(home: Path) -> None:
    """Killed with its launcher: nothing but its events changed."""
    header = msgspec.structs.replace(
        read_header(home / "full"), ended_ns=None, exit_status=None, launcher_pid=1, host="gone"
    )
    write_header(home / "full", header)
    with closing(RunIndex(home)) as index:
        until(lambda: is_read(index))
    with (home / "full" / "events-0.jsonl").open("ab") as file:
        file.write(captured(90))
    with closing(RunIndex(home)) as index:
        assert by_run(index)["full"].status == "cut short"
        until(lambda: by_run(index)["full"].graphs == 2)


_SLOW = """
import pathlib, time
from compilescope.record import eventfile

opened = eventfile.open_plain

def open_plain(path, **how):
    if "ranks" in path.parts:
        pathlib.Path("{mark}").touch()
        time.sleep(600)
    return opened(path, **how)

eventfile.open_plain = open_plain
"""


def test_a_run_that_cannot_be_read_in_time_is_one_row(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "hangs"
    (tmp_path / "sitecustomize.py").write_text(_SLOW.replace("{mark}", str(mark)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with closing(RunIndex(home, longest_s=601)) as index:
        index.rows()
        until(mark.exists)
        # What the clock would do: nobody waits for ten minutes.
        monkeypatch.setattr(deadline, "_stopped_s", -601)
        until(lambda: is_read(index))
        rows = by_run(index)
    assert "more than 601 s" in rows["ranks"].problem and rows["ranks"].breaks is None
    assert rows["full"].breaks == 1 and rows["swept"].breaks is not None
    with closing(sqlite3.connect(home / reader_client.FILE_NAME)) as opened:
        names = opened.execute("SELECT name FROM entries ORDER BY name").fetchall()
    assert names == [("full",), ("swept",)]


def test_a_process_that_cannot_begin_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(home / "no-such-python"))
    reading = ReaderClient(home, 10)
    (answer,) = reading.read([KnownRun("full", 0, "")])
    assert isinstance(answer, FailedRead) and answer.name == ""


def test_a_run_that_is_as_known_is_not_read(home: Path) -> None:
    folder = home / "full"
    touched, stamp = folder.stat().st_mtime_ns, stamp_of(folder)
    assert list(examine(folder, KnownRun("full", touched, stamp))) == []
    write_labels(folder, Labels(("a",)))
    (entry,) = examine(folder, KnownRun("full", touched, stamp))
    assert not isinstance(entry, str) and entry.labels.tags == ("a",) and entry.figures is None
    name, entry = examine(folder, KnownRun("full", touched, ""))
    assert name == "full" and not isinstance(entry, str) and entry.figures is not None
    assert list(examine(home / "absent", KnownRun("absent", 0, ""))) == []


def test_odd_names_and_headers_are_rows_or_reasons(home: Path) -> None:
    os.mkdir(os.fsencode(home) + b"/r\xff\x1b")
    for name, more in (("odd", 0), ("late", 10**400), ("early", -1)):
        (home / name).mkdir()
        (home / name / "run.json").write_text(
            '{"schema": 1, "run": "odd", "tool": "0", "command": ["\\ud800.py"], '
            f'"started_ns": {more}, "launcher_pid": {10**30}}}'
        )
    for _ in range(2):
        with closing(RunIndex(home)) as index:
            until(functools.partial(is_read, index))
            row = by_run(index)["odd"]
            assert row.command == ("\\ud800.py",) and row.breaks == 0 and row.status == "cut short"
            msgspec.json.encode([each.command for each in index.rows()])
            reasons = dict(index.unreadable())
            assert list(reasons) == ["early", "late", "r\\udcff\\x1b"]
            assert "impossible time" in reasons["late"]
