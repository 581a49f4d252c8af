"""The flag with which Dynamo traces nn.RNN, nn.GRU and nn.LSTM."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    return with_flag(subject, "allow_rnn", True)


FIX = Fix(
    id="rnn-traced",
    title="let Dynamo trace recurrent modules (allow_rnn)",
    rules=frozenset({"rnn-module"}),
    order=120,
    kind="config",
    why="With the flag the module's fused operator is part of the graph. Compilation takes longer, "
    "since the compiler sees every time step, and each new sequence length is compiled anew.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch

rnn = torch.nn.GRU(4, 4)


@torch.compile(backend="eager")
def f(x):
    return rnn(x + 1)[0] * 2  # twice


f(torch.ones(2, 1, 4))
""",
            good="""import torch

rnn = torch.nn.GRU(4, 4)


@torch._dynamo.config.patch(allow_rnn=True)
@torch.compile(backend="eager")
def f(x):
    return rnn(x + 1)[0] * 2  # twice


f(torch.ones(2, 1, 4))
""",
        ),
    ),
)
