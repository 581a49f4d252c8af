"""Fixes that only set a flag of `torch._dynamo.config`: what the flag is for, and when it won't help."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compilescope.change.fixes.compilation.checkpointed import check_set_once
from compilescope.change.fixes.compilation.settings import with_flags
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import check_no_decision, extraction_of
from compilescope.change.fixes.values.scalars import Divided, Uses
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.trees import cst

# torch 2.13: Inductor's code gives inf where Python's division would raise.
_DIVIDED = "If the number is zero, dividing by it may give inf instead of an exception."
_BOTH = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
_PACKING = tuple(f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence"))


def _sets(
    flags: Mapping[str, bool],
    check: Callable[[Subject], None] | None = None,
    states: Callable[[Subject], str] | None = None,
) -> Callable[[Subject], Patch]:
    """What a fix proposes that sets these flags; `check` raises `Refused` where they don't help."""

    def propose(subject: Subject) -> Patch:
        if check is not None:
            check(subject)
        return with_flags(subject, flags, states=states(subject) if states is not None else "")

    return propose


def _if_divided(subject: Subject) -> str:
    try:
        Uses(subject).follow(extraction_of(subject).node)
    except Divided:
        return _DIVIDED
    except Refused:
        pass
    return ""


def _check_kernel(subject: Subject, flags: str = "flag") -> None:
    if "no meta kernel" in subject.finding.title:
        raise Refused(
            f"no kernel of this operator reports its output sizes, with or without the {flags}"
        )


def _check_capture(subject: Subject) -> None:
    _check_kernel(subject, "flags")
    check_no_decision(subject)


def _check_not_packed(subject: Subject) -> None:
    module = subject.module
    for node in module.walk():
        if isinstance(node, cst.Call) and module.calls(node, *_PACKING):
            raise Refused("the module gets packed sequences, which Dynamo cannot trace")


def _check_no_graph_kept(subject: Subject) -> None:
    if "leaked" in subject.finding.title and _keeps_graph(subject):
        raise Refused("with `create_graph=True` the result still depends on the gradient's graph")


def _keeps_graph(subject: Subject) -> bool:
    return any(
        isinstance(node, cst.Arg)
        and node.keyword is not None
        and node.keyword.value == "create_graph"
        and subject.module.code(node.value) != "False"
        for node in subject.module.walk(subject.function.body)
    )


CAPTURE_SCALARS = Fix(
    id="capture-scalars",
    title="capture the number in the graph (capture_scalar_outputs)",
    rules=frozenset({"scalar-extraction", "GB0124"}),
    order=120,
    kind="config",
    why="With `capture_scalar_outputs`, Dynamo keeps the number as a symbol. torch 2.13 "
    "accepts it as a size, an index, a slice and in arithmetic without `torch._check`.",
    propose=_sets({"capture_scalar_outputs": True}, check_no_decision, _if_divided),
)

CAPTURE_SHAPES = Fix(
    id="capture-shapes",
    title="capture data-dependent sizes (capture_dynamic_output_shape_ops)",
    rules=frozenset({"dynamic-shape", "GB0036"}),
    order=120,
    kind="config",
    why="With `capture_dynamic_output_shape_ops`, Dynamo keeps `nonzero`, masks, `unique`, "
    "`repeat_interleave` and `bincount` in the graph. Their output size is a symbol.",
    propose=_sets({"capture_dynamic_output_shape_ops": True}, _check_kernel),
)

CAPTURE_ALL = Fix(
    id="capture-scalars-and-shapes",
    title="capture scalars and sizes in the graph",
    rules=frozenset({"scalar-extraction", "dynamic-shape", "GB0036", "GB0124"}),
    order=125,
    kind="config",
    why="A number that is the size of a `nonzero` result needs both flags.",
    propose=_sets(_BOTH, _check_capture),
)

RNN_TRACED = Fix(
    id="rnn-traced",
    title="let Dynamo trace recurrent modules (allow_rnn)",
    rules=frozenset({"rnn-module"}),
    order=120,
    kind="config",
    why="With this flag, the module's fused operator is part of the graph. Compilation takes "
    "longer, because the compiler sees every time step, and each new sequence length is "
    "compiled again.",
    propose=_sets({"allow_rnn": True}, _check_not_packed),
)

AUTOGRAD_TRACED = Fix(
    id="autograd-traced",
    title="compute gradients inside the graph (trace_autograd_ops)",
    rules=frozenset({"GB9186", "GB8985", "GB0123"}),
    order=130,
    kind="config",
    why="With this flag, calls to `torch.autograd.grad` and `backward`, "
    "and what they compute, are part of the graph.",
    propose=_sets({"trace_autograd_ops": True}, _check_no_graph_kept),
)

PARAMETER_TRACED = Fix(
    id="parameter-traced",
    title="allow creating parameters in the graph (graph_break_on_nn_param_ctor off)",
    rules=frozenset({"GB0264"}),
    order=125,
    kind="config",
    why="Dynamo can trace `torch.nn.Parameter(...)` but does not by default, because few "
    "programs mean to create one in each call.",
    propose=_sets({"graph_break_on_nn_param_ctor": False}),
)

CHECKPOINT_ONCE = Fix(
    id="checkpoint-once",
    title="set state once under checkpointing (skip_fwd_side_effects_in_bwd_under_checkpoint)",
    rules=frozenset({"GB0067"}),
    order=127,
    kind="config",
    why="A function under `torch.utils.checkpoint` runs again in the backward pass. With this flag, "
    "what it sets outside of itself is set in the forward pass, and not again.",
    propose=_sets(
        {"skip_fwd_side_effects_in_bwd_under_checkpoint": True},
        check_set_once,
        lambda _: (
            "What a checkpointed function sets outside of itself is set in the forward pass "
            "alone. Eager mode may set it again in the backward pass."
        ),
    ),
    observable=True,
)

FIXES = (
    CAPTURE_SCALARS,
    CAPTURE_SHAPES,
    CAPTURE_ALL,
    RNN_TRACED,
    AUTOGRAD_TRACED,
    PARAMETER_TRACED,
    CHECKPOINT_ONCE,
)
