"""The tools that run programs: end to end, and whatever becomes of a program or its client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gone import is_gone
from mcp_session import Session, connected, text
from waiting import until

pytestmark = pytest.mark.torch

BREAKING = """import torch


@torch.compile(backend="eager")
def step(x):
    y = x * 2
    print("step")
    return y + 1


for _ in range(3):
    step(torch.ones(4))
print("done")
"""
CRASHING = 'import torch\nprint("\\x1b[31m here \\u202e")\nraise ValueError("no such file")\n'
KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
WAITING = """import os, sys, time
with open(sys.argv[1] + ".part", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
print("both are here")
"""
STEPS = """import torch


@torch.compile(backend="eager")
def step(x):
    return x * 2 + 1


x = torch.ones(64)
for _ in range(20):
    step(x)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n" + WAITING


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mcp") / "work"
    made.mkdir()
    for name, source in [
        ("train", BREAKING),
        ("crashing", CRASHING),
        ("killed", KILLED),
        ("waiting", WAITING),
        ("stubborn", STUBBORN),
    ]:
        (made / f"{name}.py").write_text(source)
    return made


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with connected(folder) as opened:
        yield opened


def test_a_program_is_recorded(session: Session, folder: Path) -> None:
    value = session.value("run", program="train.py")
    assert (value["breaks"], value["graphs"], value["exit_status"]) == (1, 2, 0)
    (cause,) = value["causes"]
    assert (cause["number"], cause["kind"], cause["line"]) == (1, "break", 7)
    assert cause["file"] == str(folder / "train.py") and cause["advice"][0]["diff"]
    assert value["output_end"] == "step\nstep\nstep\ndone"
    assert "run: started" in session.told
    assert (folder / ".compilescope" / value["run"]).is_dir()
    assert value["text"].startswith(f"compilescope {value['run']}\n")


def test_a_program_that_fails_is_an_error_with_its_run(session: Session) -> None:
    result = session.call("run", program="crashing.py")
    assert result.is_error
    value = result.structured_content
    assert text(result).startswith("Exited with status 1: ValueError: no such file\n")
    assert "The program ended with exit status 1: ValueError: no such file" in value["ended"]
    assert "\\x1b[31m here \\u202e" in value["output_end"]
    assert session.value("show", run=value["run"])["exit_status"] == 1


def test_a_program_that_is_killed_is_an_error(session: Session) -> None:
    result = session.call("run", program="killed.py")
    assert result.is_error and result.structured_content["signal"] == "SIGKILL"


def test_two_calls_run_at_once(session: Session, folder: Path) -> None:
    """Each program waits for the other."""
    one, other = str(folder / "one"), str(folder / "other")
    results = session.both(
        ("run", {"program": "waiting.py", "arguments": [one, other]}),
        ("run", {"program": "waiting.py", "arguments": [other, one]}),
    )
    ends = [result.structured_content["output_end"] for result in results]
    assert ends == ["both are here", "both are here"]


def test_a_cancelled_call_ends_its_program(session: Session, folder: Path) -> None:
    come = folder / "cancelled"
    arguments = [str(come), str(folder / "never")]
    session.cancel_when(come, "run", program="waiting.py", arguments=arguments)
    assert is_gone(int(come.read_text()))
    until(lambda: session.value("show")["signal"] == "SIGINT")


def test_a_program_is_stopped_at_its_limit(session: Session, folder: Path) -> None:
    arguments = [str(folder / "limited"), str(folder / "never")]
    said = session.error("run", program="waiting.py", arguments=arguments, limit="5s")
    assert said.startswith("Stopped at its time limit of 5 s.")


def test_an_older_client_cancels_by_a_message(folder: Path) -> None:
    come = folder / "before-cancel"
    with _server(folder) as server:
        _send(server, "run", {"program": "waiting.py", "arguments": [str(come), "never"]})
        until(come.exists)
        _write(server, {"method": "notifications/cancelled", "params": {"requestId": 2}})
        assert is_gone(int(come.read_text()))
        _write(server, {"id": 3, "method": "ping"})
        answered = (json.loads(line) for line in server.stdout)
        assert next(each for each in answered if each.get("id") == 3)["result"] is not None


@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGKILL"])
def test_nothing_outlives_the_server(folder: Path, how: str) -> None:
    come = folder / f"before-{how}"
    script = "waiting.py" if how == "eof" else "stubborn.py"
    with _server(folder) as server:
        arguments = [str(come), str(folder / "never")]
        _send(server, "run", {"program": script, "arguments": arguments})
        until(come.exists)
        if how == "eof":
            server.stdin.close()
        else:
            server.send_signal(getattr(signal, how))
        status = server.wait()
    assert status == {"eof": 0, "SIGTERM": 128 + signal.SIGTERM, "SIGKILL": -signal.SIGKILL}[how]
    assert is_gone(int(come.read_text()))


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """With a client that has said hello, and can leave in any way."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    command = [sys.executable, "-m", "compilescope", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe) as server:
        try:
            _write(server, {"id": 1, "method": "initialize", "params": hello})
            assert json.loads(server.stdout.readline())["id"] == 1
            _write(server, {"method": "notifications/initialized"})
            yield server
        finally:
            server.kill()


def _send(server: subprocess.Popen[bytes], tool: str, arguments: dict) -> None:
    params = {"name": tool, "arguments": arguments}
    _write(server, {"id": 2, "method": "tools/call", "params": params})


def _write(server: subprocess.Popen[bytes], message: dict) -> None:
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


# About 2 min.
@pytest.mark.slow
def test_an_agent_finds_fixes_and_verifies(session: Session, folder: Path) -> None:
    program = folder / "mended.py"
    program.write_text(BREAKING)
    before = session.value("run", program="mended.py")
    explained = session.value("explain", run=before["run"], cause=1)
    assert "Why: `print('step')` must print when the line is reached." in explained["text"]
    found = session.value("fix", program="mended.py")
    assert found["verdict"] == "verified" and found["diff_is_whole"]
    assert (found["breaks_before"], found["breaks_after"]) == (1, 0)
    assert program.read_text() == BREAKING
    same = session.value("verify", program="mended.py", patch=found["diff"])
    assert same["verdict"] in ("verified", "changed")  # The output comes after the graph.
    assert same["new"] == [] and program.read_text() == BREAKING
    done = session.value("fix_and_write_files", run=found["run"])
    assert done["written"] == [str(program)] and program.read_text() != BREAKING
    assert session.value("fix_and_write_files", run=found["run"])["already"]
    after = session.value("run", program="mended.py")
    assert after["breaks"] == 0
    seen = session.value("compare", before=before["run"], after=after["run"])
    assert ([each["line"] for each in seen["gone"]], seen["new"]) == ([7], [])


# About 3 min.
@pytest.mark.slow
def test_other_searches_answer(session: Session, folder: Path) -> None:
    small = session.value("minify", program="train.py")
    assert small["verified"] and Path(small["repro"]).read_text().startswith(small["script"][:200])
    assert Path(small["repro"]).is_relative_to(folder / ".compilescope")
    assert "shows no graph break" in session.error("minify", program="waiting.py", arguments=["a"])
    (folder / "build.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * 2 if torch.compiler.is_compiling() else x\n\n\n"
        "def build():\n    return Net(), (torch.ones(2, 4),)\n"
    )
    differs = session.value("diff", build="build.py:build", test_backend="aot_eager", localize=True)
    assert differs["verdict"] == "fail" and differs["outputs"]
    assert os.listdir(folder / ".compilescope" / ".repros")


# About 3 min.
@pytest.mark.slow
def test_a_step_is_tuned(session: Session, folder: Path) -> None:
    (folder / "steps.py").write_text(STEPS)
    value = session.value("tune", program="steps.py", only=["dynamic-shapes"], budget="5m")
    assert [each["id"] for each in value["tried"]] == ["dynamic-shapes"]
    assert value["verified"] == bool(value["diff"]) and value["step"]
