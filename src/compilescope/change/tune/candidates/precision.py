"""Numbers of lower precision: faster on most hardware, and other results, on purpose."""

from __future__ import annotations

from compilescope.change.fixes.compilation.regions import Region, is_function
from compilescope.change.fixes.compilation.settings import put_setting
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import BFLOAT16, set_knob
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_AMPERE = (8, 0)
"""The first compute capability with TF32 and bfloat16."""


def _check_float32(tuned: TunedProgram) -> None:
    if tuned.facts.dtypes and "torch.float32" not in tuned.facts.dtypes:
        raise Refused("the step has no float32 weights")
    if tuned.facts.autocast:
        raise Refused("the step already runs under autocast")


def _tf32(tuned: TunedProgram) -> Patch:
    tuned.needs_cuda("TF32 needs")
    if (tuned.facts.capability or (0, 0)) < _AMPERE:
        raise Refused("this GPU has no TF32")
    if tuned.facts.matmul_precision != "highest":
        raise Refused(f'the precision is already "{tuned.facts.matmul_precision}"')
    _check_float32(tuned)
    edit = tuned.main_edit()
    put_setting(edit, f'{edit.module_name("torch")}.set_float32_matmul_precision("high")')
    return Patch(edit.files(), states="float32 products have the 10-bit mantissa of TF32.")


def _autocast(tuned: TunedProgram) -> Patch:
    _check_float32(tuned)
    if not tuned.facts.bf16:
        raise Refused("this GPU has no bfloat16")
    known = set_knob(tuned, BFLOAT16, "")
    if known:
        return Patch(known, states="Most of the forward pass is computed in bfloat16.")
    device = "cuda" if tuned.facts.on_cuda else "cpu"
    edits: dict[str, Edit] = {}
    for region in tuned.inductor_regions():
        edit = edits.setdefault(region.module.path, Edit(region.module))
        _cast(edit, region, device)
    files = {path: text for edit in edits.values() for path, text in edit.files().items()}
    return Patch(files, states="Most of the forward pass is computed in bfloat16.")


def _cast(edit: Edit, region: Region, device: str) -> None:
    torch = edit.module_name("torch")
    cast = f'{torch}.autocast("{device}", dtype={torch}.bfloat16)'
    module, target = region.module, region.target
    if isinstance(target, cst.FunctionDef):
        last = target.decorators[-1]
        added = cst.Decorator(edit.expression(cast))
        edit.replace(last, cst.FlattenSentinel([last, added]))  # type: ignore[arg-type]
        return
    statement = module.statement_of(region.node)
    if not isinstance(statement, cst.SimpleStatementLine):
        raise Refused("torch.compile is part of a larger statement")
    call = region.call
    if call is None or target is None:
        raise Refused("it is unknown what is compiled")
    if region.form == "method":
        model = module.code(target)
        edit.put_before(call, f"{model}.forward = {cast}({model}.forward)")
        return
    # Around the compiled module: a module of torch's own that has it within is not compiled (2.13).
    bound = region.assigned
    name = bound or module.fresh_name("compiled")
    place = name if is_function(module, target) else f"{name}.forward"
    line = f"{place} = {cast}({place})"
    if bound is not None:
        edit.put_after(call, line)
        return
    edit.put_before(call, f"{name} = {module.code(call)}\n{line}")
    edit.replace(call, edit.expression(name))


CANDIDATES = (
    TuneCandidate(
        id="tf32-matmul",
        title='float32 products in TF32 (set_float32_matmul_precision("high"))',
        price="Products keep 3 of 7 decimal digits.",
        propose=_tf32,
        order=55,
        helps="compute",
        lower_precision=True,
    ),
    TuneCandidate(
        id="bf16-autocast",
        title="the forward pass under autocast to bfloat16",
        price="Activations keep 2 to 3 of 7 decimal digits.",
        propose=_autocast,
        order=56,
        helps="compute",
        lower_precision=True,
    ),
)
