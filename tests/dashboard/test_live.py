"""A run, live while it happens: what viewers are told, whatever happens to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import samples
from builders import event, frame
from compilescope.apps.dashboard.live import live_runs, tail
from compilescope.apps.dashboard.live.live_entries import KINDS, kind_of, moment, own_times
from compilescope.apps.dashboard.live.live_runs import KEPT
from compilescope.apps.dashboard.live.tail import LiveTotals
from compilescope.apps.dashboard.pages import live as live_page
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    GraphCaptured,
    JobEnded,
    Phase,
    Recompile,
)
from compilescope.record.event import encode
from compilescope.record.header import read_header
from compilescope.report.render.html import draw
from dashboard_server import Served, serving
from live_runs import STARTED, LiveRun, Viewer, broke
from waiting import until

_CODE = samples.CODE


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("live") / ".compilescope"
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def board(home: Path) -> Iterator[Served]:
    """One for all: each test has a run of its own. Patient: on a busy machine a viewer may take a
    second from its connection to its request."""
    with serving(home) as served:
        yield served


@pytest.fixture
def impatient(home: Path) -> Iterator[Served]:
    with serving(home, limits=BrowserLimits(stalled_s=0.5)) as served:
        yield served


def watched(board: Served, run: LiveRun) -> Any:
    return board.server.config.app.state.dashboard.live.watched.get(run.name)


def test_a_viewer_sees_what_there_is_and_then_what_comes(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED, broke())
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 2)
    assert viewer.kinds == ["snapshot"]
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame())
    run.write(
        GraphCaptured(stage="dynamo", ops=3, frame=_CODE, region=_CODE, backend="eager"),
        GraphCaptured(stage="aot", ops=3),
        Recompile(_CODE, (CacheEntryMiss("0/0", (guard,)),)),
        CompileTime(40_000_000, frame=_CODE),
    )
    until(lambda: len(viewer.seen) == 5)
    assert viewer.totals == {
        "graphs": 1,
        "breaks": 1,
        "recompiles": 1,
        "failures": 0,
        "violations": 0,
        "compile_seconds": 0.04,
    }
    text = " ".join(viewer.texts)
    assert "model.py:8" in text and "Data-dependent branching" in text and "GB0170" in text
    assert "<mark>h.mean() &gt; 0</mark>" in text or "<mark>" in text
    assert "x.size()[0]" in text and "expected 2, got 3" in text
    assert "graph, 3 ops → eager" in text and "compiled in 40 ms" in text
    run.end()
    assert viewer.closed.wait(600)
    assert viewer.end["state"] == "ended" and viewer.end["words"] == "Finished."
    assert viewer.counts == {"process": 1, "break": 1, "graph": 1, "recompile": 1, "compile": 1}


def test_two_viewers_share_one_reader(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    first = Viewer(board.base, run.name)
    until(lambda: first.events == ["0.0"])
    second = Viewer(board.base, run.name)
    until(lambda: second.events == ["0.0"])
    only = watched(board, run)
    assert only.viewers == 2
    run.write(broke(1))
    run.write(broke(2))
    for viewer in (first, second):
        until(lambda viewer=viewer: viewer.events == ["0.0", "0.1", "0.2"])
    assert first.last == second.last
    first.leave()
    until(lambda: only.viewers == 1)
    second.leave()
    until(lambda: only.viewers == 0)


def test_who_comes_back_gets_neither_gaps_nor_doubles(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    stays = Viewer(board.base, run.name)
    until(lambda: len(stays.seen) == 1)
    goes = Viewer(board.base, run.name)
    until(lambda: len(goes.seen) == 1)
    place = goes.leave()
    for number in range(3):
        run.write(broke(number))
        until(lambda n=number: len(stays.seen) == 2 + n)
    back = Viewer(board.base, run.name, after=place)
    run.write(broke("last"))
    until(lambda: len(back.seen) == 4)
    assert "snapshot" not in back.kinds
    assert goes.events + back.events == [f"0.{n}" for n in range(5)]
    assert back.totals["breaks"] == 4


@pytest.mark.parametrize("after", ["cafe-1", "nonsense", "x-99999999999999999", "-", "-1"])
def test_who_comes_with_an_unknown_place_begins_anew(board: Served, home: Path, after: str) -> None:
    run = LiveRun(home)
    run.write(STARTED, broke())
    viewer = Viewer(board.base, run.name, after=after)
    until(lambda: viewer.events == ["0.0", "0.1"])
    assert viewer.kinds == ["snapshot"]


def test_a_restart_of_the_server_loses_and_repeats_nothing(tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    home.mkdir()
    run = LiveRun(home)
    run.write(STARTED, broke(1))
    with serving(home) as board:
        viewer = Viewer(board.base, run.name)
        until(lambda: len(viewer.seen) == 2)
        run.write(broke(2))
        until(lambda: len(viewer.seen) == 3)
        port = board.options.port
    assert viewer.closed.wait(600)
    run.write(broke(3))
    with serving(home, port=port) as board:
        back = Viewer(board.base, run.name, after=viewer.last)
        until(lambda: len(back.seen) == 4)
        run.write(broke(4))
        until(lambda: len(back.seen) == 5)
        assert back.events == [f"0.{n}" for n in range(5)]
        assert back.totals["breaks"] == 4
        run.end()
        assert back.closed.wait(600)


def test_a_half_line_waits_for_its_end(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 1)
    line = run.line(broke("half"))
    run.append(line[:40])
    run.write(STARTED, rank=1)
    until(lambda: len(viewer.seen) == 2)
    assert viewer.events == ["0.0", "1.0"]
    run.append(line[40:])
    until(lambda: len(viewer.seen) == 3)
    assert viewer.events == ["0.0", "1.0", "0.1"]


def test_ranks_that_come_later_are_read_too(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 1)
    for rank in (1, 2):
        run.write(STARTED, broke(rank), rank=rank)
    until(lambda: len(viewer.seen) == 5)
    assert "rank 2" in " ".join(viewer.texts)


def test_garbage_is_passed_over(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.append(b"\xff\xfe not json\n\n[1, 2]\n" + run.line(broke()))
    viewer = Viewer(board.base, run.name)
    until(lambda: viewer.events == ["0.0"])


def test_a_link_to_nowhere_is_no_file_of_the_run(board: Served, home: Path) -> None:
    run = LiveRun(home)
    (run.folder / "events-7.jsonl").symlink_to(home / "nowhere")
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: viewer.events == ["0.0"])
    run.write(broke())
    until(lambda: viewer.events == ["0.0", "0.1"])
    assert viewer.kinds == ["snapshot", "update"]


@pytest.mark.parametrize("how", ["replaced", "truncated", "removed"])
def test_a_file_that_is_another_one_is_read_anew(board: Served, home: Path, how: str) -> None:
    run = LiveRun(home)
    run.write(STARTED, broke("old"), broke("older"))
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 3)
    file = run.folder / "events-0.jsonl"
    if how == "replaced":
        other = run.folder / "other"
        other.write_bytes(file.read_bytes() + run.line(broke("new")))
        other.replace(file)
        left = 4
    elif how == "truncated":
        file.write_bytes(run.line(broke("new")))
        left = 1
    else:
        file.unlink()
        run.write(broke("new"), rank=3)
        left = 1
    until(lambda: len(viewer.seen) == left and viewer.totals["breaks"] == max(1, left - 1))
    assert viewer.kinds.count("snapshot") >= 2
    assert "new" in " ".join(viewer.texts)


def test_a_folder_that_is_deleted_ends_the_view(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 1)
    shutil.rmtree(run.folder)
    assert viewer.closed.wait(600)
    assert viewer.end["state"] == "gone" and "deleted" in viewer.end["words"]
    assert board.client.get(f"/runs/{run.name}/events").status_code == 404
    again = LiveRun(home, run.name)
    again.write(STARTED, broke())
    back = Viewer(board.base, run.name, after=viewer.last)
    until(lambda: len(back.seen) == 2)


def test_a_flood_is_counted_and_its_newest_are_shown(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 1)
    run.append(b"".join(run.line(broke(number % 7)) for number in range(10_000)))
    until(lambda: len(viewer.seen) + viewer.skipped == 10_001)
    assert viewer.totals["breaks"] == 7
    assert viewer.events[-1] == "0.10000"
    assert len(viewer.seen) < 1000
    late = Viewer(board.base, run.name)
    until(lambda: late.counts.get("break") == 10_000)
    assert len(late.seen) <= KEPT and late.events[-1] == "0.10000"
    only = watched(board, run)
    assert sum(len(update.encoded) for update in only._updates) < 2 << 20


def test_fifty_viewers_each_see_everything(board: Served, home: Path) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewers = [Viewer(board.base, run.name) for _ in range(50)]
    until(lambda: all(viewer.seen for viewer in viewers))
    only = watched(board, run)
    assert only.viewers == 50
    for number in range(5):
        run.write(*(broke(f"{number} {n}") for n in range(4)))
    until(lambda: all(len(viewer.seen) == 21 for viewer in viewers))
    run.end()
    expected = [f"0.{n}" for n in range(21)]
    for viewer in viewers:
        assert viewer.closed.wait(600)
        assert viewer.events == expected and viewer.end["state"] == "ended"
    until(lambda: only.viewers == 0)


@pytest.mark.slow
def test_a_viewer_who_never_reads_is_dropped(
    impatient: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = impatient
    monkeypatch.setattr(live_runs, "POLL_S", 0.01)
    run = LiveRun(home)
    run.write(STARTED)
    reads = Viewer(board.base, run.name)
    until(lambda: len(reads.seen) == 1)
    only = watched(board, run)
    long = frame(source="<" * 290, column=None, end_column=None)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", board.options.port))
        host = f"127.0.0.1:{board.options.port}"
        deaf.sendall(f"GET /runs/{run.name}/events HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        until(lambda: only.viewers == 2)
        before = len(board.server.server_state.connections)
        written = 0
        while only.viewers == 2:
            lines = [run.line(broke("&" * 290), stack=(long,)) for _ in range(40)]
            run.append(b"".join(lines))
            written += 40
            until(lambda: len(reads.seen) + reads.skipped == written + 1)
            assert only._bytes <= 2 << 20
        until(lambda: len(board.server.server_state.connections) < before)
    assert reads.totals["breaks"] == 1 and not reads.closed.is_set()


def test_hostile_text_is_escaped(board: Served, home: Path) -> None:
    run = LiveRun(home, root=samples.ROOT)
    events = samples.hostile_run().events
    run.append(b"".join(encode(each) + b"\n" for each in events))
    viewer = Viewer(board.base, run.name)
    shown = [each for each in events if kind_of(each) is not None]
    until(lambda: len(viewer.seen) == len(shown) > 8)
    for text in viewer.texts:
        assert "<script" not in text and "<img" not in text and "\x00" not in text
        assert "\u202e" not in text and "</details>" not in text


@pytest.mark.parametrize("name", samples.RUNS)
def test_totals_are_those_of_the_report(name: str) -> None:
    run = samples.RUNS[name]
    totals = LiveTotals()
    for each in run.events:
        totals.add(each)
    found = digest(run)
    assert totals.breaks == len(found.sites)
    assert totals.break_events == found.break_events
    assert totals.recompiles == sum(frame.count for frame in found.recompiles)
    assert totals.graphs == found.graphs
    assert totals.failures == len(found.failures)
    assert totals.compile_seconds == pytest.approx(found.compile_seconds, abs=0.002)


@pytest.mark.parametrize("name", samples.RUNS)
def test_every_kind_of_event_is_small(name: str) -> None:
    run = samples.RUNS[name]
    for each in run.events[:500]:
        kind = kind_of(each)
        if kind is not None:
            assert kind in KINDS
            assert len(draw((moment(each, run.header.root, 0),))) < 20_000


def test_what_is_counted_once_is_not_remembered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tail, "_MOST_DISTINCT", 3)
    totals = LiveTotals()
    for number in range(5):
        totals.add(event(broke(number), number=number))
    assert totals.breaks == 3
    assert totals.figures().figures[1].value == "at least 3"


def test_numbers_too_large_to_be_sent_end_nothing(board: Served, home: Path) -> None:
    run = LiveRun(home)
    endless = JobEnded(name="x", state="ok", compile_seconds=1.7e308)
    run.write(STARTED, endless, endless, broke())
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 4)
    run.end()
    assert viewer.closed.wait(600)
    assert viewer.end["state"] == "ended"


def test_phases_add_up() -> None:
    phases = [Phase("a", 0, 10), Phase("b", 1, 6, 1), Phase("c", 2, 4, 2), Phase("b", 8, 1, 1)]
    assert own_times(phases) == {"a": 3, "b": 3, "c": 4}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"exit_status": 3}, "Exited with status 3."),
        ({"exit_status": None, "signal": 9}, "Killed by SIGKILL."),
        ({"exit_status": None}, "Finished."),
    ],
)
def test_how_it_ended_is_said(board: Served, home: Path, how: Any, words: str) -> None:
    run = LiveRun(home)
    run.write(STARTED)
    viewer = Viewer(board.base, run.name)
    until(lambda: len(viewer.seen) == 1)
    run.write(broke())
    run.end(**how)
    assert viewer.closed.wait(600)
    assert viewer.events == ["0.0", "0.1"], "what was written before the end is not lost"
    assert viewer.end["words"] == words


def sleeping() -> subprocess.Popen[bytes]:
    """A process that stands for a launcher."""
    code = "import signal, time\nprint(1, flush=True)\ntime.sleep(3600)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_killed_run_is_said_to_have_recorded_no_end(board: Served, home: Path) -> None:
    with sleeping() as launcher:
        run = LiveRun(home, launcher_pid=launcher.pid, main_pid=launcher.pid)
        run.write(STARTED)
        viewer = Viewer(board.base, run.name)
        until(lambda: len(viewer.seen) == 1)
        launcher.kill()
        launcher.wait()
    assert viewer.closed.wait(600)
    assert viewer.end["state"] == "lost"
    assert "without recording its end" in viewer.end["words"]


def test_where_only_the_launcher_was_killed_the_program_is_named(board: Served, home: Path) -> None:
    with sleeping() as launcher, sleeping() as program:
        run = LiveRun(home, launcher_pid=launcher.pid, main_pid=program.pid)
        viewer = Viewer(board.base, run.name)
        until(lambda: viewer.kinds == ["snapshot"])
        launcher.kill()
        launcher.wait()
        assert viewer.closed.wait(600)
        assert f"process {program.pid}) is still running" in viewer.end["words"]
        program.kill()


def test_stop_interrupts_the_launcher(board: Served, home: Path) -> None:
    with sleeping() as launcher:
        run = LiveRun(home, launcher_pid=launcher.pid)
        viewer = Viewer(board.base, run.name)
        until(lambda: viewer.kinds == ["snapshot"])
        answer = board.client.post(f"/runs/{run.name}/stop", follow_redirects=False)
        assert answer.status_code == 303 and answer.headers["location"] == f"/runs/{run.name}"
        assert launcher.wait(600) == -signal.SIGINT
    assert viewer.closed.wait(600)


def test_kill_ends_what_does_not_listen(
    board: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, "_GRACE_S", 60.0)  # However busy the machine is.
    code = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "deaf = 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); '\n"
        "deaf += 'print(1, flush=True); time.sleep(3600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(1, flush=True)\n"
        "sys.exit(7 if child.wait() == -9 else 8)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with launcher:
        assert launcher.stdout is not None and launcher.stdout.readline()
        run = LiveRun(home, launcher_pid=launcher.pid)
        assert board.client.post(f"/runs/{run.name}/stop").status_code == 200
        assert launcher.poll() is None
        page = board.client.get(f"/runs/{run.name}").text
        assert "Stopping…" in page
        answer = board.client.post(
            f"/runs/{run.name}/stop", data={"how": "kill"}, follow_redirects=False
        )
        assert answer.status_code == 303
        assert launcher.wait(600) == 7, "the launcher lives on to record that its program is gone"


def test_only_a_live_run_of_this_user_is_stopped(board: Served, home: Path) -> None:
    ended = LiveRun(home, "ended")
    ended.end()
    own = LiveRun(home, "own", launcher_pid=os.getpid())
    late = LiveRun(home, "late", launcher_pid=os.getppid(), started_ns=1)
    away = LiveRun(home, "away", host="elsewhere.example")
    system = LiveRun(home, "system", launcher_pid=1)
    os.kill(os.getpid(), 0)
    for run in (ended, own, late, away, *([system] if os.getuid() else [])):
        answer = board.client.post(f"/runs/{run.name}/stop")
        assert answer.status_code == 400, run.name
    assert read_header(ended.folder).exit_status == 0


@pytest.mark.parametrize("given", [{"how": "terminate"}, {"how": "kill", "pid": "1"}])
def test_other_ways_to_stop_are_refused(board: Served, home: Path, given: Any) -> None:
    run = LiveRun(home)
    answer = board.client.post(f"/runs/{run.name}/stop", data=given)
    assert answer.status_code == 400


def test_stopping_needs_the_token(board: Served, home: Path) -> None:
    run = LiveRun(home)
    headers = {"origin": board.base, "sec-fetch-site": "same-origin"}
    with board.stranger(headers=headers) as stranger:
        assert stranger.post(f"/runs/{run.name}/stop").status_code == 401
        page = stranger.get(f"/runs/{run.name}", headers={"accept": "text/html"}).text
    assert "running" in page and 'action="/runs/' not in page


def test_the_page_of_a_live_run(board: Served, home: Path) -> None:
    run = LiveRun(home)
    page = board.client.get(f"/runs/{run.name}").text
    assert page.count("<h1") == 1 and "model.py --steps 3" in page
    assert "on the terminal that started it" in page
    assert f'data-events="/runs/{run.name}/events"' in page


def test_a_reader_ends_after_its_last_viewer(
    board: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = board.server.config.app.state.dashboard.live
    monkeypatch.setattr(live, "_linger", 0.01)
    run = LiveRun(home)
    viewer = Viewer(board.base, run.name)
    until(lambda: viewer.kinds == ["snapshot"])
    only = watched(board, run)
    viewer.leave()
    until(lambda: watched(board, run) is None)
    until(lambda: only._task.done())
