"""Repeated blocks compiled one by one: the first is compiled, the others use its code."""

from __future__ import annotations

from compilescope.change.fixes.breaks.compile_modules import modules_instead
from compilescope.change.fixes.compilation.regions import Region
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import BlockFacts, TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    if not tuned.facts.blocks:
        raise Refused("the model has no list of blocks of one class")
    blocks = max(tuned.facts.blocks, key=lambda each: each.count)
    regions = tuned.inductor_regions()
    if len(regions) != 1:
        raise Refused("torch.compile is applied in several places")
    function = regions[0].target
    if isinstance(function, cst.FunctionDef) and function.name.value != "forward":
        module = regions[0].module
        return modules_instead(tuned.program, module, function, {}, within=blocks.path)
    if regions[0].is_of_many:
        raise Refused("torch.compile is already applied in a loop or a class")
    return Patch(_edit(regions[0], blocks).files())


def _edit(region: Region, blocks: BlockFacts) -> Edit:
    module, target = region.module, region.target
    if region.form == "decorator" or not isinstance(target, (cst.Name, cst.Attribute)):
        raise Refused("no module with a name is compiled")
    statement = module.statement_of(region.node)
    if not isinstance(statement, cst.SimpleStatementLine):
        raise Refused("torch.compile is part of a larger statement")
    call = region.call
    assert call is not None
    name = module.code(target)
    path = ".".join(filter(None, (name, blocks.path)))
    if any(part.isdigit() for part in path.split(".")):
        raise Refused("the blocks have no name of their own")
    if region.form == "method" and len(statement.body) > 1:
        raise Refused("the line compiles the model and does something else")
    edit = Edit(module)
    block = module.fresh_name("block")
    edit.put_before(region.node, f"for {block} in {path}:\n    {block}.compile({region.arguments})")
    if region.form == "method":
        edit.remove_statement(statement)
    else:
        edit.replace(call, edit.expression(name))
    return edit


CANDIDATE = TuneCandidate(
    id="regional-compilation",
    title="compile the repeated block once, not the whole model",
    price="Nothing is fused across blocks, and what lies between them runs eagerly.",
    propose=_propose,
    order=90,
    for_compile_time=True,
    group="placement",
    placement="each block",
)
