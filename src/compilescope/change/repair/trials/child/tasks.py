"""Starts what a tried process does besides running the program: replay regions, or take facts.

A room above this one names its own task, as `module:function`, and what it is given.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from compilescope.change.repair.trials.child.imports import after_import
from compilescope.instrument.torchapi.autocompile import compile_modules
from compilescope.instrument.torchapi.compilation.settings import (
    leave_out_inductor,
    use_eager_random_numbers,
)


def begin(trial: dict[str, Any]) -> None:
    """torch has just been imported, and nothing of the program's has been compiled yet."""
    if trial.get("probe"):
        from compilescope.change.repair.trials.child.prober import Prober

        Prober(trial["probe"]).begin()
    if trial.get("survey"):
        from compilescope.change.repair.trials.child.surveyor import Surveyor

        Surveyor(trial["survey"]).begin(alone=not trial.get("probe"))
    if trial.get("task"):
        module, _, name = trial["task"]["name"].partition(":")
        getattr(importlib.import_module(module), name)(trial["task"]["given"])
    compile_modules(tuple(trial["compile_names"]), trial["backend"])


def draw_as_eager() -> None:
    """Before Inductor compiles anything, if it ever does."""
    after_import("torch._inductor.config", use_eager_random_numbers)


def compile_lightly() -> None:
    """What capture counts, all but Inductor's own failures, does not depend on its code."""
    leave_out_inductor()


def seed_torch(seed: int) -> None:
    torch.manual_seed(seed)
