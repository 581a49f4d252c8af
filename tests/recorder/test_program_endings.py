"""How a program ends is seen, and nothing of its end is changed.

Inside of a compiled function, failing.py ends: test_transparency.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.instrument.recorder.process_end import uncaught
from recorder.harness import (
    OUR_CODE,
    captured_command,
    finish,
    run_both,
    run_captured,
    show,
    start,
)

_HOOK = """
import sys
before = sys.excepthook
def hook(kind, error, trace):
    print("mine", kind.__name__, file=sys.stderr)
sys.excepthook = hook
assert before is sys.__excepthook__
raise KeyError("lost")
"""
_CAUGHT = """
import sys
def inner():
    try:
        raise KeyError("caught")
    except KeyError as error:
        sys.last_value = sys.last_exc = error
inner()
sys.exit(1)
"""

_WORDLESS = """class Wordless(Exception):
    def __str__(self): raise OSError
raise Wordless
"""


@pytest.mark.parametrize(
    ("code", "status", "how", "exception", "line"),
    [
        ("x = 1\nimport no_such_module", 1, "exception", "ModuleNotFoundError", 2),
        ("x = 1\ny = = 2", 1, "exception", "SyntaxError: invalid syntax", 2),
        ("import sys\nsys.exit(3)", 3, "exit", "", 0),
        ("import sys\nsys.exit('words')", 1, "exit", "", 0),
        ("import os\nos._exit(5)", 5, "exit", "", 0),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9, "signal", "", 0),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(9**9): pass",
            -2,
            "signal",
            "",
            0,
        ),
        (_HOOK, 1, "exception", "KeyError: 'lost'", 8),
        (_CAUGHT, 1, "exit", "", 0),
        (
            "class E(Exception):\n    def __str__(self): raise OSError\nraise E",
            1,
            "exception",
            "E",
            3,
        ),
    ],
    ids=["import", "syntax", "exit", "exit-words", "os-exit", "killed", "ctrl-c", "own-hook"]
    + ["caught", "no-words"],
)
def test_without_torch(
    tmp_path: Path, code: str, status: int, how: str, exception: str, line: int
) -> None:
    script = tmp_path / "program.py"
    script.write_text(code)
    plain, captured = run_both(tmp_path / "runs", str(script))
    assert plain.status == status
    assert captured == plain
    seen = show(tmp_path / "runs")["ended"]
    assert (seen["how"], seen["exit_status"]) == (how, status if status >= 0 else None)
    assert seen["exception"].startswith(exception) and bool(seen["exception"]) == bool(exception)
    assert seen["line"] == line


@pytest.mark.parametrize("words", [("-c", "import no_such"), ("-m", "no_such_module_at_all")])
def test_code_and_modules(tmp_path: Path, words: tuple[str, ...]) -> None:
    plain, captured = run_both(tmp_path, *words)
    assert captured == plain and plain.status == 1
    # `python -m` prints one line of its own, and raises nothing.
    exception = show(tmp_path)["ended"]["exception"]
    assert exception == (
        "ModuleNotFoundError: No module named 'no_such'" if words[0] == "-c" else ""
    )


def test_the_users_own_sitecustomize_runs_once(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(
        "import os\nos.environ.get('COMPILESCOPE_RUN') and print('mine')\nflag = 7\n"
    )
    code = "import sitecustomize; print(sitecustomize.flag)"
    done = run_captured(tmp_path, "-q", "-c", code, env={"PYTHONPATH": str(tmp_path / "own")})
    assert (done.status, done.stdout) == (0, b"mine\n7\n")


@pytest.mark.torch
def test_interrupted(tmp_path: Path) -> None:
    code = (
        "import os, signal, torch\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(9**9): pass"
    )
    # Without torch, above, this is compared with the program as it is plainly.
    captured = run_captured(tmp_path / "runs", "-q", "-c", code)
    assert (captured.status, captured.stdout) == (-2, b"")
    assert captured.stderr.endswith(b"\nKeyboardInterrupt\n") and OUR_CODE not in captured.stderr
    seen = show(tmp_path / "runs")["ended"]
    assert (seen["how"], seen["signal"], seen["exception"]) == (
        "signal",
        "SIGINT",
        "KeyboardInterrupt",
    )


def test_a_test_that_fails_is_not_the_end_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    command = captured_command(tmp_path / "runs", "-q", "--pytest", "-p", "no:cacheprovider")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # Plugins take longer than this test.
    done = finish(start([*command, "test_it.py"], cwd=tmp_path, env=alone))
    assert done.status == 1, done.stderr.decode()
    assert show(tmp_path / "runs")["ended"]["text"] == "The program ended with exit status 1."


@pytest.mark.torch
@pytest.mark.slow
def test_a_rank_under_torchrun(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, signal, sys, torch\n"
        "if os.environ['RANK'] == '1':\n"
        "    if sys.argv[1] == 'raise':\n"
        "        raise ValueError('rank one')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for how, exception in (
        ("raise", "ValueError: rank one"),
        ("kill", "ChildFailedError: rank 1 was terminated by SIGKILL"),
    ):
        words = ("--torchrun", "--nproc-per-node", "2", str(script), how)
        done = run_captured(tmp_path / how, "-q", *words)
        assert done.status == 1
        assert show(tmp_path / how)["ended"]["exception"] == exception


def test_nothing_is_uncaught_here() -> None:
    assert uncaught() is None


def test_list_tells_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert run_captured(runs, "-q", "-c", "raise ValueError('no good')").status == 1
    command = [sys.executable, "-m", "compilescope", "list", "--dir", str(runs)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "exit 1" in listed and "ValueError: no good" in listed
