"""Runs on disk: headers, schema, prefixes, cut files, artifacts."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builders import event
from compilescope.base.errors import ToolError
from compilescope.record.artifacts import DiskArtifacts, artifact_name
from compilescope.record.bodies import CudagraphSkip, ProcessEnded, ProcessStarted
from compilescope.record.event import encode
from compilescope.record.eventfile import EventFile
from compilescope.record.header import SCHEMA, RunHeader, read_header, write_header
from compilescope.record.home import create_run, find_run, list_runs, new_run_id, remove_run
from compilescope.record.plain_files import read_given
from compilescope.record.presence import read_presence
from compilescope.record.run import read_run

STARTED = ProcessStarted(argv=("a.py",), python="3.11", torch="2.13.0", parent_pid=1)


def make_run(home: Path, run: str, **fields: object) -> Path:
    return create_run(home, RunHeader(run=run, tool="0", **fields))  # type: ignore[arg-type]


def write_events(folder: Path, *bodies: object, rank: int = 0) -> EventFile:
    file, name = EventFile.claim(folder, rank)
    for number, body in enumerate(bodies):
        file.write(encode(event(body, id=f"{name}.{number}")))
    return file


def test_a_run_reads_back(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc-train", ended_ns=1)
    write_events(folder, STARTED, CudagraphSkip("cpu"), ProcessEnded()).close()
    run = read_run(folder)
    assert [type(e.body).__name__ for e in run.events] == [
        "ProcessStarted",
        "CudagraphSkip",
        "ProcessEnded",
    ]
    assert run.cut_short is None
    assert run.torch_version == "2.13.0"


def test_no_end_mark_is_cut_short(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc")
    write_events(folder, STARTED)
    assert "without recording its end" in (read_run(folder).cut_short or "")


def test_an_exit_that_the_launcher_saw_needs_no_end_mark(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc", main_pid=100, exit_status=5, ended_ns=1)
    write_events(folder, STARTED)
    assert read_run(folder).cut_short is None


def test_a_signal_is_cut_short_even_with_an_end_mark(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc", main_pid=100, signal=2, ended_ns=1)
    write_events(folder, STARTED, ProcessEnded())
    assert "SIGINT" in (read_run(folder).cut_short or "")


def test_a_torn_last_line_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc")
    write_events(folder, STARTED, CudagraphSkip("cpu"))
    path = folder / "events-0.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    run = read_run(folder)
    assert (len(run.events), run.unread, run.torn) == (1, 1, True)
    assert run.cut_short is not None


def test_a_full_disk_is_counted_not_raised() -> None:
    file = EventFile(Path("/dev/full"))
    file.write(b"{}")
    assert file.lost == 1


def test_the_second_process_of_a_rank_gets_its_own_file(tmp_path: Path) -> None:
    _, first = EventFile.claim(tmp_path, 0)
    _, second = EventFile.claim(tmp_path, 0)
    _, other = EventFile.claim(tmp_path, 1)
    assert (first, second, other) == ("0", f"0:{os.getpid()}", "1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "has no schema"),
        ('{"schema": "x"}', "has no schema"),
        (json.dumps({"schema": SCHEMA + 1}), "newer compilescope"),
        (json.dumps({"schema": SCHEMA - 1}), "older compilescope"),
        (json.dumps({"schema": SCHEMA}), "damaged"),
    ],
)
def test_bad_headers_say_what_is_wrong(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ToolError, match=words):
        read_header(tmp_path)


def test_the_schema_is_in_the_file(tmp_path: Path) -> None:
    write_header(tmp_path, RunHeader(run="a", tool="0"))
    assert json.loads((tmp_path / "run.json").read_text())["schema"] == SCHEMA


def test_find_by_prefix_latest_and_path(tmp_path: Path) -> None:
    old = make_run(tmp_path, "abc-train", started_ns=1)
    new = make_run(tmp_path, "abd-infer", started_ns=2)
    assert find_run(tmp_path, None) == new
    assert find_run(tmp_path, "abc") == old
    assert find_run(tmp_path / "elsewhere", str(old)) == old
    with pytest.raises(ToolError, match="matches 2 runs"):
        find_run(tmp_path, "ab")
    with pytest.raises(ToolError, match="starts with 'x'"):
        find_run(tmp_path, "x")
    with pytest.raises(ToolError, match="no runs"):
        find_run(tmp_path / "none", None)


def test_a_damaged_run_is_listed_apart(tmp_path: Path) -> None:
    make_run(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    runs, unreadable = list_runs(tmp_path)
    assert [path.name for path, _ in runs] == ["good"]
    assert [path.name for path, _ in unreadable] == ["bad"]


def test_run_ids_are_short_and_safe() -> None:
    assert new_run_id("../../etc/passwd; rm -rf").count("/") == 0
    assert len({new_run_id("train") for _ in range(50)}) == 50


def test_artifacts_are_content_addressed(tmp_path: Path) -> None:
    store = DiskArtifacts(tmp_path / "artifacts")
    name = store.put("graph", "py")
    assert store.put("graph", "py") == name == artifact_name("graph", "py")
    assert store.get(name) == "graph"
    assert len(list((tmp_path / "artifacts").iterdir())) == 1


@pytest.mark.parametrize("name", ["../run.json", "/etc/passwd", "a" * 40, "", "a" * 40 + ".py/.."])
def test_an_artifact_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "run.json").write_text("secret")
    assert DiskArtifacts(tmp_path / "artifacts").get(name) is None


def test_one_unreadable_event_file_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc", ended_ns=1)
    write_events(folder, STARTED, CudagraphSkip("cpu"), ProcessEnded())
    (folder / "events-1.jsonl").mkdir()  # As unreadable to root as to anybody.
    os.mkfifo(folder / "events-2.jsonl")
    run = read_run(folder)
    assert run.count(CudagraphSkip) == 1
    assert [name.partition(" ")[0] for name in run.unread_files] == [
        "events-1.jsonl",
        "events-2.jsonl",
    ]
    assert run.cut_short == (
        "events-1.jsonl (Not a plain file) and 1 more event files could not be read"
    )
    assert run.narrowed(lambda event: False).unread_files == run.unread_files


def test_a_run_without_any_readable_event_file_says_so(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "abc")
    (folder / "events-0.jsonl").mkdir()
    with pytest.raises(ToolError, match="cannot be read: Not a plain file"):
        read_run(folder)


def test_a_given_file_may_be_a_pipe_that_somebody_writes_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="nobody writes to"):
        read_given(pipe)
    with pytest.raises(IsADirectoryError):
        read_given(tmp_path)
    with pytest.raises(OSError, match="too large"):
        read_given(Path("/dev/zero"), most=100)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with open(pipe, "wb") as writer:
        os.close(reading)
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(read_given, pipe)
            time.sleep(0.05)
            writer.write(b"late")
            writer.close()
            assert found.result() == b"late"


def test_why_processes_could_not_be_recorded_is_told_once_each(tmp_path: Path) -> None:
    lines = [f"{pid} failed no {pid % 3}{'!' * 500}" for pid in range(2000)]
    (tmp_path / "processes").write_text("\n".join(lines))
    presence = read_presence(tmp_path)
    assert presence is not None
    assert [reason[:4] for reason in presence.failed] == ["no 0", "no 1", "no 2"]


def test_of_a_link_only_the_link_is_removed(tmp_path: Path) -> None:
    kept, home = tmp_path / "kept", tmp_path / "runs"
    kept.mkdir()
    (kept / "run.json").write_text("{}")
    home.mkdir()
    (home / "aaa111").symlink_to(kept)
    (home / "bbb222").mkdir()
    remove_run(home / "aaa111")
    remove_run(home / "bbb222")
    assert list(home.iterdir()) == [] and (kept / "run.json").exists()
    with pytest.raises(ToolError, match="Cannot delete"):
        remove_run(home / "bbb222")
