"""A file from a browser: stored within its limit, read by the tool as a job, removed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import samples
from compilescope.apps.dashboard.jobs.job import CommandJob
from compilescope.apps.dashboard.jobs.service import Jobs
from compilescope.apps.dashboard.pages.upload import safe_name
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.report.sharing.archive import write_archive
from dashboard_server import Served, serving
from waiting import until

LOG = "[rank0]:V1114 10:00:00.000000 1 torch/_dynamo/x.py:1] [0/0] [__graph_breaks] Graph break\n"


def ended(answer: httpx.Response, served: Served) -> CommandJob:
    found = re.fullmatch(r"/jobs/([\w-]+)", answer.url.path)
    assert found is not None, answer.text
    jobs = Jobs(served.home, BrowserLimits())
    until(lambda: jobs.find(found[1]).is_over)
    return jobs.find(found[1])


def test_a_run_archive_and_a_log_become_runs(tmp_path: Path) -> None:
    source = samples.store(next(iter(samples.RUNS.values())), tmp_path / "other", "abc123-sample")
    archive = tmp_path / "run.zip"
    write_archive(source, archive)
    with serving(tmp_path / "home") as served:
        files = {"file": ("../../run.zip", archive.read_bytes())}
        answer = served.client.post("/upload", files=files, data={"kind": "auto"})
        job = ended(answer, served)
        assert (job.state, job.exit_status, job.runs) == ("ended", 0, ("abc123-sample",))
        assert (served.home / "abc123-sample" / "run.json").is_file()
        assert not (job.folder / "upload").exists()
        page = served.client.get(f"/jobs/{job.id}").text
        assert 'href="/runs/abc123-sample"' in page
        answer = served.client.post("/upload?name=train.log", content=LOG * 3)
        job = ended(answer, served)
        assert job.words[0] == "logs"
        assert (job.exit_status, len(job.runs)) == (0, 1), job.outcome


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving(tmp_path / "home", limits=BrowserLimits(upload_bytes=200_000)) as served:

        def refused(status: int, **more: Any) -> None:
            answer = served.client.post("/upload", **more)
            assert answer.status_code == status, answer.text
            assert not list((served.home / ".jobs").iterdir())

        refused(413, content=b"x" * 200_001)
        refused(413, files={"file": ("big.log", b"x" * 300_000)})
        refused(413, content=(b"x" * 1000 for _ in range(1000)))
        refused(400, content=b"")
        refused(400, files={"file": ("a.log", b"")})
        refused(400, files={"other": ("a.log", b"x")}, data={"kind": "auto"})
        refused(400, files={"file": ("a.log", b"x")}, data={"kind": "shell"})
        refused(400, content=b"x", params={"kind": "../x"})
        refused(400, files=[("file", ("a.log", b"x")), ("file", ("b.log", b"x"))])
        stranger = served.stranger(headers={"origin": served.base})
        assert stranger.post("/upload", content=b"x").status_code == 401
        other = served.stranger(headers={"origin": "http://evil.example"})
        assert other.post("/upload", content=b"x").status_code == 403


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("run.zip", "run.zip"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\a b.log", "a_b.log"),
        ("--force", "force"),
        (".hidden", "hidden"),
        ("é\n\0", "upload"),
        ("", "upload"),
        ("x" * 300 + ".zip", "x" * 96 + ".zip"),
    ],
)
def test_names_of_files(given: str, safe: str) -> None:
    assert safe_name(given) == safe
