"""A small model, and backends of every kind of conduct, in one file for `bench` to load."""

from __future__ import annotations

from pathlib import Path

TEXT = """
import os
import signal
import time

import torch

LOG = {log!r}


def build():
    print("a model that prints disturbs nothing")
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()), (torch.randn(32, 64),)


def broken():
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("this model is broken")

    return Broken(), (torch.randn(2),)


def logged(name, graph):
    def call(*args):
        begun = time.monotonic_ns()
        found = graph.forward(*args)
        with open(LOG, "a") as log:
            log.write(f"{{name}} {{os.getpid()}} {{begun}} {{time.monotonic_ns()}}\\n")
        return found

    return call


def one(graph, inputs):
    return logged("one", graph)


def two(graph, inputs):
    return logged("two", graph)


def raises(graph, inputs):
    raise RuntimeError("this backend compiles nothing")


def dies(graph, inputs):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(graph, inputs):
    time.sleep(600)


def counted(graph, inputs):
    from torch._dynamo.utils import counters
    from torch._inductor.compile_fx import compile_fx

    found = compile_fx(graph, inputs)
    hits = counters["aot_autograd"]["autograd_cache_hit"]
    hits += counters["inductor"]["fxgraph_cache_hit"]
    with open(LOG, "a") as log:
        log.write(f"hits {{hits}}\\n")
    return found
"""


def write_program(folder: Path) -> tuple[Path, Path]:
    """The file, and the log that its backends write."""
    file, log = folder / "small.py", folder / "calls.log"
    file.write_text(TEXT.format(log=str(log)))
    log.touch()
    return file, log
