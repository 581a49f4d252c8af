"""Runs a program on other numbers than its own (seeds, batch sizes); keeps what it ends with.

    python elsewhere.py SEED MORE OUT PROGRAM [ARGS]...

SEED is added to each seed that the program sets, MORE to each batch size above 1. OUT gets every
parameter of the modules that are alive at the end, and its gradient.
"""

from __future__ import annotations

import atexit
import random
import runpy
import sys
import weakref
from typing import Any

import torch


def main() -> None:
    seed, more, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    sys.argv = sys.argv[4:]
    sys.path[0] = sys.argv[0].rpartition("/")[0] or "."
    move_seeds(seed)
    if more:
        enlarge_batches(more)
    atexit.register(keep, out, follow_modules())
    runpy.run_path(sys.argv[0], run_name="__main__")


def move_seeds(seed: int) -> None:
    draw, plain = torch.manual_seed, random.seed

    def manual_seed(value: int) -> torch.Generator:
        return draw(value + seed)

    def random_seed(value: Any = None, version: int = 2) -> None:
        plain(value + seed if isinstance(value, int) else value, version)

    torch.manual_seed = manual_seed
    random.seed = random_seed  # type: ignore[assignment]
    manual_seed(seed)
    random_seed(seed)


def enlarge_batches(more: int) -> None:
    from torch.utils.data import DataLoader

    begin = DataLoader.__init__

    def __init__(
        self: Any, dataset: Any, batch_size: int | None = 1, *args: Any, **kw: Any
    ) -> None:
        larger = batch_size + more if batch_size and batch_size > 1 else batch_size
        begin(self, dataset, larger, *args, **kw)

    DataLoader.__init__ = __init__


def follow_modules() -> list[weakref.ref[torch.nn.Module]]:
    """In the order in which they are made."""
    found: list[weakref.ref[torch.nn.Module]] = []
    begin = torch.nn.Module.__init__

    def __init__(self: torch.nn.Module, *args: Any, **kw: Any) -> None:
        begin(self, *args, **kw)
        found.append(weakref.ref(self))

    torch.nn.Module.__init__ = __init__
    return found


def keep(out: str, modules: list[weakref.ref[torch.nn.Module]]) -> None:
    found = []
    for each in filter(None, (known() for known in modules)):
        if type(each).__name__ != "OptimizedModule":
            for name, tensor in each.named_parameters(recurse=False):
                grad = tensor.grad if tensor.grad is not None else torch.zeros_like(tensor)
                found.append((type(each).__name__, name, tensor.detach().clone(), grad.clone()))
    torch.save(found, out)


if __name__ == "__main__":
    main()
