"""A folder of runs that somebody else filled: nothing of it runs, hangs or breaks the server."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

import samples
from compilescope.apps.dashboard.jobs.job import REQUEST, STARTED, JobRequest, Started, write_record
from compilescope.apps.dashboard.jobs.service import Jobs
from compilescope.apps.dashboard.runs import reader_client
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.record.artifacts import DiskArtifacts, artifact_name
from compilescope.record.header import read_header
from compilescope.record.run import is_live, read_run
from compilescope.report.sharing.archive import import_archive, write_archive
from dashboard_server import TOKEN, serving
from live_runs import LiveRun


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".compilescope"
    for name in ("good", "bad"):
        samples.store(samples.RUNS["empty"], home, name)
    return home


def spoil(home: Path) -> list[str]:
    """Runs that come with pipes, devices and numbers in the place of files and numbers."""
    folders = [shutil.copytree(home / "bad", home / f"bad-{number}") for number in range(7)]
    (folders[0] / "run.json").unlink()
    os.mkfifo(folders[0] / "run.json")
    os.mkfifo(folders[1] / "labels.json")
    os.mkfifo(folders[2] / "events-9.jsonl")
    (folders[3] / "labels.json").symlink_to("/dev/zero")
    for folder, pid in zip(folders[4:], (-1, 0, 10**18), strict=True):
        header = json.loads((folder / "run.json").read_bytes())
        header |= {"launcher_pid": pid, "main_pid": pid, "host": socket.gethostname()}
        (folder / "run.json").write_text(json.dumps({**header, "ended_ns": None}))
    return [folder.name for folder in folders]


def make_endless_cache(home: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x"
    with closing(sqlite3.connect(home / reader_client.FILE_NAME)) as opened, opened:
        opened.execute("CREATE TABLE form (form TEXT)")
        opened.execute("INSERT INTO form VALUES (?)", (reader_client._FORM,))
        opened.execute(f"CREATE VIEW entries AS {endless} AS data FROM c")


def test_other_runs_are_shown(home: Path) -> None:
    bad = spoil(home)
    make_endless_cache(home)
    with serving(home) as served:
        assert "good" in served.client.get("/").text
        assert "Not a plain file" in served.client.get("/").text
        for name in bad:
            for address in (f"/runs/{name}", f"/runs/{name}/archive.zip", f"/fixes/{name}"):
                assert served.client.get(address).status_code in (200, 400, 404), address
            with served.client.stream("GET", f"/runs/{name}/events") as answer:
                assert answer.status_code in (200, 404)
        assert served.client.get("/runs/good").status_code == 200


def test_a_job_that_nobody_here_asked_for_is_not_started(home: Path, tmp_path: Path) -> None:
    """As it comes with a folder of runs from elsewhere."""
    folder = home / ".jobs" / "20200101-000000-abcdef"
    folder.mkdir(parents=True)
    words = ("export", "--dir", str(home), "good", "-o", str(tmp_path / "made"))
    write_record(
        folder, REQUEST, JobRequest(id=folder.name, words=words, cwd=str(tmp_path), created=1.0)
    )
    jobs = Jobs(home, BrowserLimits(), key=TOKEN)
    jobs.tick()
    job = jobs.find(folder.name)
    assert (job.state, job.exit_status, job.begun) == ("ended", None, None)
    assert job.outcome == "Not started: it was requested with a different token."
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("record", [{"keeper": 0}, {"keeper": 2**30, "pid": 0}])
def test_stop_ends_no_process_that_only_a_file_names(home: Path, record: dict[str, int]) -> None:
    jobs = Jobs(home, BrowserLimits(), key=TOKEN)
    folder = jobs.reserve()
    asked = JobRequest(id=folder.name, words=("list",), cwd=str(home), created=1.0)
    write_record(folder, REQUEST, asked)
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, start_new_session=True) as other:
        named = {name: number or other.pid for name, number in record.items()}
        write_record(folder, STARTED, Started(**{"started": time.time(), **named}))
        jobs.stop(folder.name)
        jobs.stop(folder.name, kill=True)
        # A process that was sent a signal would die of it before it answers.
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write(b"still here\n")
        other.stdin.flush()
        assert other.stdout.readline() == b"still here\n"
        other.kill()


@pytest.mark.slow
def test_what_waits_outlives_its_server(home: Path) -> None:
    """Another server of the same folder, which knew of nothing that waits, starts it."""
    with serving(home) as served:
        jobs = served.server.config.app.state.dashboard.jobs
        end = time.monotonic() + 600
        while jobs._waits:
            assert time.monotonic() < end
            time.sleep(0.05)
        job = Jobs(home, BrowserLimits(jobs=0), key=TOKEN).start(["list"], home)
        while not jobs.find(job.id).is_over:
            assert time.monotonic() < end, "nobody started it"
            time.sleep(0.1)
        assert jobs.find(job.id).exit_status == 0


def test_an_imported_run_names_no_process_of_this_machine(tmp_path: Path) -> None:
    """Its Stop button would end somebody else's program."""
    elsewhere = LiveRun(tmp_path / "elsewhere", "abc-run", launcher_pid=os.getppid())
    write_archive(elsewhere.folder, tmp_path / "run.zip")
    home = tmp_path / "home"
    imported = import_archive(tmp_path / "run.zip", home)
    assert is_live(read_header(elsewhere.folder)) and not is_live(read_header(imported.path))
    assert read_run(imported.path).cut_short
    assert import_archive(tmp_path / "run.zip", home).already_there


def test_an_artifact_is_no_link(tmp_path: Path) -> None:
    """Its text is shown to whoever may look at runs."""
    (tmp_path / "secret").write_text("secret")
    name = artifact_name("text", "py")
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / name).symlink_to(tmp_path / "secret")
    assert DiskArtifacts(tmp_path / "artifacts").get(name) is None


@pytest.mark.parametrize("path", ["/fixes?page=000000001{}", "/jobs/x/files/{}"])
def test_numbers_without_end(path: str, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(home) as served:
        answer = served.client.get(path.format("9" * 5000))
    assert answer.status_code in (400, 404)
    assert "content-security-policy" in answer.headers
    assert "Traceback" not in capfd.readouterr().err
