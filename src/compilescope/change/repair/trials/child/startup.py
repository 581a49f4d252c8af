"""How a process of a program that is tried begins: seeds, new texts, and what is asked of it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from compilescope.base.settings import env_rank, read_trial
from compilescope.change.repair.trials.child.imports import after_import
from compilescope.change.repair.trials.child.line_watcher import watch_lines
from compilescope.change.repair.trials.child.overlay import Overlay
from compilescope.change.repair.trials.child.ranks import separate_streams
from compilescope.instrument.torchapi.plain_torch import PlainTorch


def begin() -> Overlay:
    """Read what the workbench wrote, and do it. Gives the texts that lie over files now."""
    path = read_trial()
    if path is None:
        return Overlay({})
    trial = json.loads(path.read_text(encoding="utf-8"))
    if trial["launched"]:
        separate_streams(Path(path).parent)
        trial["seed"] += env_rank()  # Ranks draw other numbers, as they do without us.
    overlay = Overlay(trial["files"], trial.get("moved"), trial["absent"], trial.get("noted"))
    overlay.install()
    if trial.get("watched"):
        watch_lines(Path(path).parent, trial["watched"])
    plain = PlainTorch() if trial.get("plain") else None
    if plain is not None and plain.install():
        after_import("torch", plain.add_backends)
    seed = trial["seed"]
    random.seed(seed)
    after_import("numpy.random", lambda: sys.modules["numpy.random"].seed(seed % 2**32))
    after_import("torch", lambda: _torch_is_there(trial))
    return overlay


def _torch_is_there(trial: dict[str, Any]) -> None:
    from compilescope.change.repair.trials.child import tasks
    from compilescope.instrument.torchapi.first_imports import LARGE

    for name in LARGE:
        after_import(name, lambda: None)  # Watched imports are quicker.
    tasks.seed_torch(trial["seed"])
    if trial["launched"]:
        from compilescope.change.repair.trials.child.collectives import keep_groups

        keep_groups()
    if trial["eager_random"]:
        tasks.draw_as_eager()
    if trial.get("light"):
        tasks.compile_lightly()
    if any(trial.get(each) for each in ("probe", "survey", "task")):
        tasks.begin(trial)
