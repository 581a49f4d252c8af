"""Repeated blocks compiled one by one: the first is compiled, the others use its code."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.breaks.compile_modules import modules_instead
from compilescope.change.fixes.compilation.regions import Region
from compilescope.change.fixes.compilation.settings import without_arguments
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import BlockFacts, TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import (
    REGIONAL,
    TRAINER,
    keywords_of,
    knob_calls,
    set_knob,
    set_variable,
)
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    if not tuned.facts.blocks:
        raise Refused("the model has no list of blocks of one class")
    blocks = max(tuned.facts.blocks, key=lambda each: each.count)
    if tuned.is_compiled_elsewhere:
        return Patch(_by_framework(tuned, blocks))
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
    if region.form == "decorator" or target is None:
        raise Refused("no module with a name is compiled")
    statement = module.statement_of(region.node)
    if not isinstance(statement, cst.SimpleStatementLine):
        raise Refused("torch.compile is part of a larger statement")
    call = region.call
    assert call is not None
    edit = Edit(module)
    if not isinstance(target, (cst.Name, cst.Attribute)):
        # `model = torch.compile(Net())`: the blocks have a name afterwards.
        name = region.assigned
        if name is None or len(statement.body) > 1:
            raise Refused("no module with a name is compiled")
        edit.replace(call, target)
        edit.put_after(region.node, _loop(module, name, blocks, region.arguments))
        return edit
    if region.form == "method" and len(statement.body) > 1:
        raise Refused("the line compiles the model and does something else")
    name = module.code(target)
    edit.put_before(region.node, _loop(module, name, blocks, region.arguments))
    if region.form == "method":
        edit.remove_statement(statement)
    else:
        edit.replace(call, edit.expression(name))
    return edit


def _loop(module: SourceModule, model: str, blocks: BlockFacts, arguments: str) -> str:
    """Lines that compile the blocks of a model."""
    # Where a part of the model is compiled, the path begins at the model: `net.blocks` of `m.net`.
    first, _, part = model.partition(".")
    known = part and f"{blocks.path}.".startswith(f"{part}.")
    path = ".".join(filter(None, (first if known else model, blocks.path)))
    if any(each.isdigit() for each in path.split(".")):
        raise Refused("the blocks have no name of their own")
    block = module.fresh_name("block")
    return f"for {block} in {path}:\n    {block}.compile({arguments})"


def _by_framework(tuned: TunedProgram, blocks: BlockFacts) -> dict[str, str]:
    files = set_knob(tuned, REGIONAL, "True")
    if files or any(True for _ in knob_calls(tuned, TRAINER)):
        return files or _before_trainer(tuned, blocks)
    files = set_variable(tuned, "use_regional_compilation", "true")
    if not files:
        raise Refused("a library compiles, and no call in your own files says how")
    return files


_COMPILING = {"torch_compile": "", "torch_compile_mode": "mode", "torch_compile_backend": "backend"}
"""Arguments of a trainer's, and of `Module.compile`."""


def _before_trainer(tuned: TunedProgram, blocks: BlockFacts) -> dict[str, str]:
    """The trainer compiles nothing: it is handed a model whose blocks are compiled."""
    found = [(module, call) for module, _, call in knob_calls(tuned, TRAINER)]
    if len(found) != 1:
        raise Refused("several calls say how to compile")
    module, arguments = found[0]
    handed = list(_handed(module, arguments))
    if len(handed) != 1:
        raise Refused("the trainer gets no model with a name where its arguments are made")
    (call, model), known = handed[0], keywords_of(arguments)
    if any(arg.star for arg in arguments.args):
        raise Refused(f"what `{module.code(arguments.func)}` is given cannot be seen")
    compiling = [known[name] for name in _COMPILING if name in known]
    if not all(_is_plain(arg.value) for arg in compiling):
        raise Refused("whether the trainer compiles is found out while the program runs")
    given = ", ".join(
        f"{name}={module.code(known[each].value)}"
        for each, name in _COMPILING.items()
        if name and each in known
    )
    edit = Edit(module)
    edit.put_before(call, _loop(module, module.code(model), blocks, given))
    made, gone = arguments, compiling
    if tuned.facts.matmul_precision != "highest" and "tf32" not in known:
        # A trainer that compiles turns it on; one that does not has an argument for it.
        first, *gone = compiling
        tf32 = first.with_changes(keyword=cst.Name("tf32"), value=cst.Name("True"))
        made = made.with_changes(args=[tf32 if arg is first else arg for arg in made.args])
    edit.replace(arguments, without_arguments(made, gone))
    return edit.files()


def _handed(
    module: SourceModule, arguments: cst.Call
) -> Iterator[tuple[cst.Call, cst.Name | cst.Attribute]]:
    """Calls that get these arguments and a model with a name."""
    names = {"args", "model"}
    made = module.parent(arguments)
    bound = (
        {module.code(each.target) for each in made.targets} if isinstance(made, cst.Assign) else ()
    )
    for call in module.walk():
        if not isinstance(call, cst.Call):
            continue
        given = dict(
            zip(("model", "args"), (a for a in call.args if a.keyword is None), strict=False)
        )
        given |= keywords_of(call)
        if not names <= given.keys():
            continue
        value, model = given["args"].value, given["model"].value
        known = value is arguments or module.code(value) in bound
        if known and isinstance(model, (cst.Name, cst.Attribute)):
            yield call, model


def _is_plain(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.SimpleString) or getattr(value, "value", "") == "True"


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
