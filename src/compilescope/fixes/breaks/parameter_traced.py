"""The flag with which Dynamo traces the making of an `nn.Parameter`."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    return with_flag(subject, "graph_break_on_nn_param_ctor", False)


FIX = Fix(
    id="parameter-traced",
    title="allow creating parameters in the graph (graph_break_on_nn_param_ctor off)",
    rules=frozenset({"GB0264"}),
    order=125,
    kind="config",
    why="Dynamo can trace `torch.nn.Parameter(...)` but does not by default, because few "
    "programs mean to create one in each call.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x):
    gain = torch.nn.Parameter(torch.ones(3))
    return x * gain


f(torch.ones(3))
""",
            good="""import torch


@torch._dynamo.config.patch(graph_break_on_nn_param_ctor=False)
@torch.compile(backend="eager")
def f(x):
    gain = torch.nn.Parameter(torch.ones(3))
    return x * gain


f(torch.ones(3))
""",
        ),
    ),
)
