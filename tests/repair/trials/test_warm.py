"""Forks of a warm process are as good as fresh ones: what a program sees, and how it ends."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from gone import is_gone

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only"),
]
_TELL = """
import atexit, inspect, json, os, sys, threading
def told():
    return sys._getframe().f_code.co_filename
main = sys.modules["__main__"]
print(json.dumps({
    "name": __name__, "file": globals().get("__file__"), "argv": sys.argv, "path": sys.path[0],
    "package": __package__, "code": told(), "spec": __spec__ and __spec__.name,
    "same": main.__dict__ is globals(), "cwd": os.getcwd(), "orig": sys.orig_argv[1:],
    "torch": "torch" in sys.modules, "numpy": "numpy" in sys.modules, "hash": hash("a"),
    "streams": [sys.stdin.fileno(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.errors],
    "thread": threading.current_thread().name, "stdin": sys.stdin.read(),
    "flags": list(sys.flags), "environment": sorted(k for k in os.environ if "COMPILE" not in k),
}))
"""


def _both(target: Target, warm: WarmParent, **more) -> tuple[CapturedRun, CapturedRun]:
    """In a fork, which it really was, and in a new interpreter."""
    with Workbench(target, warm=warm, **more) as bench:
        forked = bench.watch(Version())
        assert not bench.cold
        return forked, bench.watch(Version(), fresh=True)


@pytest.mark.parametrize("kind", ["script", "module", "code", "folder"])
def test_the_program_finds_what_it_finds_in_a_new_interpreter(
    kind: str, warm: WarmParent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "telling").mkdir()
    for name in ("teller.py", "telling/__main__.py"):
        (tmp_path / name).write_text(_TELL)
    monkeypatch.chdir(tmp_path)
    target = {
        "script": Target("script", ("teller.py", "a", "-b")),
        "module": Target("module", ("teller", "a")),
        "code": Target("code", (_TELL, "a")),
        "folder": Target("script", ("telling", "a")),
    }[kind]
    forked, fresh = _both(target, warm, stdin=b"given")
    assert fresh.exit_status == 0, fresh.stderr.decode()
    assert json.loads(forked.stdout) == json.loads(fresh.stdout)


_ENDS = {
    "status": "import sys; print('out'); sys.exit(3)",
    "words": "import sys; sys.exit('no good')",
    "exception": "def f():\n    raise ValueError('oh')\n\n\nf()",
    "at once": "import os; print('lost'); os._exit(5)",
    "abort": "import os; print('out', flush=True); os.abort()",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "syntax": "x = = 1",
    "handlers": (
        "import atexit, threading\n"
        "class Late:\n    def __del__(self): print('gone')\n"
        "late = Late()\n"
        "atexit.register(print, 'first'); atexit.register(print, 'second')\n"
        "main = threading.main_thread()\n"
        "threading.Thread(target=lambda: (main.join(), print('thread'))).start()\n"
        "file = open('kept.txt', 'w'); file.write('kept')\n"
        "print('end')"
    ),
    "hook": "import sys\nsys.excepthook = lambda *error: print('hooked', error[1])\n1 / 0",
    "daemon": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('end')"
    ),
}


@pytest.mark.parametrize("how", _ENDS)
def test_it_ends_as_a_new_interpreter_does(
    how: str, warm: WarmParent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(_ENDS[how] + "\n")
    forked, fresh = _both(Target("script", ("program.py",)), warm)
    assert (forked.exit_status, forked.stdout) == (fresh.exit_status, fresh.stdout)
    assert forked.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]
    assert b"compilescope" not in forked.stderr
    if how == "handlers":
        assert (tmp_path / "kept.txt").read_text() == "kept"
    if how == "killed":
        assert forked.exit_status == -signal.SIGKILL


def test_one_leaves_nothing_to_the_next(warm: WarmParent, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import os, random, sys, torch\n"
        "print(random.random(), torch.rand(1).item())\n"
        "print(hasattr(torch, 'mark'), 'MARK' in os.environ, 'mark' in sys.modules)\n"
        "torch.mark = os.environ['MARK'] = 'set'\n"
        "sys.modules['mark'] = sys\n"
        "torch.manual_seed(7); random.seed(7); torch._dynamo.config.verbose = True\n"
    )
    target = Target("script", (str(file),))
    with Workbench(target, warm=warm) as bench:
        first, second = (bench.watch(Version(), again=True).stdout for _ in range(2))
        assert first == second != b""
        assert bench.watch(Version(), fresh=True).stdout == first
        assert bench.watch(Version(), timed=True).stdout == first
    file.write_text("import random\nprint(random.random(), hash('a'))\n")
    with Workbench(target, warm=warm) as bench:
        first = bench.watch(Version()).stdout
    with Workbench(target, warm=warm, seed=5) as bench:
        # Hashes are seeded when Python starts.
        assert bench.watch(Version()).stdout != first and bench.cold


_SETS_THREADS = """
import os
runs = len(os.listdir())
open(f"begun{runs}", "w").close()
os.environ["OMP_NUM_THREADS"] = str(runs + 40)  # Another each time.
if runs < 3:  # In a fork; the new interpreter would need seconds for it.
    import torch
"""


@pytest.mark.parametrize(
    ("text", "beside", "reason"),
    [
        (_SETS_THREADS, "", "OMP_NUM_THREADS"),
        ("import torch", "numpy.py", "numpy.py"),
        ("import sys\nsys.path.insert(0, 'lib')\nimport sympy", "lib/sympy.py", "sympy"),
    ],
)
def test_where_a_fork_would_be_another_program(
    text: str, beside: str, reason: str, warm: WarmParent, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if beside:
        (tmp_path / beside).parent.mkdir(exist_ok=True)
        (tmp_path / beside).write_text("")
    (tmp_path / "program.py").write_text(f"{text}\nprint('done')\n")
    with Workbench(Target("script", ("program.py",)), warm=warm) as bench:
        seen = bench.watch(Version())
        assert reason in bench.cold
        assert (seen.exit_status, seen.stdout) == (0, b"done\n") or beside == "numpy.py"


def test_variables_that_a_program_sets_first_are_set_before_torch_is_imported(
    warm: WarmParent, tmp_path: Path
) -> None:
    told = "import torch\nprint(torch.get_num_threads(), torch.rand(1).item())\n"
    plain, changed = tmp_path / "plain.py", tmp_path / "changed.py"
    plain.write_text(told)
    changed.write_text(
        f"import os\nprint('A_MARK' in os.environ)\nos.environ['A_MARK'] = '1'\n{told}"
    )
    seen = []
    for file in (changed, plain):
        with Workbench(Target("script", (str(file),)), warm=warm) as bench:
            seen.append(bench.watch(Version()).stdout)
            assert bench.watch(Version(), again=True).stdout == seen[-1]
            assert not bench.cold
    assert seen[0] == b"False\n" + seen[1] != b"False\n"


@pytest.mark.slow
def test_a_version_that_needs_a_fresh_process_gets_one_alone(
    warm: WarmParent, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text("import os, torch\nprint(os.environ.get('TORCH_X'), hasattr(torch, 'mark'))\n")
    import torch.version

    path = torch.version.__file__
    text = Path(path).read_text() + "\nimport torch\ntorch.mark = 1\n"
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        assert bench.watch(Version(environment={"TORCH_X": "y"})).stdout == b"y False\n"
        assert bench.watch(Version({path: text})).stdout == b"None True\n"
        assert bench.watch(Version()).stdout == b"None False\n"
        assert not bench.cold


def test_a_limit_ends_it_with_its_children(warm: WarmParent, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],\n"
        "                         start_new_session=True)\n"
        "print(child.pid, flush=True)\ntime.sleep(600)\n"
    )
    # Where a busy machine has not started the child by then, there is none to be ended.
    for limit_s in (1, 15, 60):
        with Workbench(Target("script", (str(file),)), warm=warm, limit_s=limit_s) as bench:
            seen = bench.watch(Version())
            assert seen.timed_out and seen.exit_status < 0 and not bench.cold
        if seen.stdout:
            break
    assert is_gone(int(seen.stdout))
    (tmp_path / "next.py").write_text("print(1)\n")
    with Workbench(Target("script", (str(tmp_path / "next.py"),)), warm=warm) as bench:
        assert bench.watch(Version()).stdout == b"1\n" and not bench.cold


@pytest.mark.slow
def test_without_a_warm_process_all_are_fresh(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import sys\nprint('torch' in sys.modules)\n")
    parent = WarmParent()
    parent.reason = "there is none here"
    with Workbench(Target("script", (str(file),)), warm=parent) as bench:
        assert bench.watch(Version()).stdout == b"False\n"
        assert bench.cold == "there is none here" and not parent.is_up
