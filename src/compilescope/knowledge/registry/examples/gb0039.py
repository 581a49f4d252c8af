"""Each length of the name makes a new version of the code, until the limit of recompiles is hit."""

import torch

CONFIG = {"recompile_limit": 2}


def f(x, name):  # breaks here
    return x + len(name)


def run():
    compiled = torch.compile(f, backend="eager")
    return [compiled(torch.ones(3), name) for name in ("a", "b", "c", "d")]


def run_fixed():
    compiled = torch.compile(lambda x, length: x + length, backend="eager", dynamic=True)
    return [compiled(torch.ones(3), len(name)) for name in ("a", "b", "c", "d")]
