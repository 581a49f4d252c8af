"""The number of CPU threads changed."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._subjects import called


def _applies(miss: GuardFailure) -> bool:
    return miss.cause.subject == "num_threads"


def _why(miss: GuardFailure) -> str:
    return (
        f"`{called(miss)}` was compiled while torch used {miss.cause.expected} CPU threads; now it "
        f"uses {miss.cause.actual}. Generated CPU code is specific to the number of threads, so "
        "Dynamo recompiles."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    return [
        source(
            f"Set the number of threads once, before the first call of `{called(miss)}`, and don't "
            "change it: look for later calls to `torch.set_num_threads`, including in libraries."
        )
    ]


RULE = GuardRule(
    id="num-threads",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
