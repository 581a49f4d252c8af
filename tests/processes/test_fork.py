"""A task in a fork: what becomes of it is no concern of the process that waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.base.settings import fresh_environment

PROGRAM = """
import atexit, os, time
from pathlib import Path
from compilescope.base.processes.fork import in_a_fork

def note(word):
    with Path("notes").open("a") as file:
        file.write(word + "\\n")

def fail():
    raise ValueError("in the fork alone")

atexit.register(note, "exit")
in_a_fork(lambda: note("done"), 60)
in_a_fork(lambda: os.abort(), 60)
in_a_fork(lambda: time.sleep(600), 0.05)
in_a_fork(fail, 60)
note("parent")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_whatever_a_fork_does_its_parent_continues(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, cwd=tmp_path, env=fresh_environment(), check=True, timeout=600)
    assert (tmp_path / "notes").read_text().split() == ["done", "parent", "exit"]
