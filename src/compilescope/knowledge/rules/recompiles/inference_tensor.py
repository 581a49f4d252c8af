"""A tensor created in inference mode, or a call inside it."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    dispatch_tensor,
    keys_gone_and_new,
    shown,
)

_KEY = "ADInplaceOrView"
"""Every tensor has this key but those made in inference mode."""


def _applies(miss: RecompileCase) -> bool:
    gone, new = keys_gone_and_new(miss)
    return _KEY in gone or _KEY in new


def _why(miss: RecompileCase) -> str:
    gone, _ = keys_gone_and_new(miss)
    change = "came from inference mode, unlike" if _KEY in gone else "is an ordinary tensor, unlike"
    return (
        f"`{shown(dispatch_tensor(miss))}` {change} the one that `{called(miss)}` was compiled "
        "with. Tensors created in `torch.inference_mode()` have no autograd version counter and "
        "are dispatched differently, so they need their own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor = shown(dispatch_tensor(miss))
    return [
        source(
            f"Create `{tensor}` outside `torch.inference_mode()`, or pass a copy created outside "
            f"it (`{tensor}.clone()`)."
        ),
        leave(miss, "of the two modes"),
    ]


RULE = GuardRule(
    id="inference-tensor",
    order=130,
    needs=("dispatch keys",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
