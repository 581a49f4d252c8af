"""The flag with which Dynamo traces nn.RNN, nn.GRU and nn.LSTM."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject

_PACKING = tuple(f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence"))


def _propose(subject: Subject) -> Patch:
    module = subject.module
    for node in module.walk():
        if isinstance(node, cst.Call) and module.calls(node, *_PACKING):
            raise Refused("the module gets packed sequences, which Dynamo cannot trace")
    return with_flag(subject, "allow_rnn", True)


FIX = Fix(
    id="rnn-traced",
    title="let Dynamo trace recurrent modules (allow_rnn)",
    rules=frozenset({"rnn-module"}),
    order=120,
    kind="config",
    why="With this flag, the module's fused operator is part of the graph. Compilation takes "
    "longer, because the compiler sees every time step, and each new sequence length is "
    "compiled again.",
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
    refusals=(
        RefusalExample(
            program="""import torch
from torch.nn.utils.rnn import pack_padded_sequence

rnn = torch.nn.GRU(4, 4)


@torch.compile(backend="eager")
def f(x):
    return rnn(pack_padded_sequence(x, [3, 2]))[1]


f(torch.ones(3, 2, 4))
""",
            because="packed sequences",
        ),
    ),
)
