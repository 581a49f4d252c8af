"""The modules that a function calls are compiled, and the function around them is not."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compilescope.change.fixes.compilation.called_modules import CalledModule, ModuleCalls
from compilescope.change.fixes.compilation.objects import is_of_several
from compilescope.change.fixes.compilation.paths import LOST_ON_A_WAY, also_lost, way_to
from compilescope.change.fixes.compilation.regions import Region, own_regions, region_for
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import compiling, without_decorators
from compilescope.change.fixes.subject import Program, Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.stack import CodeRef


def _propose(subject: Subject) -> Patch:
    steps = way_to(subject)
    lost = {step.function: step.lines | also_lost(subject, step) for step in steps}
    return modules_instead(subject.program, steps[0].module, steps[0].function, lost)


def modules_instead(
    program: Program,
    module: SourceModule,
    function: cst.FunctionDef,
    lost: Mapping[cst.FunctionDef, set[int]],
    *,
    within: str = "",
) -> Patch:
    """Compile the modules that a compiled function calls, but for those on `lost` lines. `within`:
    each item of this list of theirs. Raises `Refused` where there is none."""
    region = _region(program, module, function)
    called = ModuleCalls(region, lost).of(module, function)
    if not called:
        raise NotMeant("no module is known to be called there")
    if within:
        if len(called) > 1:
            raise Refused("the function calls several modules")
        called = [msgspec.structs.replace(called[0].attribute(within), items=True)]
    edits = {each.path: Edit(each) for each in (region.module, *(c.module for c in called))}
    removed = _uncompile(edits[region.module.path], region)
    for each in called:
        edit = edits[each.module.path]
        line = _line(edit, each, region.arguments)
        if removed and each.made is region.node:
            edit.put_before(each.made, line)
        else:
            edit.put_after(each.made, line)
    files = {path: text for edit in edits.values() for path, text in edit.files().items()}
    names = ", ".join(f"`{each.path}`" for each in called)
    states = f"Only {names} {'is' if len(called) == 1 else 'are'} compiled: "
    states += f"what else `{function.name.value}` does runs eagerly."
    return Patch(files, states=states, allows=frozenset({"compiles-less"}))


def _region(program: Program, module: SourceModule, function: cst.FunctionDef) -> Region:
    found = own_regions(program)
    code = CodeRef(module.path, module.line(function.name), function.name.value)
    region = region_for(found, code) or (found[0] if len(found) == 1 else None)
    if region is None:
        raise NotMeant("it is unknown where torch.compile is applied")
    if region.takes_a_bundle:
        raise Refused("torch.compile gets its options from a dict")
    if region.form != "decorator" and is_of_several(region, program):
        raise Refused("torch.compile is applied to several objects")
    return region


def _uncompile(edit: Edit, region: Region) -> bool:
    """Take the application away; is the whole line gone?"""
    module, target = region.module, region.target
    if region.form == "decorator":
        function = cst.ensure_type(target, cst.FunctionDef) if target is not None else None
        if function is None:
            raise NotMeant("it is unknown what is compiled")
        applied = compiling(module, function)
        kept = [each for each in function.decorators if each not in applied]
        edit.replace(function, without_decorators(function, kept))
        return False
    statement = module.statement_of(region.node)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Refused("torch.compile is part of a larger statement")
    if target is None:
        raise NotMeant("it is unknown what is compiled")
    if region.form == "method" or module.code(target) in region.names:
        edit.remove_statement(statement)
        return True
    edit.replace(region.node, target)
    return False


def _line(edit: Edit, called: CalledModule, arguments: str) -> str:
    item = edit.module.fresh_name("block") if called.items else called.path
    if called.is_torchs:
        torch = edit.module_name("torch")
        given = f"{item}.forward, {arguments}" if arguments else f"{item}.forward"
        line = f"{item}.forward = {torch}.compile({given})"
    else:
        line = f"{item}.compile({arguments})"
    return f"for {item} in {called.path}:\n    {line}" if called.items else line


FIX = Fix(
    id="compile-modules",
    title="compile the modules that it calls, not what is around them",
    rules=LOST_ON_A_WAY,
    order=151,
    kind="source",
    why="The function does the same in the same order, in Python. The modules that it calls are "
    "compiled by `Module.compile()`, which changes neither their names nor what they hold.",
    propose=_propose,
    placement="the modules",
    observable=True,
    only_run_tells=True,
)
