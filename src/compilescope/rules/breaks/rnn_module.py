"""`nn.RNN`, `nn.GRU` and `nn.LSTM`."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("RNN, GRU, or LSTM")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` runs an nn.RNN, nn.GRU or nn.LSTM, which has its own fused kernel. Dynamo "
        "skips these modules by default."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Call the recurrent module outside `{cause.function}`, and compile the code before it "
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
    examples=(
        Example(
            bad="""import torch

torch.manual_seed(0)
rnn = torch.nn.LSTM(4, 4)

def f(x):
    return rnn(x + 1)[0] * 2

print(torch.compile(f, backend="eager")(torch.ones(2, 1, 4)))
""",
            good="""import torch

torch.manual_seed(0)
rnn = torch.nn.LSTM(4, 4)
before = torch.compile(lambda x: x + 1, backend="eager")
after = torch.compile(lambda y: y * 2, backend="eager")
print(after(rnn(before(torch.ones(2, 1, 4)))[0]))
""",
        ),
    ),
)
