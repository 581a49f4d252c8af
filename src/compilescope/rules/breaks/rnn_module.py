"""`nn.RNN`, `nn.GRU` and `nn.LSTM`."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("RNN, GRU, or LSTM")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` runs an nn.RNN, nn.GRU or nn.LSTM, which has a fused kernel of its own; Dynamo "
        "leaves these modules alone by default."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        config(
            "`torch._dynamo.config.allow_rnn = True` traces them. Every time step becomes part of the graph: "
            "compile time grows with the sequence, and each length compiles anew."
        ),
        source(
            f"Or leave the recurrent module out of `{cause.function}` and compile what comes before and "
            "after it."
        ),
    ]


RULE = BreakRule(
    id="rnn-module",
    category="missing-kernel",
    order=6,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

rnn = torch.nn.LSTM(4, 4)

def f(x):
    return rnn(x + 1)[0] * 2

torch.compile(f, backend="eager")(torch.ones(2, 1, 4))
""",
            good="""import torch

rnn = torch.nn.LSTM(4, 4)
before = torch.compile(lambda x: x + 1, backend="eager")
after = torch.compile(lambda y: y * 2, backend="eager")
after(rnn(before(torch.ones(2, 1, 4)))[0])
""",
            configured="""import torch

rnn = torch.nn.LSTM(4, 4)

def f(x):
    return rnn(x + 1)[0] * 2

with torch._dynamo.config.patch(allow_rnn=True):
    torch.compile(f, backend="eager")(torch.ones(2, 1, 4))
""",
        ),
    ),
)
