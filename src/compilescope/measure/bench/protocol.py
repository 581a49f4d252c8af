"""What is to be measured, what the driver asks of a worker process, and what comes back, each as
JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.record.benchmark import Machine
from compilescope.record.bodies import Body
from compilescope.record.stack import Frame

_Mode = Literal["inference", "training"]
EAGER = "eager"
"""The model without torch.compile: what every backend is compared with."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one backend."""

    model: str
    """A name of `bench/models`, of an entry point, or `file.py:build`."""
    backend: str = EAGER
    mode: _Mode = "inference"
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


Verb = Literal["survey", "prepare", "first", "warm", "run", "memory", "examine"]


class WorkerRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing to do. `survey` has several specs, `prepare` and `examine` one, the rest none."""

    verb: Verb
    specs: tuple[Spec, ...] = ()


class WorkerReply(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What came of it: a value, or why there is none."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    """In a sentence."""
    hint: str = ""


class MachineSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, and what cannot be measured on it: the names of models, each with a reason."""

    machine: Machine
    unavailable: dict[str, str]


class BuiltReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was built."""

    parameters: int
    batch: int


class FirstCall(msgspec.Struct, frozen=True, kw_only=True):
    """The first call, which compiles."""

    seconds: float
    resident_bytes: int
    """Of this process."""
    device_bytes: int = 0
    """That it holds of the accelerator's memory."""
    device_free_bytes: int | None = None
    """What is left of it; None: there is no accelerator."""


class WarmUp(msgspec.Struct, frozen=True, kw_only=True):
    """After the warm-up."""

    calls: int
    """That every run from here on is the mean of."""


class RunTime(msgspec.Struct, frozen=True, kw_only=True):
    """One timed run."""

    ms: float
    """For one call."""


class PeakMemory(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What `bench.examination` found; None: not known, or without a meaning there."""

    graphs: int | None = None
    breaks: int | None = None
    recompiles: int | None = None
    violations: int | None = None
    """Errors alone."""
    kerneldiff: Literal["", "pass", "fail", "unknown"] = ""
    notes: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = ()
    stacks: tuple[tuple[Frame, ...], ...] = ()
    """Where in the source each of them is; empty: not known."""
