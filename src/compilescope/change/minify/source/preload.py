"""Imported by the warm process before it forks: tries one program, so that no candidate pays.

What stays of it are imported modules and parsed rules: the caches of compiled code are emptied, and
no thread is left.
"""

from __future__ import annotations

import os
import sys
import tempfile

import msgspec
import torch

from compilescope.change.minify.source.findings import TrialRequest
from compilescope.change.minify.source.trial import try_program
from compilescope.instrument.torchapi.compilation.settings import skip_guard_timing

_PROGRAM = """
import torch

def step(x):
    if x.sum() > 0:
        x = x + 1
    return x

for backend in ("eager", "aot_eager"):
    compiled = torch.compile(step, backend=backend)
    for size in (2, 3):
        compiled(torch.ones(size))
"""


def _warm_up() -> None:
    skip_guard_timing()
    argv, path, cwd = sys.argv, list(sys.path), os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try_program(msgspec.to_builtins(TrialRequest(_PROGRAM, folder)), goes_on=True)
        sys.argv, sys.path[:] = argv, path
        os.chdir(cwd)
    torch.compiler.reset()


_warm_up()
