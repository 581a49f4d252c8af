"""What is asked of a process beside running the program: replays of its regions, or facts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from compilescope.repair.trials.inside.imports import after_import
from compilescope.settings import env_rank
from compilescope.torchapi.autocompile import compile_modules
from compilescope.torchapi.regions.drawing import use_eager_random_numbers


def begin(trial: dict[str, Any]) -> None:
    """torch has just been imported, and nothing of the program's has been compiled yet."""
    if trial.get("probe"):
        from compilescope.repair.trials.inside.probing import Prober

        Prober(trial["probe"]).begin()
    elif trial.get("survey"):
        from compilescope.repair.trials.inside.surveying import Surveyor

        Surveyor(trial["survey"]).begin()
    compile_modules(tuple(trial["compile_names"]), trial["backend"])


def draw_as_eager() -> None:
    """Before Inductor compiles anything, if it ever does."""
    after_import("torch._inductor.config", use_eager_random_numbers)


def claim(folder: Path) -> bool:
    """Only one process of a program tells: the first of rank 0 that has something to tell."""
    if env_rank() != 0:
        return False
    try:
        os.mkdir(folder / "claimed")
    except OSError:
        return False
    return True


def seed_torch(seed: int) -> None:
    torch.manual_seed(seed)
