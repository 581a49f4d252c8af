"""Programs that lose compilation become a handful of lines that lose it in the same way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.settings import fresh_environment
from compilescope.change.minify.source.findings import (
    SourceFinding,
    TrialResult,
    choose,
    source_finding,
)
from compilescope.change.minify.source.minifier import (
    MinifyOptions,
    SourceRepro,
    minimise,
    read_program,
)
from compilescope.change.minify.source.program_sandbox import (
    FindingJudge,
    ProgramFiles,
    ProgramSandbox,
    find_again,
    seen_in,
)

pytestmark = [pytest.mark.torch, pytest.mark.timeout(3600)]

ZOO = Path(__file__).resolve().parent.parent / "zoo" / "programs"
OWN = Path(__file__).resolve().parent / "programs"
GIB = 1 << 30


def _minimised(path: Path, *words: str, predicate: str | None = None) -> SourceRepro:
    program = read_program("script", (str(path), *words))
    with ProgramSandbox(program.surroundings(), limit_s=60, memory_bytes=4 * GIB) as stage:
        seen = seen_in(stage.run_original(program.original, 300))
        assert isinstance(seen, TrialResult)
        choice = choose(seen, predicate, None)
        assert choice is not None
        repro = minimise(program, choice.finding, stage, MinifyOptions(jobs=2))
    assert repro.reason == "" and repro.script
    return repro


def _status(script: str, folder: Path) -> int:
    path = folder / "repro.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, str(path)], env=fresh_environment(), timeout=300)
    return done.returncode


# About 1 min.
@pytest.mark.slow
def test_a_break_becomes_a_script_that_tells_whether_it_is_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n\n"
        "def report(x):\n    print('sum', x.shape)\n\n"
        "@torch.compile\ndef f(x):\n    y = x.sin()\n    report(y)\n    return y.cos()\n\n"
        "f(torch.ones(3))\n"
    )
    repro = _minimised(program)
    assert repro.lines <= 5 and "backend='eager'" in repro.program
    assert "GB0059" in repro.script and "program.py:4, in report" in repro.script
    assert "compilescope" not in repro.script
    # Mended, it says so.
    assert _status(repro.script.replace("print()", "pass"), tmp_path) == 0
    assert _status(repro.script.replace("print()", "1 / 0"), tmp_path) == 2


CASES = [
    ("data_dependent_if", 6),
    ("break_in_try", 6),
    ("several_on_one_line", 6),
    ("fullgraph_print", 6),
    ("forward_hook", 9),
    ("numpy_call", 7),
    ("two_callers", 6),
    ("break_in_user_context", 8),
    ("recompile_size", 7),
    ("recompile_dtype", 8),
    ("recompile_global_flag", 9),
    ("recompile_module_attribute", 12),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lines"), CASES)
def test_the_zoo_shrinks(name: str, lines: int) -> None:
    repro = _minimised(ZOO / f"{name}.py")
    assert repro.lines <= lines, repro.program


OWN_CASES = [
    ("summariser.py", (), 8),
    ("annealing.py", ("--epochs", "2"), 24),
    ("experts.py", (), 15),
    ("parcel_shop/main.py", (), 8),
]


# Each about 2 min.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "words", "lines"), OWN_CASES)
def test_models_of_many_lines_shrink(name: str, words: tuple[str, ...], lines: int) -> None:
    repro = _minimised(OWN / name, *words)
    assert repro.start_lines >= 50
    assert repro.lines <= lines, repro.program
    assert repro.needs == {}


HOSTILE = {
    "hangs": "while True:\n    pass\n",
    "asks": "input('? ')\n",
    "eats memory": "x = [bytearray(1 << 28) for _ in range(64)]\n",
    "leaves": "import os\nos._exit(0)\n",
    "dies": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "forks": "import os\nos.fork()\nimport time\ntime.sleep(100)\n",
    "is deep": "x = " + "(" * 150 + ")" * 150 + "\n",
    "is no program": "def f(:\n",
}


@pytest.mark.slow
def test_candidates_are_survived() -> None:
    wanted = source_finding(
        "break", what="x", file="x.py", line=1, function="f", source="", title="x"
    )
    with ProgramSandbox(ProgramFiles(), limit_s=15, memory_bytes=GIB) as stage:
        judge = FindingJudge(stage, wanted, frozenset())
        for what, text in HOSTILE.items():
            assert judge.judge(text) in ("timeout", "crashed", "lost", "invalid"), what
            assert judge.judge("print('still here')") == "lost"


@pytest.mark.slow
def test_a_candidate_writes_into_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ProgramSandbox(ProgramFiles(), limit_s=60, memory_bytes=None) as stage:
        seen = stage.look("open('written.txt', 'w').write('x')\n")
    assert isinstance(seen, TrialResult) and seen.error == ""
    assert list(tmp_path.iterdir()) == []


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "compilescope", "minify", *words]


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_and_resume_ends_it(tmp_path: Path) -> None:
    program = str(ZOO / "three_in_a_row.py")
    process = subprocess.Popen(
        _command(program, "-o", "out.py"), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    state = tmp_path / ".out.py.minify.json"
    deadline = time.monotonic() + 300
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "best so far" in out and (tmp_path / "out.py").exists()
    done = subprocess.run(
        _command(program, "-o", "out.py", "--resume", "--json"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        timeout=1200,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0 and answer["reused"] > 0 and answer["stopped"] == ""
    assert not state.exists()
    assert len(answer["others"]) == 2
    assert all("--site three_in_a_row.py:" in other["command"] for other in answer["others"])


@pytest.mark.slow
def test_a_module_with_relative_imports_and_arguments(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def noisy(x):\n    print('noisy')\n    return x\n")
    (package / "train.py").write_text(
        "import sys\nimport torch\nfrom .parts import noisy\n"
        "f = torch.compile(lambda x: noisy(x) * 2, backend='eager')\n"
        "f(torch.ones(int(sys.argv[1])))\n"
    )
    done = subprocess.run(
        _command("--budget", "30", "--json", "-m", "pack.train", "3", "--predicate", "break"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        timeout=1200,
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["repro"] == "repro.py" and answer["needs"] == {}
    assert answer["cause"]["call"] == "print" and answer["cause"]["file"].endswith("parts.py")


def test_a_cause_is_found_again_whatever_stands_around_it() -> None:
    def cause(**given: Any) -> SourceFinding:
        plain = {"kind": "break", "what": "t", "file": "", "line": 1, "function": "f"}
        return source_finding(**{**plain, "source": "", "title": "", **given})

    seen = TrialResult((cause(call="print", line=3), cause(call="item", line=9)))
    assert find_again(seen, cause(call="item", line=40, function="g")) is seen.findings[1]
    assert find_again(seen, cause(call="open")) is None
