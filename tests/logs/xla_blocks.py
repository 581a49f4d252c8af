"""Logs of torch_xla, made of blocks as it writes them."""

from __future__ import annotations

import itertools

RULE = "=" * 80
SYNC = "user torch_xla.sync"
READ = "most likely user code trying to access tensor value before torch_xla.sync"
PACKAGES = "/opt/env/lib/python3.12/site-packages"
IN_SYNC = f"sync ({PACKAGES}/torch_xla/torch_xla.py:87)"
IN_MODULE = f"_call_impl ({PACKAGES}/torch/nn/modules/module.py:1786)"
IN_PRINT = f"_str ({PACKAGES}/torch/_tensor_str.py:722)"
MAIN = "<module> (/srv/train.py:60)"
_numbers = itertools.count(1)


def graph(cause: str, *frames: str, runs: int = 1) -> str:
    """A graph that is compiled, and executed so often; frames innermost first."""
    name = f"{next(_numbers):032x}"
    compiled = _block("Compilation", cause, frames, name)
    return compiled + _block("Execution", cause, frames, name) * runs


def _block(kind: str, cause: str, frames: tuple[str, ...], name: str) -> str:
    lines = [RULE, f"{kind} Cause", f"  {cause}", "Graph Info: ", f"  Graph Hash: {name}"]
    lines += ["  Number of Graph Inputs: 3", "  Number of Graph Outputs: 1"]
    lines += ["Python Frame Triggered Execution: ", *(f"  {frame}" for frame in frames)]
    lines += ["-" * 80, RULE]
    return "\n" + "".join(f"{kind} Analysis: {line}\n" for line in lines)
