"""Programs of the zoo, captured once for all tests that look at what comes of it."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import runpy
import warnings
from pathlib import Path

from compilescope.record.run import Run

ZOO = Path(__file__).parent.parent / "zoo" / "programs"


@functools.cache
def captured(name: str) -> Run:
    """The program `name` of the zoo, run in this process."""
    import torch

    import compilescope

    torch._dynamo.reset()
    log = logging.getLogger("torch")
    level = log.level
    log.setLevel(logging.ERROR)
    quiet = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            config = torch._dynamo.config.save_config()
            try:
                with compilescope.capture() as seen:
                    runpy.run_path(str(ZOO / f"{name}.py"), run_name="__main__")
            finally:
                torch._dynamo.config.load_config(config)
    finally:
        log.setLevel(level)
        torch._dynamo.reset()
    return seen.run
