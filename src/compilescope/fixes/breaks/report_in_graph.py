"""A check of a tensor that only tells of it: the check and its message as an operator."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, branch_of
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.outlining import outline
from compilescope.fixes.source.outputs import is_told_once, output_of
from compilescope.fixes.source.purity import first, short
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    branch = branch_of(subject)
    kinds = _outputs(subject, branch)
    if not kinds:
        raise NotMeant("the branch produces no output")
    if "warn" in kinds:
        raise Refused("the branch warns, and a warning names the line it comes from")
    found = first(subject.module, [branch.test], "effect", "random")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the condition"))
    edit = Edit(subject.module)
    verb = kinds[0] if len(set(kinds)) == 1 and kinds[0] != "progress" else "tell"
    outline(subject, edit, branch, verb)
    return Patch(edit.files())


def _outputs(subject: Subject, branch: cst.If) -> list[str]:
    """What kinds of output the branch consists of. Raises `Refused` for whatever else it does."""
    module = subject.module
    block = branch.body.body
    if isinstance(branch.orelse, cst.Else):
        block = [*block, *branch.orelse.body.body]
    elif branch.orelse is not None:
        raise NotMeant("it has an `elif`")
    parts = [part for line in block for part in getattr(line, "body", [line])]
    kinds: list[str] = []
    for part in parts:
        call = part.value if isinstance(part, cst.Expr) else None
        kind = output_of(module, call)
        if kind is None or not isinstance(call, cst.Call):
            words = f"the branch contains `{short(module, part)}`"
            raise Refused(words) if kinds else NotMeant(words)
        kinds.append("warn" if is_told_once(call) else kind)
    return kinds


FIX = Fix(
    id="report-in-graph",
    title="make the check and its message an operator in the graph",
    rules=RULES,
    order=59,
    kind="source",
    why="The graph itself calls a custom operator with an ordered effect, at the same place "
    "and with the same values. It checks the numbers and writes the same message.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import logging

import torch

log = logging.getLogger(__name__)


@torch.compile(backend="eager")
def loss_of(x):
    loss = (x * 2).sum()
    if torch.isnan(loss):
        log.warning("loss is nan")
    return loss


loss_of(torch.ones(3))
""",
            good="""import logging

import torch

log = logging.getLogger(__name__)


@torch.library.custom_op("program::log_in_loss_of", mutates_args=())
def log_in_loss_of(loss: torch.Tensor) -> None:
    if torch.isnan(loss):
        log.warning("loss is nan")


log_in_loss_of.register_fake(lambda loss: None)
log_in_loss_of.register_effect(torch._library.effects.EffectType.ORDERED)


@torch.compile(backend="eager")
def loss_of(x):
    loss = (x * 2).sum()
    log_in_loss_of(loss)
    return loss


loss_of(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        print("positive")
        x = x * 2
    return x


f(torch.ones(3))
""",
            because="the branch contains `x = x \\* 2`",
        ),
    ),
)
