"""Imported by the warm process before it forks: compiles once, so that no candidate has to.

All that it leaves behind is imported modules. No backward pass is run: threads of autograd's engine
do not survive a fork.
"""

from __future__ import annotations

import torch

from compilescope.change.minify.graph import catcher as catcher
from compilescope.change.minify.graph import tasks as tasks
from compilescope.change.minify.violations import kinds as kinds
from compilescope.measure.tensors import rounding as rounding


def _warm_up() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        for backend in ("eager", "aot_eager"):
            torch.compile(lambda x: x.sin() + 1, backend=backend)(torch.ones(2))
    torch.compiler.reset()
    torch.set_num_threads(threads)


_warm_up()
