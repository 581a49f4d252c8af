"""`dynamic=True`: sizes and numbers may vary from the first call on."""

from __future__ import annotations

import re

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NeedsRun, NotMeant, Patch, Refused
from compilescope.fixes.source.compiling import set_argument
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.guarded import cause_of, check_may_vary, check_no_parameter
from compilescope.fixes.source.regions import Region, region_of
from compilescope.fixes.subject import Subject

_ASKED = "`dynamic=False` was set: graphs are no longer compiled for each size."
_ANY_SIZE = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition")
_ANY_VALUE = ("closure-change", "default-argument", "global-change")
_NO_NUMBERS = {"nan", "inf", "-inf"}
_NUMBER = re.compile(r"-?\d+(\.\d*)?(e[-+]?\d+)?")


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.subject.startswith("G[") and cause.actual.lstrip("-").isdigit():
        raise Refused("an int in a global stays constant, dynamic or not")
    if cause.rule in _ANY_VALUE and not _NUMBER.fullmatch(cause.actual):
        raise NotMeant("only sizes and numbers can be dynamic")
    if cause.rule == "default-argument" and cause.actual.lstrip("-").isdigit():
        raise Refused("an int that is an argument's default stays constant, dynamic or not")
    if _NO_NUMBERS & {cause.expected, cause.actual}:
        raise Refused("NaN and infinity stay constant, dynamic or not")
    if "(" in cause.subject.split(".size()")[0].removeprefix("len("):
        raise Refused("the value comes from a graph break, which has to be fixed first")
    check_no_parameter(subject)
    region = region_of(subject)
    _check_way_out(subject, region)
    known = region.argument("dynamic")
    states = ""
    if known is not None:
        if not isinstance(known.value, cst.Name):
            raise Refused("it is unclear what `dynamic` is set to")
        if known.value.value == "True":
            raise NotMeant("it is already compiled with dynamic=True")
        states = _ASKED if known.value.value == "False" else ""
    if not states:
        check_may_vary(subject)
    edit = Edit(region.module)
    set_argument(edit, region, "dynamic", "True")
    return Patch(edit.files(), states=states)


def _check_way_out(subject: Subject, region: Region) -> None:
    """Where a line needs a size after all, Dynamo leaves it to eager mode; not everywhere it can."""
    if subject.program.facts.seen:
        return
    whole, backend = region.argument("fullgraph"), region.argument("backend")
    if whole is not None and region.module.code(whole.value) != "False":
        raise NeedsRun("with fullgraph=True, a line that needs a constant size would raise")
    given = region.module.code(backend.value) if backend is not None else "'inductor'"
    if given.strip("'\"") not in _ANY_SIZE:
        raise NeedsRun(f"it is unknown whether `backend={given}` supports dynamic sizes")


FIX = Fix(
    id="dynamic-true",
    title="compile with dynamic=True",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "size-change",
            "int-change",
            "float-change",
            "closure-change",
            "default-argument",
            "global-change",
            "equal-sizes",
            "number-condition",
            "shape-condition",
        )
    ),
    order=110,
    kind="config",
    why="All input sizes, ints and floats become variables of the graph. Kernels for any size "
    "can be slower than kernels for one size. The timings show whether they are.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def scale(x, by):
    return x * by


fast = torch.compile(
    scale,
    backend="eager",  # to see what Dynamo does
)
for by in (0.5, 1.5, 2.5):
    fast(torch.ones(3), by)
""",
            good="""import torch


def scale(x, by):
    return x * by


fast = torch.compile(
    scale,
    backend="eager",  # to see what Dynamo does
    dynamic=True,
)
for by in (0.5, 1.5, 2.5):
    fast(torch.ones(3), by)
""",
            note="the comment stays with its argument",
        ),
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def repeat(x, n):
    return x.expand(n, 3) * n


for n in (2, 3, 4):
    repeat(torch.ones(3), n)
""",
            good="""import torch


@torch.compile(backend="eager", dynamic=True)
def repeat(x, n):
    return x.expand(n, 3) * n


for n in (2, 3, 4):
    repeat(torch.ones(3), n)
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch

options = {"backend": "eager"}


@torch.compile(**options)
def f(x, n):
    return x * n


for n in (2, 3, 4):
    f(torch.ones(3), n)
""",
            because="options from a dict",
        ),
    ),
)
