"""A program under capture behaves as it does without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recorder.harness import (
    PROGRAMS,
    Ended,
    assert_transparent,
    captured_command,
    finish,
    latest_run,
    run_both,
    run_captured,
    same,
    show,
    start,
)

pytestmark = pytest.mark.torch

_LOOK_AROUND = "import sys; print('torch' in sys.modules, sys.argv, sys.path[0])"


WORDS = ("--epochs", "1", "-q", "--json", "--dir", "x", "-m", "--", "-")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended, Ended]:
    """steady.py and failing.py in one process, plainly and captured."""
    home = tmp_path_factory.mktemp("everything")
    return home, *run_both(home, "everything.py", *WORDS, stdin=b"a b\nc\n")


def test_streams_arguments_stdin_and_bits(everything: tuple[Path, Ended, Ended]) -> None:
    home, plain, captured = everything
    assert f"argv {list(WORDS)}".encode() in plain.stdout
    assert b"stdin ['a', 'b', 'c']" in plain.stdout
    # Nothing in the first program is worth a log line, so the two are the same byte by byte.
    for stream, end in (("stdout", b"steady left with 3"), ("stderr", b"nor here")):
        before, ended, _ = getattr(plain, stream).partition(end)
        assert ended and getattr(captured, stream).startswith(before + end)
    seen = show(home)
    sites = [site["line"] for site in seen["sites"] if site["file"].endswith("steady.py")]
    assert sites == [11]
    assert {each["function"] for each in seen["recompiles"]} >= {"scale", "storm"}


@pytest.mark.slow
def test_status_and_bits_of_a_program_that_leaves(tmp_path: Path) -> None:
    plain, captured = run_both(tmp_path, "steady.py", stdin=b"")
    assert plain.status == 3
    assert captured == plain
    seen = show(tmp_path)
    assert (seen["exit_status"], seen["cut_short"], seen["tool_faults"]) == (3, False, 0)


def test_errors_and_warnings(everything: tuple[Path, Ended, Ended]) -> None:
    assert_errors_are_as_they_were(*everything)


@pytest.mark.slow
def test_errors_and_warnings_with_verbose_logs(tmp_path: Path) -> None:
    env = {"TORCHDYNAMO_VERBOSE": "1", "TORCH_LOGS": "graph_breaks,recompiles"}
    assert_errors_are_as_they_were(tmp_path, *run_both(tmp_path, "failing.py", env=env))


def assert_errors_are_as_they_were(home: Path, plain: Ended, captured: Ended) -> None:
    assert plain.status == 1
    for words in (
        b"in the way",
        b"the backend gives up",
        b"Recompiling function refused",
        b"recompile_limit",
        b"no backward today",
    ):
        assert words in plain.stderr
    assert_transparent(plain, captured)
    seen = show(home)
    assert (seen["exit_status"], seen["tool_faults"]) == (1, 0)
    assert not seen["cut_short"]
    failures = {failure["function"]: failure for failure in seen["failures"]}
    assert set(failures) >= {"whole", "unlucky", "misshapen"}
    # What ended the program is told as what it was, at the line inside of the compiled function.
    cause = "RuntimeError: shape '[7]' is invalid for input of size 5"
    assert seen["ended"]["exception"] == f"TorchRuntimeError: {cause}"
    line = (PROGRAMS / "failing.py").read_text().splitlines()[seen["ended"]["line"] - 1]
    assert line.strip() == "return x.view(7) + y"
    last = failures["misshapen"]
    assert last["cause"] == cause
    assert last["link"].endswith(f"/gb/{last['gb_id'].lower()}.html")


def test_summary_comes_after_the_programs_own_stderr(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(4)"
    captured = run_captured(tmp_path, "-c", code)
    assert (captured.status, captured.stdout) == (4, b"out\n")
    assert captured.stderr.startswith(b"err\n")
    assert len(captured.stderr) > len(b"err\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        pytest.param(("-m", "parcel.entry", "-q", "--json"), 0, marks=pytest.mark.slow),
        (("-m", "parcel.absent"), 1),
        pytest.param(("-m", "parcel.abrupt", "-q", "--json"), 5, marks=pytest.mark.slow),
        # After an import alone; failing.py ends like this after compilations.
        pytest.param(
            ("-c", "import torch\ndef f(): raise ValueError('oh')\nf()"),
            1,
            marks=pytest.mark.slow,
        ),
        (("-c", _LOOK_AROUND, "-x", "--help"), 0),
    ],
    ids=["module", "no-module", "os-exit", "uncaught", "no-torch"],
)
def test_ways_to_start_and_to_leave(tmp_path: Path, words: tuple[str, ...], status: int) -> None:
    plain, captured = run_both(tmp_path, *words)
    assert plain.status == status
    assert captured == plain
    seen = show(tmp_path)
    assert seen["exit_status"] == status
    assert not seen["cut_short"]


def test_a_module_with_torch_that_leaves_at_once(tmp_path: Path) -> None:
    captured = run_captured(tmp_path, "-q", "-m", "parcel.abrupt", "-x", "--json")
    words = f"parcel.entry parcel ['-x', '--json'] {PROGRAMS} 1.0"
    # Neither does recording import torch's compiler.
    assert captured == Ended(5, f"{words}\n[]\ngone".encode(), b"")
    seen = show(tmp_path)
    assert (seen["exit_status"], seen["cut_short"]) == (5, False)


@pytest.mark.slow
def test_torch_trace_names_torchs_own_lines(tmp_path: Path) -> None:
    # Each record says which line of torch wrote it; a wrapper around the writer is not that line.
    code = "import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2))"
    plain = start([sys.executable, "-c", code], env={"TORCH_TRACE": str(tmp_path / "plain")})
    command = captured_command(tmp_path / "runs", "-q", "-c", code)
    captured = start(command, env={"TORCH_TRACE": str(tmp_path / "captured")})
    assert finish(plain).status == finish(captured).status == 0
    assert writers(tmp_path / "captured") == writers(tmp_path / "plain") != []


def writers(folder: Path) -> list[str]:
    """`file:line` of every record of a trace."""
    lines = [line for path in folder.iterdir() for line in path.read_text().splitlines()]
    found = [re.match(r"V\d+ [\d:.]+ \d+ (\S+:\d+)\] \{", line) for line in lines]
    return [match[1] for match in found if match]


def test_inherited_descriptors_stay_open(tmp_path: Path) -> None:
    # A shell's <(...) and make's job server hand descriptors down by number.
    code = "import os, sys; print(os.read(int(sys.argv[1]), 99))"
    for command in (["-c", code], captured_command(tmp_path, "-q", "-c", code)[1:]):
        reading, writing = os.pipe()
        os.write(writing, b"handed down")
        os.close(writing)
        process = start([sys.executable, *command, str(reading)], pass_fds=(reading,))
        os.close(reading)
        ended = finish(process)
        assert (ended.status, ended.stdout) == (0, b"b'handed down'\n"), ended.stderr.decode()


# With torch the recorder is there as well; what the program does, torch has no part in.
@pytest.mark.parametrize("first", ["", pytest.param("import torch; ", marks=pytest.mark.slow)])
def test_closed_stdout_is_the_programs_business(tmp_path: Path, first: str) -> None:
    code = "import sys; sys.stdin.read(); print('x' * 100000)"
    statuses = []
    captured = captured_command(tmp_path, "-q", "-c", f"{first}{code}")
    for command in (["-c", code], captured[1:]):
        process = start([sys.executable, *command], stdin=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        stderr = process.stderr.read()
        process.stderr.close()
        statuses.append((process.wait(), same(stderr)))
    assert statuses[0] == statuses[1]


@pytest.fixture(scope="module")
def two_inductor_runs(tmp_path_factory: pytest.TempPathFactory):
    """The program plainly, then captured, over one cache folder."""
    home = tmp_path_factory.mktemp("inductor")
    env = {"TORCHINDUCTOR_CACHE_DIR": str(home / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "2"}
    plain = finish(start([sys.executable, str(PROGRAMS / "inductor.py")], env=env))
    captured = run_captured(home, "-q", "inductor.py", env=env)
    return home, plain, captured


@pytest.mark.slow
def test_cache_keys_stay_the_same(cxx, two_inductor_runs) -> None:
    home, plain, captured = two_inductor_runs
    assert plain.status == 0, plain.stderr.decode()
    assert captured == plain
    caches = show(home)["caches"]
    assert caches["aot_autograd"]["hits"] >= 1
    assert sum(count["misses"] + count["bypasses"] for count in caches.values()) == 0


@pytest.mark.slow
def test_compile_workers_leave_no_events(cxx, tmp_path: Path) -> None:
    env = {
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
        "SHOW_WORKERS": "1",
    }
    captured = run_captured(tmp_path, "-q", "inductor.py", env=env)
    assert captured.status == 0, captured.stderr.decode()
    # The program says how many workers it had: without any, this test would show nothing.
    assert b"workers 0" not in captured.stdout
    run = latest_run(tmp_path)
    assert len({event.pid for event in run.events}) == 1
    caches = show(tmp_path)["caches"]
    assert caches["fx_graph"]["misses"] >= 1


def test_record_that_vanishes_costs_no_exit_status(tmp_path: Path) -> None:
    code = "import os, shutil, sys; shutil.rmtree(os.environ['COMPILESCOPE_RUN']); sys.exit(6)"
    ended = run_captured(tmp_path, "-c", code)
    assert ended.status == 6
    assert b"Traceback" not in ended.stderr
