"""Runs programs one after the other, each with a capture, a console log and a trace of its own.

    TORCH_LOGS=+dynamo,recompiles python logged_programs.py FOLDER PROGRAM...

leaves FOLDER/<name>/console.log, FOLDER/<name>/trace/*.log and FOLDER/<name>/run. One process for
all: importing torch takes longer than most programs. What ends a program by an exception is
printed, as Python would.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from traced_programs import trace_into


@contextlib.contextmanager
def console_into(path: Path) -> Iterator[None]:
    """What is written to file descriptor 2: torch's handlers, and tracebacks."""
    sys.stderr.flush()
    before = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)


def run_program(path: Path, folder: Path) -> None:
    import torch

    import compilescope

    torch._dynamo.reset()
    folder.mkdir(parents=True)
    console = sys.stderr
    with (
        warnings.catch_warnings(),
        console_into(folder / "console.log"),
        contextlib.redirect_stdout(io.StringIO()),
        trace_into(folder / "trace"),
        compilescope.capture(dir=folder / "run"),
    ):
        warnings.simplefilter("ignore")
        try:
            runpy.run_path(str(path), run_name="__main__")
        except Exception:
            traceback.print_exc(file=console)
        except SystemExit:
            pass


def main() -> None:
    folder, programs = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    import torch  # noqa: F401

    for path in programs:
        run_program(path, folder / path.stem)


if __name__ == "__main__":
    main()
