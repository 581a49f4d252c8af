"""The default device changed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "DEFAULT_DEVICE" or "CURRENT_DEVICE" in miss.finding.subject


def _why(miss: RecompileCase) -> str:
    was = miss.finding.expected
    before = (
        "there was no default device" if was in ("None", "") else f"the default device was {was}"
    )
    return (
        f"When `{called(miss)}` was compiled, {before}; since then, `torch.set_default_device` or "
        "a `with torch.device(...)` has changed it. Tensors created in the graph would end up on "
        "another device."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Set the default device once, before the first call of `{called(miss)}`, and don't "
            "change it. Pass `device=` for what must be created elsewhere."
        )
    ]


RULE = GuardRule(
    id="default-device",
    order=70,
    needs=("DEFAULT_DEVICE", "CURRENT_DEVICE"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
