"""Numbers and sizes that depend on the data, both kept in the graph: two flags."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.deciding import check_no_decision
from compilescope.fixes.source.flags import with_flags
from compilescope.fixes.subject import Subject

_FLAGS = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}


def _propose(subject: Subject) -> Patch:
    if "no meta kernel" in subject.finding.title:
        raise Refused(
            "no kernel of this operator reports its output sizes, with or without the flags"
        )
    check_no_decision(subject)
    return with_flags(subject, _FLAGS)


FIX = Fix(
    id="capture-scalars-and-shapes",
    title="capture scalars and sizes in the graph",
    rules=frozenset({"scalar-extraction", "dynamic-shape", "GB0036", "GB0124"}),
    order=125,
    kind="config",
    why="A number that is the size of a `nonzero` result needs both flags.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x):
    kept = torch.nonzero(x > 0)
    return x[: kept.max().item()] * kept.shape[0]


f(torch.ones(3))
""",
            good="""import torch


@torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x):
    kept = torch.nonzero(x > 0)
    return x[: kept.max().item()] * kept.shape[0]


f(torch.ones(3))
""",
        ),
    ),
)
