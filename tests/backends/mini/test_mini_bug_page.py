"""The page on a planted bug shows what really happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs_pages import page_text

pytestmark = [pytest.mark.torch, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
PAGE = page_text("mini-bug")
PROGRAM = ROOT / "examples" / "planted_bug.py"
BACKEND = ("--test-backend", "compilescope_mini")
_SECONDS = re.compile(r"in \d+ runs and .*")


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COMPILESCOPE_MINI_PLANT": "fusion", **more}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def tool(*words: str) -> list[str]:
    return [sys.executable, "-m", "compilescope", *words]


# About 1 min.
def test_the_page_shows_what_happens(library: object, tmp_path: Path) -> None:
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    shutil.copy(PROGRAM, tmp_path)
    build = f"{PROGRAM.name}:build"
    found = run(tool("diff", build, *BACKEND, "--localize"), tmp_path)
    assert found.returncode == 1, found.stderr
    for line in shown[0].splitlines():
        if "wrong operation" in line or line.startswith("FAIL"):
            assert line in found.stdout
    details = run(tool("diff", build, *BACKEND, "--localize", "--json"), tmp_path)
    assert shown[1].strip() in details.stdout

    predicate = ("--predicate", "diff", "-o", "repro.py")
    small = run(tool("minify", PROGRAM.name, *BACKEND, *predicate), tmp_path)
    assert small.returncode == 0, small.stderr
    assert _SECONDS.sub("", shown[2]).strip() in _SECONDS.sub("", small.stdout)
    graph = re.search(r"```python\n(class Graph.*?)\n\n\ndef", PAGE, re.S)
    assert graph is not None
    assert graph[1] in (tmp_path / "repro.py").read_text()
    for off, status in (("", 1), ("fusion", 0)):
        again = run([sys.executable, "repro.py"], tmp_path, COMPILESCOPE_MINI_OFF=off)
        assert again.returncode == status, again.stderr
