"""Commands in this process, for tests whose subject is what a command says: a process each costs
half a second of starting Python."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import main


def called(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """As `compilescope WORDS` would end, started without a terminal."""
    out, err, here = io.StringIO(), io.StringIO(), os.getcwd()
    line = ["compilescope", *map(str, words)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        patch.setattr(sys, "argv", line)
        patch.setattr(sys, "stdin", io.StringIO())
        os.chdir(cwd or here)
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.raises(SystemExit) as ended,
            ):
                main()
        finally:
            os.chdir(here)
    status = ended.value.code or 0
    assert isinstance(status, int), status
    return subprocess.CompletedProcess(line, status, out.getvalue(), err.getvalue())
