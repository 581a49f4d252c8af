"""`nn.RNN`, `nn.GRU` and `nn.LSTM`."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("RNN, GRU, or LSTM")


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` runs an nn.RNN, nn.GRU or nn.LSTM, which has its own fused kernel. Dynamo "
        "skips these modules by default."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Call the recurrent module outside `{case.function}`, and compile the code before it "
            "and the code after it as separate functions."
        )
    ]


RULE = BreakRule(
    id="rnn-module",
    category="missing-kernel",
    order=6,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
