"""Another process-wide torch setting has changed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, cut, named

_SWITCHES = {
    "deterministic_algorithms": "torch.use_deterministic_algorithms(...)",
    "deterministic_algorithms_warn_only": "torch.use_deterministic_algorithms(..., warn_only=...)",
    "allow_tf32": "torch.backends.cuda.matmul.allow_tf32` or `torch.set_float32_matmul_precision(...)",
    "allow_fp16_reduce": "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduce": "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
}


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "GLOBAL_STATE" or miss.finding.subject in _SWITCHES


def _why(miss: RecompileCase) -> str:
    change = (
        f"was {cut(miss.finding.expected)} at compilation and is {cut(miss.finding.actual)} now"
    )
    if not miss.finding.expected:
        change = "has changed since compilation"
    return (
        f"`{named(miss)}`, a process-wide torch setting, {change}. It decides which kernels may be "
        f"used, so every compiled function depends on it, including `{called(miss)}`."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    switch = _SWITCHES.get(miss.finding.subject, "")
    what = f"`{switch}`" if switch else f"what sets `{named(miss)}`"
    return [
        source(
            f"Set it once, before the first call of `{called(miss)}`: look for {what} between the "
            "calls, including in libraries."
        )
    ]


RULE = GuardRule(
    id="global-state",
    order=90,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
