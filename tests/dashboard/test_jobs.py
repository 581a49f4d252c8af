"""Jobs and their keepers: small programs stand for the tool's commands."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.jobs.job import (
    ENDED,
    REQUEST,
    RUNS,
    STARTED,
    UPLOAD,
    CommandJob,
    JobEnd,
    JobRequest,
    OutputLog,
    output_end,
    plain_text,
    read_output,
    read_record,
    settled,
    whole_characters,
    whole_output,
    write_record,
)
from compilescope.apps.dashboard.jobs.keeper import RESERVE
from compilescope.apps.dashboard.jobs.service import Jobs, TooManyJobs
from compilescope.apps.dashboard.jobs.words import job_label
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.base.errors import ToolError
from compilescope.base.processes import child
from compilescope.base.processes.table import is_running
from waiting import until

KEEP = (
    "import sys; from pathlib import Path; "
    "from compilescope.apps.dashboard.jobs.keeper import keep; "
    "keep(Path(sys.argv[1]), grace_s=float(sys.argv[2]), "
    "command=[sys.executable, '-c', sys.argv[3]])"
)


def over(jobs: Jobs, job: str) -> CommandJob:
    until(lambda: jobs.find(job).is_over)
    return jobs.find(job)


def output(job: CommandJob) -> str:
    return b"".join(whole_output(job.folder)).decode()


class Kept:
    """A keeper with a program instead of the tool, in a folder as a job has it."""

    def __init__(self, home: Path, code: str, grace_s: float = 0.3, **asked: object) -> None:
        self.jobs = Jobs(home, BrowserLimits())
        self.folder = self.jobs.reserve()
        record = JobRequest(
            id=self.folder.name, words=("x",), cwd=str(home), created=time.time(), **asked
        )
        write_record(self.folder, REQUEST, record)
        (self.folder / "claim").touch()
        words = [sys.executable, "-c", KEEP, str(self.folder), str(grace_s), code]
        self.process = subprocess.Popen(words, start_new_session=True)

    @property
    def job(self) -> CommandJob:
        return self.jobs.find(self.folder.name)

    def over(self) -> CommandJob:
        assert self.process.wait(600) == 0
        return self.job

    def stop(self, *, kill: bool = False) -> None:
        self.jobs.stop(self.folder.name, kill=kill)

    def prints(self, text: str) -> None:
        until(lambda: text in output(self.job))


def test_a_command_of_the_tool_runs_to_its_end(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits())
    job = jobs.start(["list", "--dir", str(tmp_path)], tmp_path, title="list")
    assert job.state == "running"
    job = over(jobs, job.id)
    assert (job.state, job.exit_status, job.runs) == ("ended", 0, ())
    assert "No runs in" in output(job)
    assert job.outcome == "Finished with exit status 0."
    assert job.started is not None and job.ended is not None and job.seconds is not None
    assert [each.id for each in jobs.all()] == [job.id]
    # Another server finds the same.
    assert Jobs(tmp_path, BrowserLimits()).find(job.id).exit_status == 0


def test_an_error_of_the_tool_is_its_exit_status(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits())
    job = over(jobs, jobs.start(["show", "--dir", str(tmp_path), "nothing"], tmp_path).id)
    assert (job.state, job.exit_status) == ("ended", 2)
    assert job.outcome.startswith("Exited with status 2: No run in ")


def test_words_are_words_and_no_shell_reads_them(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits())
    evil = "$(touch gone); `touch gone` && touch gone | cat > gone\n--help"
    job = over(jobs, jobs.start(["show", "--dir", str(tmp_path), evil], tmp_path).id)
    assert job.exit_status == 2
    assert not (tmp_path / "gone").exists()
    with pytest.raises(ToolError):
        jobs.start(["show", "a\0b"], tmp_path)
    with pytest.raises(ToolError):
        jobs.start(["show", "\udcff"], tmp_path)


def test_modules_beside_the_program_do_not_hide_the_tools_own(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('hidden')")
    jobs = Jobs(tmp_path / "home", BrowserLimits())
    job = over(jobs, jobs.start(["list"], tmp_path).id)
    expected = 0 if sys.version_info >= (3, 11) else job.exit_status
    assert job.exit_status == expected, output(job)


def test_output_comes_as_it_is_printed_and_stop_is_like_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import sys, time\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\n"
        "try: time.sleep(60)\nexcept KeyboardInterrupt: print('kept what it has'); sys.exit(130)"
    )
    kept = Kept(tmp_path, code, grace_s=60)
    kept.prints("one\ntwo\n")
    assert kept.job.state == "running"
    kept.stop()
    job = kept.over()
    assert (job.state, job.exit_status) == ("stopped", 130)
    assert output(job).endswith("kept what it has\n")
    assert job.outcome == "Stopped: exited with status 130."


def test_who_ignores_ctrl_c_gets_a_harder_end(tmp_path: Path) -> None:
    code = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\nwhile True: time.sleep(60)"
    )
    kept = Kept(tmp_path, code, grace_s=0.05)
    kept.prints("ready")
    kept.stop()
    job = kept.over()
    assert (job.state, job.exit_status) == ("stopped", -signal.SIGKILL)
    assert job.outcome == "Stopped: killed by SIGKILL."


def test_each_step_of_a_stop_waits_for_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(child, "clock", lambda: now)
    code = (
        "import signal, time\n"
        "for each in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(each, lambda number, _: print(number, flush=True))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(60)"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as program:
        assert program.stdout is not None and program.stdout.readline() == b"ready\n"
        stopping = child.Stopping(10.0)
        stopping.act(program.pid)
        assert stopping.wait_s is None, "nothing is due before somebody asks"
        stopping.ask()
        for step in (signal.SIGINT, signal.SIGTERM):
            stopping.act(program.pid)
            assert int(program.stdout.readline()) == step
            now += 9.0
            stopping.act(program.pid)
            assert stopping.wait_s == 1.0, "not yet"
            now += 1.0
        stopping.act(program.pid)
        assert program.wait(600) == -signal.SIGKILL and stopping.wait_s is None
        stopping.close()


def test_why_it_failed(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "print('an answer'); raise SystemExit(1)")
    assert kept.over().outcome == "Exited with status 1."
    kept = Kept(tmp_path, "import nowhere_at_all")
    assert "No module named 'nowhere_at_all'" in kept.over().outcome


def test_kill_has_no_grace(tmp_path: Path) -> None:
    code = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('ready', flush=True)\ntime.sleep(600)"
    )
    kept = Kept(tmp_path, code, grace_s=600)
    kept.prints("ready")
    kept.stop()
    until(lambda: kept.job.stopping is not None)
    assert kept.job.state == "running"
    kept.stop(kill=True)
    assert kept.over().exit_status == -signal.SIGKILL


def test_nothing_that_a_command_started_outlives_it(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "one = 'import time; time.sleep(600)'\n"
        "a = subprocess.Popen([sys.executable, '-c', one])\n"
        "b = subprocess.Popen([sys.executable, '-c', one], start_new_session=True)\n"
        "print(a.pid, b.pid, flush=True)\nos._exit(3)"
    )
    kept = Kept(tmp_path, code)
    job = kept.over()
    assert job.exit_status == 3
    for pid in map(int, output(job).split()):
        until(lambda pid=pid: not is_running(pid))


def test_a_time_limit_stops_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "import time; time.sleep(600)", limit_s=0.5)
    job = kept.over()
    assert (job.state, job.outcome) == ("stopped", "Stopped at its time limit of 0.5 s.")


def test_an_endless_printer_fills_neither_disk_nor_memory(tmp_path: Path) -> None:
    most = 200_000
    code = (
        "import sys\nsys.stdout.write('the beginning\\n')\n"
        "for i in range(60_000): sys.stdout.write(f'line {i:09} with some words\\n')\n"
        "sys.stdout.write('the end\\n')"
    )
    kept = Kept(tmp_path, code, output_bytes=most)
    job = kept.over()
    files = list(job.folder.glob("output*.log"))
    assert sum(path.stat().st_size for path in files) <= most
    text = output(job)
    assert text.startswith("the beginning\n")
    assert text.endswith("the end\n")
    assert job.end is not None and job.end.dropped_bytes > 1_000_000
    printed = len("the beginning\nthe end\n") + 60_000 * len("line 000000000 with some words\n")
    assert output_end(job.folder) == printed
    assert f"[{job.end.dropped_bytes:,} bytes are not kept]" in text


def test_output_in_pieces(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, 100)
    whole = b"".join(b"%04d\n" % number for number in range(100))
    for at in range(0, len(whole), 7):
        log.write(whole[at : at + 7])
    log.close()
    assert output_end(tmp_path) == len(whole)
    head = read_output(tmp_path, 0, 1000)
    assert (head.data, head.skipped) == (whole[:50], 0)
    rest = read_output(tmp_path, 50, 1000)
    assert rest.skipped == log.dropped > 0
    assert rest.data == whole[rest.start : rest.end]
    at, text = rest.end, rest.data
    while (chunk := read_output(tmp_path, at, 9)).data:
        assert not chunk.skipped
        at, text = chunk.end, text + chunk.data
    assert whole.endswith(text)
    assert read_output(tmp_path, len(whole) + 5, 9).data == b""


def test_text_is_text() -> None:
    assert (
        plain_text(b"\x1b[31mred\x1b[0m \x1b]0;title\x07<b>\0\x08\r\nnext\xff")
        == "red <b>\nnext\ufffd"
    )
    assert settled("10%\r20%\r30%\ndone\r\nlast\r") == "30%\ndone\nlast"
    euro = "a€".encode()
    assert [whole_characters(euro[:size]) for size in range(1, 5)] == [1, 1, 1, 4]
    assert whole_characters(b"a\x1b[3") == 1
    assert whole_characters(b"a\x1b[31m") == 6
    assert whole_characters(b"a\r") == 1
    assert whole_characters(b"") == 0


def test_a_killed_keeper_is_said(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    until(lambda: kept.job.begun is not None and kept.job.begun.pid is not None)
    pid = kept.job.begun.pid
    assert pid is not None
    kept.prints(str(pid))  # Later on nobody would read it, and the command would die of that.
    os.kill(kept.process.pid, signal.SIGKILL)
    kept.process.wait()
    assert kept.job.state == "lost"
    assert kept.job.orphan == pid
    assert str(pid) in kept.job.outcome
    kept.stop(kill=True)
    until(lambda: kept.job.orphan is None)
    assert kept.job.outcome == "Its keeper was killed, so how it ended is unknown."


def test_a_restarted_server_finds_and_stops_what_runs(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "import time; print('here', flush=True); time.sleep(600)", grace_s=60)
    kept.prints("here")
    again = Jobs(tmp_path, BrowserLimits())
    assert again.find(kept.folder.name).state == "running"
    again.stop(kept.folder.name)
    assert kept.over().state == "stopped"
    assert again.find(kept.folder.name).exit_status == -signal.SIGINT


def test_more_jobs_than_may_run_wait_for_each_other(tmp_path: Path) -> None:
    limits = BrowserLimits(jobs=1, waiting=2)
    first = Kept(tmp_path, "import time; print('here', flush=True); time.sleep(600)")
    first.prints("here")
    jobs = Jobs(tmp_path, limits)
    second = jobs.start(["list"], tmp_path)
    third = jobs.start(["list"], tmp_path)
    assert (second.state, third.state) == ("waiting", "waiting")
    with pytest.raises(TooManyJobs, match="2 jobs are waiting already"):
        jobs.start(["list"], tmp_path)
    # The order outlives the server; one that waits can be stopped.
    jobs = Jobs(tmp_path, limits)
    jobs.tick()
    stopped = jobs.stop(third.id)
    assert (stopped.state, stopped.exit_status) == ("stopped", None)
    assert stopped.outcome == "Stopped before it started."
    assert jobs.find(second.id).state == "waiting"
    first.stop(kill=True)
    first.over()
    jobs.tick()
    assert over(jobs, second.id).exit_status == 0


def test_two_servers_start_a_job_once(tmp_path: Path) -> None:
    """Also where both look at it at the same time: the claim is one file."""
    limits = BrowserLimits(jobs=0)
    one, other = Jobs(tmp_path, limits), Jobs(tmp_path, limits)
    job = one.start(["list"], tmp_path)
    one._limits = other._limits = BrowserLimits(jobs=5)
    one.tick()
    other.tick()
    over(one, job.id)
    assert len(one._keepers) + len(other._keepers) <= 1


def test_the_runs_of_a_job_are_those_that_it_made(tmp_path: Path) -> None:
    code = (
        "import os\nfrom pathlib import Path\n"
        "from compilescope.record.header import RunHeader\n"
        "from compilescope.record.home import create_run\n"
        f"home = Path({str(tmp_path)!r})\n"
        "create_run(home, RunHeader(run='aaa-mine', tool='1'))\n"
        "create_run(home / 'elsewhere', RunHeader(run='bbb-private', tool='1'))"
    )
    kept = Kept(tmp_path, code)
    assert kept.over().runs == ("aaa-mine",)
    found = kept.jobs.job_of("aaa-mine")
    assert found is not None and found.id == kept.folder.name
    assert kept.jobs.job_of("bbb-private") is None
    assert (kept.folder / RUNS).read_text().count("\n") == 2


def test_old_jobs_are_removed_and_running_ones_kept(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits(jobs=0), kept=3)
    waiting = jobs.start(["list"], tmp_path)
    ended = []
    for number in range(6):
        job = jobs.start(["list"], tmp_path)
        write_record(job.folder, ENDED, JobEnd(ended=time.time(), status=number))
        ended.append(job.id)
    abandoned = jobs.reserve()
    os.utime(abandoned, (1, 1))
    jobs.start(["list"], tmp_path)
    left = {job.id for job in jobs.all()}
    assert waiting.id in left
    assert [job in left for job in ended] == [False] * 3 + [True] * 3
    assert not abandoned.exists()


def test_what_is_no_job_is_not_found(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits())
    assert jobs.all() == []
    (tmp_path / ".jobs" / "20260101-000000-abcdef").mkdir(parents=True)
    for name in ("", "..", "../..", "x", "20260101-000000-abcdef", "20260101-000000-abcdef/.."):
        with pytest.raises(MissingPage):
            jobs.find(name)
    assert jobs.all() == []


def test_a_clock_that_was_set_loses_no_job(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "import time; print('here', flush=True); time.sleep(600)")
    kept.prints("here")
    begun = kept.job.begun
    assert begun is not None
    past = msgspec.structs.replace(begun, started=begun.started - 7200)
    write_record(kept.folder, STARTED, past)
    assert kept.job.state == "running"
    kept.stop()
    assert kept.over().state == "stopped"


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be started leaves nothing behind, and room is kept for how a job ended."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    jobs = Jobs(tmp_path, BrowserLimits())
    with monkeypatch.context() as patch, pytest.raises(ToolError, match="No space left"):
        patch.setattr("compilescope.apps.dashboard.jobs.service.write_record", full)
        jobs.start(["list"], tmp_path)
    assert not os.listdir(tmp_path / ".jobs")
    kept = Kept(tmp_path, "import time; print('here', flush=True); time.sleep(600)")
    kept.prints("here")
    assert (kept.folder / RESERVE).stat().st_size == 4096
    kept.stop(kill=True)
    assert kept.over().state == "stopped"
    assert not (kept.folder / RESERVE).exists()


def test_a_folder_that_is_gone_and_uploads(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, BrowserLimits())
    folder = jobs.reserve()
    (folder / UPLOAD).mkdir()
    (folder / UPLOAD / "a.log").write_text("x")
    job = over(jobs, jobs.start(["list"], tmp_path / "gone", folder=folder).id)
    assert (job.state, job.exit_status) == ("ended", None)
    assert job.outcome == f"There is no folder {tmp_path / 'gone'} any more."
    assert not (folder / UPLOAD).exists()


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    (tmp_path / ENDED).write_bytes(b'{"ended": "x"')
    assert read_record(tmp_path, ENDED, JobEnd) is None
    assert read_record(tmp_path, REQUEST, JobRequest) is None


@pytest.mark.parametrize(
    ("status", "label"), [(0, "Finished"), (3, "Exit status 3"), (-9, "Failed"), (-2, "Stopped")]
)
def test_how_it_ended_in_a_word(tmp_path: Path, status: int, label: str) -> None:
    """A run may be stopped on its own page: its job did not fail."""
    asked = JobRequest(id="a", words=("run", "x.py"), cwd="/", created=1.0)
    end = JobEnd(ended=2.0, status=status)
    assert job_label(CommandJob("a", tmp_path, asked, "ended", None, end, None, ()))[0] == label
