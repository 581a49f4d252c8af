"""`compilescope serve` as a process: it starts, answers, says what is wrong, and ends in order."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from compilescope.apps.cli.commands import serve
from compilescope.base.errors import ToolError
from gone import is_gone
from live_runs import LiveRun
from waiting import until

COMMAND = (sys.executable, "-m", "compilescope", "serve")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own are not touched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("COMPILESCOPE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it printed."""
    command = [*COMMAND, *([] if "--port" in words else ["--port", "0"]), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"Serving (http://\S+/\?token=[\w-]{43}) until Ctrl-C\.\n", line)
            assert found is not None, line + (process.communicate()[1] if not line else "")
            yield process, found[1]
        finally:
            if process.poll() is None:
                process.kill()


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    """Its status and what it said, once it was asked to end."""
    process.send_signal(number)
    _, said = process.communicate(timeout=600)
    return process.returncode, said


def refused(*words: str) -> str:
    """What it says when it does not start."""
    with pytest.raises(ToolError) as said:
        serve.COMMAND([*words], standalone_mode=False)
    assert said.value.exit_code == 2
    return f"{said.value.message} {said.value.hint}".strip()


def test_it_serves_and_keeps_its_token_over_a_restart(tmp_path: Path) -> None:
    with started() as (process, address):
        port = address.split(":")[2].split("/")[0]
        with httpx.Client(follow_redirects=True, headers={"accept": "text/html"}) as browser:
            answer = browser.get(address)
            assert answer.status_code == 200 and "token" not in str(answer.url)
            assert "Sign in" not in answer.text
            with httpx.Client(base_url=str(answer.url)) as stranger:
                assert stranger.get("/").status_code == 200
            # Browsers keep connections open; one that asks for nothing more delays no end.
            assert ended(process) == (0, "Stopped.\n")
            with started("--port", port) as (process, again):
                assert again == address
                assert "Sign in" not in browser.get(answer.url).text
                live = LiveRun(tmp_path / ".compilescope")
                with _unfinished(int(port), live):
                    assert ended(process, signal.SIGINT) == (0, "Stopped.\n")
    (kept,) = (tmp_path / "state").rglob("dashboard*/*.token")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert kept.read_text().strip() in address


_SLOW_WORKER = """
import os, pathlib, sys, time
if any("spawn_main" in word for word in sys.orig_argv):
    pathlib.Path("worker").write_text(f"{os.getpid()} ")
    time.sleep(3600)
"""
"""As `sitecustomize`: a process that draws pages never gets as far as its first task."""


def test_it_ends_though_a_worker_is_still_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SLOW_WORKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    live, worker = LiveRun(tmp_path / ".compilescope"), tmp_path / "worker"
    with started() as (process, address), httpx.Client(follow_redirects=True) as browser:
        answer = browser.get(address).url.join(f"/runs/{live.name}?report")
        assert browser.get(answer, timeout=300).status_code == 202
        until(lambda: worker.exists() and worker.read_text().endswith(" "))
        assert ended(process, signal.SIGINT) == (0, "Stopped.\n")
    assert is_gone(int(worker.read_text()))


@contextmanager
def _unfinished(port: int, live: LiveRun) -> Iterator[None]:
    """Connections that wait, are in the middle of a request or of its body, and watch a run."""
    head = (
        f"POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"origin: http://127.0.0.1:{port}\r\ncontent-length: 10\r\n"
        "content-type: application/x-www-form-urlencoded\r\n\r\na="
    )
    watch = f"GET /runs/{live.name}/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"
    opened = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(4)]
    for connection, said in zip(opened, ("", head[:30], head, watch), strict=True):
        connection.sendall(said.encode())
    assert b"text/event-stream" in opened[3].recv(1000)
    yield
    for connection in opened:
        connection.close()


@pytest.mark.slow
def test_a_new_token_and_a_private_server() -> None:
    with started("--private") as (process, before):
        base = before.partition("/?")[0]
        assert httpx.get(f"{base}/").status_code == 401
        assert httpx.get(before, follow_redirects=True).status_code == 200
        assert ended(process)[0] == 0
    with started("--new-token") as (process, address):
        base, _, token = address.partition("/?")
        assert token != before.partition("/?")[2]
        old = {"authorization": f"Bearer {before.partition('=')[2]}"}
        assert httpx.get(f"{base}/?token={before.partition('=')[2]}").status_code == 403
        assert httpx.post(f"{base}/sign-in", headers=old).status_code == 403
        assert ended(process)[0] == 0


@pytest.mark.slow
def test_who_serves_to_others_is_told_so() -> None:
    with started("--host", "0.0.0.0", "--name", "gpu-box:9000") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        base = address.partition("/?")[0]
        assert httpx.get(f"{base}/").status_code == 401
        assert httpx.get(f"{base}/", headers={"host": "gpu-box:9000"}).status_code == 401
        assert httpx.get(f"{base}/", headers={"host": "gpu-box"}).status_code == 421
        status, said = ended(process)
        assert status == 0
        assert said.splitlines()[0].endswith("Every page needs the token.")


@pytest.mark.slow
def test_a_browser_is_opened_with_a_token_that_works_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others can see the command line of a process."""
    browser = tmp_path / "browser.sh"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    with started("--open") as (process, address):
        httpx.get(address)
        opened = (tmp_path / "opened").read_text().strip()
        assert opened.partition("?")[0] == address.partition("?")[0]
        assert opened != address
        assert [httpx.get(opened).status_code for _ in range(2)] == [303, 403]
        assert ended(process) == (0, "Stopped.\n")


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"compilescope: error: Port {port} is already in use, maybe by another `compilescope "
        "serve`.\n  Choose another with --port; 0 picks a free one.\n"
    )


def test_folders_and_names_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    nowhere = refused("--dir", "nowhere")
    assert nowhere.startswith(f"There is no folder {tmp_path / 'nowhere'}. `compilescope run")
    assert "Cannot read the folder" in refused("--dir", "file")
    assert refused("--allow", "missing") == "There is no folder missing."
    assert "Cannot read the folder circle" in refused("--allow", "circle")
    assert "Cannot read the folder" in refused("--notes", "file")
    assert "is not the name of a host" in refused("--name", "http://box")
    assert refused("--host", "192.0.2.1") == "This machine has no address 192.0.2.1."
    assert refused("--host", "no such host") == "This machine has no address no such host."


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root can read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    assert "Permission denied" in refused("--dir", "closed")


def test_a_token_file_that_others_could_read(tmp_path: Path) -> None:
    refused("--host", "192.0.2.1")
    (kept,) = (tmp_path / "state").rglob("*.token")
    kept.chmod(0o644)
    said = refused("--host", "192.0.2.1")
    assert f"Other users can read the token in {kept}." in said and "--new-token" in said
    assert "no address" in refused("--host", "192.0.2.1", "--new-token")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.slow
def test_nowhere_to_keep_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state-file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-file"))
    with started() as (process, address):
        assert httpx.get(address).status_code == 303
        status, said = ended(process)
    assert status == 0 and said.startswith("Cannot keep the token in ")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_PACKAGES", ("starlette", "a_package_that_is_not_there"))
    assert refused() == (
        "The dashboard needs the package a_package_that_is_not_there, which is not installed. "
        'Install it with: pip install "compilescope[dashboard]"'
    )
