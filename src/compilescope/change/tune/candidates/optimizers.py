"""The optimizer's step: fused, for all parameters at once, or compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import FUSED_OPTIMIZER, keywords_of, set_knob
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""That have a fused form on the CPU too (torch 2.11 to 2.15)."""


def _made(tuned: TunedProgram) -> list[tuple[SourceModule, cst.Call, str]]:
    """Where the user's files make an optimizer, and its class."""
    kinds = {each.kind for each in tuned.facts.optimizers}
    found = [
        (module, node, kind)
        for module in tuned.modules(*kinds)
        for node in module.walk()
        if isinstance(node, cst.Call)
        for kind in kinds
        if module.calls(node, f"torch.optim.{kind}", f"torch.optim.{kind.lower()}.{kind}")
    ]
    if not found:
        raise Refused("no torch.optim optimizer is made in one of your own files")
    return found


def _with_argument(name: str) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        _check(tuned, name)
        if name == "fused":
            kinds = {each.kind for each in tuned.facts.optimizers}
            files = set_knob(tuned, FUSED_OPTIMIZER, *kinds) if len(kinds) == 1 else {}
            if files:
                return Patch(files)
        edits: dict[str, Edit] = {}
        for module, call, _ in _made(tuned):
            given = keywords_of(call).keys() & {"fused", "foreach"}
            if given or any(arg.star == "**" for arg in call.args):
                raise Refused("the optimizer already says which form it wants")
            set_keyword(edits.setdefault(module.path, Edit(module)), call, name, "True")
        return Patch({p: text for edit in edits.values() for p, text in edit.files().items()})

    return propose


def _check(tuned: TunedProgram, name: str) -> None:
    if not tuned.facts.optimizers:
        raise Refused("the step uses no optimizer of torch.optim")
    for each in tuned.facts.optimizers:
        if name == "fused" and (not each.has_fused or each.kind not in _FUSED):
            raise Refused(f"{each.kind} has no fused form")
        if name == "fused" and each.is_fused:
            raise Refused("the optimizer is fused already")
        if name == "foreach" and not each.has_foreach:
            raise Refused(f"{each.kind} has no foreach form")
    if name == "foreach" and tuned.facts.on_cuda:
        raise Refused("on a CUDA device it is the default")


def compiled_step(tuned: TunedProgram) -> Patch:
    """The optimizer's step compiled by itself. Raises `Refused` where it is not one's own."""
    if not tuned.facts.optimizers:
        raise Refused("the step uses no optimizer of torch.optim")
    if tuned.regions:
        tuned.inductor_regions()
    edits: dict[str, Edit] = {}
    for module, call, _ in _made(tuned):
        if "lr_scheduler" in module.text:
            raise Refused("a learning rate scheduler holds the optimizer's own step")
        statement = module.statement_of(call)
        names = list(_bound(module, call))
        if len(names) != 1 or not isinstance(statement, cst.SimpleStatementLine):
            raise Refused("the optimizer is not bound to one name where it is made")
        edit = edits.setdefault(module.path, Edit(module))
        line = f"{names[0]}.step = {edit.module_name('torch')}.compile({names[0]}.step)"
        if line in module.text:
            raise Refused("the optimizer's step is already compiled")
        edit.put_after(call, line)
    return Patch({p: text for edit in edits.values() for p, text in edit.files().items()})


def _bound(module: SourceModule, call: cst.Call) -> Iterator[str]:
    above = module.parent(call)
    if isinstance(above, cst.Assign):
        yield from (module.code(each.target) for each in above.targets)
    elif isinstance(above, cst.AnnAssign):
        yield module.code(above.target)


CANDIDATES = (
    TuneCandidate(
        id="fused-optimizer",
        title="one kernel for the optimizer's step (fused=True)",
        price="None that is known.",
        propose=_with_argument("fused"),
        order=15,
        helps="launches",
        group="optimizer",
    ),
    TuneCandidate(
        id="foreach-optimizer",
        title="one call for all parameters (foreach=True)",
        price="Memory for intermediate results of all parameters at once.",
        propose=_with_argument("foreach"),
        order=45,
        helps="launches",
        group="optimizer",
    ),
    TuneCandidate(
        id="compiled-optimizer",
        title="the optimizer's step compiled",
        price="It is compiled too; a learning rate that changes compiles it again.",
        propose=compiled_step,
        order=40,
        helps="launches",
        group="optimizer",
    ),
)
