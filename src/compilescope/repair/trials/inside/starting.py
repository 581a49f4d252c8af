"""How a process of a program that is tried begins: seeds, new texts, and what is asked of it."""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from compilescope.repair.trials.inside.imports import after_import
from compilescope.repair.trials.inside.overlay import Overlay
from compilescope.settings import read_trial


def begin() -> Overlay:
    """Read what the workbench wrote, and do it. Gives the texts that lie over files now."""
    path = read_trial()
    if path is None:
        return Overlay({})
    trial = json.loads(path.read_text(encoding="utf-8"))
    overlay = Overlay(trial["files"])
    overlay.install()
    seed = trial["seed"]
    random.seed(seed)
    after_import("numpy.random", lambda: sys.modules["numpy.random"].seed(seed % 2**32))
    after_import("torch", lambda: _torch_is_there(trial))
    return overlay


def _torch_is_there(trial: dict[str, Any]) -> None:
    from compilescope.repair.trials.inside import asking
    from compilescope.torchapi.preloading import LARGE

    for name in LARGE:
        after_import(name, lambda: None)  # Watched imports are quicker.
    asking.seed_torch(trial["seed"])
    if trial["eager_random"]:
        asking.draw_as_eager()
    if trial.get("probe") or trial.get("survey"):
        asking.begin(trial)
