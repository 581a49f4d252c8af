"""Sizes that depend on the numbers, kept in the graph as symbols: a flag."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    if "no meta kernel" in subject.finding.title:
        raise Refused(
            "no kernel of this operator reports its output sizes, with or without the flag"
        )
    return with_flag(subject, "capture_dynamic_output_shape_ops", True)


FIX = Fix(
    id="capture-shapes",
    title="capture data-dependent sizes (capture_dynamic_output_shape_ops)",
    rules=frozenset({"dynamic-shape", "GB0036"}),
    order=120,
    kind="config",
    why="With `capture_dynamic_output_shape_ops`, Dynamo keeps `nonzero`, masks, `unique`, "
    "`repeat_interleave` and `bincount` in the graph. Their output size is a symbol.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x):
    (kept,) = torch.where(x > 0)
    return x[kept].sort().values


f(torch.ones(3))
""",
            good="""import torch


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x):
    (kept,) = torch.where(x > 0)
    return x[kept].sort().values


f(torch.ones(3))
""",
        ),
    ),
)
