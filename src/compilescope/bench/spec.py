"""What is to be measured: one model on one backend. It travels to other processes as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

Mode = Literal["inference", "training"]
EAGER = "eager"
"""The model without torch.compile: what every backend is compared with."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one backend."""

    model: str
    """A name of `bench/models`, of an entry point, or `file.py:build`."""
    backend: str = EAGER
    mode: Mode = "inference"
    device: str = "cpu"
    dtype: str = "float32"
    batch: int | None = None
    """None: the model's own."""
    small: bool = False
    compile_mode: str = ""
    """The `mode` for torch.compile; empty: torch's default."""
    constraints: str = ""
    """A device's name or file; empty: none."""
    warmup: int = 3
    runs: int = 10
    """In each process."""
    seed: int = 0
    threads: int | None = None
    """That torch uses for one operation; None: as many as it takes by itself."""
