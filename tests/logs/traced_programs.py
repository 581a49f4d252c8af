"""Runs programs one after the other, each with a capture and a TORCH_TRACE of its own.

    python traced_programs.py FOLDER PROGRAM...

leaves FOLDER/<name>/trace/*.log and FOLDER/<name>/run. One process for all: importing torch takes
longer than most programs. It goes on past a program that raises, as the capture of it does.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def trace_into(folder: Path) -> Iterator[None]:
    """As with TORCH_TRACE=folder at the start of a process."""
    from torch._logging import _internal, structured

    folder.mkdir(parents=True)
    handler = _internal.LazyTraceHandler(str(folder))
    handler.setFormatter(_internal.TorchLogsFormatter(trace=True))
    # A file of its own begins with no string known, and tells the version of torch again.
    structured.INTERN_TABLE.clear()
    _internal.trace_log.addHandler(handler)
    try:
        yield
    finally:
        _internal.trace_log.removeHandler(handler)
        handler.close()


def run_program(path: Path, folder: Path) -> None:
    import torch

    import compilescope

    torch._dynamo.reset()
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
        trace_into(folder / "trace"),
        compilescope.capture(dir=folder / "run"),
    ):
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception, SystemExit):
            runpy.run_path(str(path), run_name="__main__")


def main() -> None:
    folder, programs = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    os.environ.pop("TORCH_TRACE", None)
    import torch  # noqa: F401

    logging.getLogger("torch").setLevel(logging.CRITICAL)
    for path in programs:
        run_program(path, folder / path.stem)


if __name__ == "__main__":
    main()
