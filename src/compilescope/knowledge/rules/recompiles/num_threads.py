"""The number of CPU threads changed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject == "num_threads"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` was compiled while torch used {miss.finding.expected} CPU threads; now it "
        f"uses {miss.finding.actual}. Generated CPU code is specific to the number of threads, so "
        "Dynamo recompiles."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Set the number of threads once, before the first call of `{called(miss)}`, and don't "
            "change it: look for later calls to `torch.set_num_threads`, including in libraries."
        )
    ]


RULE = GuardRule(
    id="num-threads",
    order=50,
    needs=("num_threads",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
