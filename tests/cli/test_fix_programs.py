"""`fix` on real programs of every kind, by the command line: one sensible answer each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1800)]

BREAKS = '''"""Trains a little."""
import sys

import torch


def f(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


if __name__ == "__main__":
    f = torch.compile(f, backend="eager")
    print(f(torch.ones(3)).tolist(), sys.argv[1:])
'''
PRINTS = """import torch


def f(x):
    y = x + 1
    print("in f", tuple(y.shape))
    return y * 2


f = torch.compile(f, backend="eager")
print(f(torch.ones(3)).tolist())
"""


def _start(folder: Path, *words: str, **more: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONHASHSEED": "0"}
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "compilescope.apps.cli.main", "fix", *words],
        cwd=folder,
        env=environment,
        text=True,
        stdin=more.pop("stdin", subprocess.DEVNULL),  # type: ignore[arg-type]
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _fix(folder: Path, *words: str, given: str | None = None) -> tuple[int, str, str]:
    process = _start(folder, *words, stdin=subprocess.PIPE if given else subprocess.DEVNULL)
    out, err = process.communicate(given, timeout=900)
    assert "Traceback" not in err, err
    assert list((folder / "tmp").glob("compilescope-*")) == []
    return process.returncode, out, err


def _program(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _value(folder: Path, *words: str, given: str | None = None) -> dict[str, object]:
    code, out, err = _fix(folder, "--no-time", "--json", *words, given=given)
    value: dict[str, object] = json.loads(out)
    assert value["exit_code"] == code, err
    return value


def test_nothing_to_fix(tmp_path: Path) -> None:
    path = _program(tmp_path, BREAKS.replace("    torch._dynamo.graph_break()\n", ""))
    before = path.read_bytes()
    code, out, _ = _fix(tmp_path, "train.py")
    assert code == 0 and "Nothing to fix." in out
    code, out, _ = _fix(tmp_path, "--write", "train.py")
    assert code == 0 and path.read_bytes() == before


def test_a_program_that_compiles_nothing(tmp_path: Path) -> None:
    _program(tmp_path, "import torch\nprint(torch.ones(3))\n")
    code, out, err = _fix(tmp_path, "train.py")
    assert (code, out) == (2, "") and "compiled nothing" in err and "--compile-all" in err


def test_one_that_crashes(tmp_path: Path) -> None:
    _program(tmp_path, "raise SystemExit('no data here')\n", "early.py")
    code, out, err = _fix(tmp_path, "early.py")
    assert (code, out) == (2, "") and "no data here" in err
    _program(tmp_path, BREAKS + "    raise ValueError('no such key')\n", "late.py")
    code, out, err = _fix(tmp_path, "--no-time", "late.py")
    assert code == 2 and "no such key" in " ".join(out.split()) and "verified," not in out


def test_one_that_is_not_given_what_it_needs(tmp_path: Path) -> None:
    _program(tmp_path, PRINTS.replace("torch.ones(3)", "torch.ones(int(input()))"))
    code, out, err = _fix(tmp_path, "train.py")
    assert code == 2 and "EOFError" in out + err


def test_one_that_never_ends(tmp_path: Path) -> None:
    _program(tmp_path, "import time\nwhile True:\n    time.sleep(1)\n")
    code, out, err = _fix(tmp_path, "--limit", "3", "train.py")
    assert (code, out) == (2, "") and "did not finish within 3 s" in err and "--limit" in err


def test_one_that_is_never_the_same(tmp_path: Path) -> None:
    text = PRINTS.replace("torch.ones(3)", "torch.ones(3) * int.from_bytes(os.urandom(2), 'big')")
    _program(tmp_path, "import os\n" + text)
    value = _value(tmp_path, "train.py")
    assert value["verdict"] != "verified" and value["exit_code"] == 1 and value["diff"] == ""


def test_arguments_and_stdin_reach_it(tmp_path: Path) -> None:
    text = PRINTS.replace("torch.ones(3)", "torch.ones(int(input()) + int(sys.argv[2]))")
    _program(tmp_path, "import sys\n" + text)
    value = _value(tmp_path, "train.py", "--size", "1", "--script", given="2\n")
    assert value["verdict"] == "verified" and value["breaks_after"] == 0
    done = subprocess.run(
        [sys.executable, str(value["script"]), "--size", "1"],
        input="2\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0 and "[4.0, 4.0, 4.0]" in done.stdout


def test_a_notebook_as_a_script(tmp_path: Path) -> None:
    cells = PRINTS.replace("\n\ndef f", "\n\n# In[2]:\n\n\nget_ipython = lambda: None\n\n\ndef f")
    head = "#!/usr/bin/env python\n# coding: utf-8\n\n# # A title\n\n# In[1]:\n\n\n"
    path = _program(tmp_path, head + cells, "note book.py")
    value = _value(tmp_path, "note book.py", "--write")
    assert value["written"] == [str(path)] and value["breaks_after"] == 0
    text = path.read_text()
    assert text.startswith(head) and "# In[2]:\n" in text


def test_a_package_by_m(tmp_path: Path) -> None:
    main = PRINTS.replace("import torch\n", "import torch\n\nfrom .size import SIZE\n")
    _program(tmp_path, main.replace("ones(3)", "ones(SIZE)"), "app/__main__.py")
    _program(tmp_path, "SIZE = 4\n", "app/size.py")
    _program(tmp_path, "", "app/__init__.py")
    value = _value(tmp_path, "--script", "-m", "app")
    assert value["breaks_after"] == 0
    done = subprocess.run(
        [sys.executable, "-m", "app.app_fixed"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "[4.0, 4.0, 4.0, 4.0]" in done.stdout, done.stderr


@pytest.mark.parametrize("pause", [0.0, 6.0, 18.0])
def test_an_interrupt_leaves_nothing_behind(pause: float, tmp_path: Path) -> None:
    path = _program(tmp_path, PRINTS)
    process = _start(tmp_path, "--write", "train.py")
    while not list((tmp_path / "tmp").glob("compilescope-*")):
        time.sleep(0.05)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    if process.returncode == 0:
        pytest.skip("it was done before")
    assert process.returncode == 130 and out == "" and "stopped" in err
    assert path.read_text() == PRINTS
    assert not list((tmp_path / "tmp").glob("compilescope-*"))
    assert not [each.name for each in tmp_path.iterdir() if ".part" in each.name]


def test_a_polite_end_cleans_up_too(tmp_path: Path) -> None:
    _program(tmp_path, "import time\ntime.sleep(600)\n")
    process = _start(tmp_path, "train.py")
    time.sleep(5)
    process.terminate()
    process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    assert not list((tmp_path / "tmp").glob("compilescope-*"))


def test_git_stops_it_before_anything_runs(tmp_path: Path) -> None:
    _program(tmp_path, PRINTS)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    code, out, err = _fix(tmp_path, "train.py", "--write")
    assert (code, out) == (2, "") and "train.py is not committed" in err and "--force" in err


def test_the_temporary_folder_is_ours_alone() -> None:
    """The tests above look for what is left behind under this name."""
    from compilescope.change.repair.trials.workbench import Workbench
    from compilescope.instrument.recorder.target import Target

    with Workbench(Target("code", ("pass",))) as bench:
        assert bench._folder.name.startswith("compilescope-")
        assert bench._folder.parent == Path(tempfile.gettempdir())
