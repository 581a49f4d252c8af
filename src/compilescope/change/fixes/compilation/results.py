"""Which fields of what a compiled model returns the program reads: `loss` of `model(ids).loss`.

What else it returns, nobody sees. This is told only where every use of the model, and of each
result, can be read in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_KEEPS_RESULTS = frozenset(
    {
        *("parameters", "named_parameters", "buffers", "named_buffers", "modules"),
        *("named_modules", "train", "eval", "training", "zero_grad", "requires_grad_", "to"),
        *("cuda", "cpu", "float", "half", "bfloat16", "double", "state_dict"),
        *("load_state_dict", "compile"),
    }
)
"""Of a module: these call nothing that returns what its `forward` returns."""


def fields_read(
    own: Sequence[SourceModule], module: SourceModule, call: cst.Call
) -> frozenset[str]:
    """Of the results of this call, and of all others of the same model; `own` are all files of the
    program. Raises `Refused` where not all uses are seen."""
    if not isinstance(call.func, cst.Name):
        raise Refused(f"where the results of `{module.code(call.func)}` go cannot be read")
    found: set[str] = set()
    waiting, known = [call.func.value], {call.func.value}
    while waiting:
        name = waiting.pop()
        _check_unshared(own, module, name)
        for use in _loads(module, name):
            above = module.parent(use)
            if isinstance(above, cst.Call) and above.func is use:
                found.update(_fields_of(module, above))
            elif not _keeps_results(module, above):
                raise Refused(f"`{name}` is used elsewhere too: what is read of its results?")
        for other in _sources(module, name):
            if other not in known:
                known.add(other)
                waiting.append(other)
    return frozenset(found)


def check_only_given(module: SourceModule, config: cst.Call) -> None:
    """Raises `Refused` where the config that is made here goes elsewhere than to what is made from
    it: it may be saved, or printed, with its new field."""
    above = module.parent(config)
    if isinstance(above, cst.Arg) and _makes(module, above):
        return
    if not isinstance(above, cst.Assign) or len(above.targets) != 1:
        raise Refused("the config may be used elsewhere too")
    target = above.targets[0].target
    if not isinstance(target, cst.Name):
        raise Refused("the config may be used elsewhere too")
    for use in _loads(module, target.value):
        above = module.parent(use)
        if isinstance(above, cst.Arg) and _makes(module, above):
            continue
        if isinstance(above, cst.Attribute) and not _is_called(module, above):
            continue
        raise Refused(f"`{target.value}` is used elsewhere too")


def _makes(module: SourceModule, argument: cst.Arg) -> bool:
    """`T5Model(config)`: the argument of a class."""
    call = module.parent(argument)
    if not isinstance(call, cst.Call):
        return False
    return module.code(call.func).rpartition(".")[2][:1].isupper()


def _is_called(module: SourceModule, attribute: cst.Attribute) -> bool:
    above = module.parent(attribute)
    return isinstance(above, cst.Call) and above.func is attribute


def _check_unshared(own: Sequence[SourceModule], module: SourceModule, name: str) -> None:
    for other in own:
        if other.path == module.path:
            continue
        for node in other.walk():
            taken = isinstance(node, cst.ImportAlias) and node.evaluated_name == name
            if taken or (isinstance(node, cst.Attribute) and node.attr.value == name):
                raise Refused(f"`{name}` may be used in another file too")


def _loads(module: SourceModule, name: str) -> Iterator[cst.Name]:
    """Where the value of a name is read, in whichever function."""
    for node in module.walk():
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        above = module.parent(node)
        if isinstance(above, cst.Attribute) and above.attr is node:
            continue
        if isinstance(above, cst.Arg) and above.keyword is node:
            continue
        if isinstance(above, cst.AssignTarget):
            continue
        if isinstance(above, (cst.Global, cst.NameItem)):
            continue
        yield node


def _keeps_results(module: SourceModule, use: cst.CSTNode | None) -> bool:
    """`model.parameters()`, or `torch.compile(model)`: the same model, by the name that it gets."""
    if isinstance(use, cst.Attribute):
        return use.attr.value in _KEEPS_RESULTS
    call = module.parent(use) if isinstance(use, cst.Arg) else None
    if not isinstance(call, cst.Call) or not module.calls(call, "torch.compile"):
        return False
    return isinstance(module.parent(call), (cst.Assign, cst.AnnAssign))


def _sources(module: SourceModule, name: str) -> Iterator[str]:
    """`model` for `compiled`, where `compiled = torch.compile(model)`; and the other way. Raises
    `Refused` where the name stands for something that others may call too."""
    for node in module.walk():
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Call):
            continue
        targets = [each.target for each in node.targets]
        names = [each.value for each in targets if isinstance(each, cst.Name)]
        if not module.calls(node.value, "torch.compile") or not node.value.args:
            continue
        given = node.value.args[0].value
        of = [given.value] if isinstance(given, cst.Name) else []
        if name not in (*names, *of):
            continue
        if len(names) != len(targets):
            raise Refused(f"`{name}` is kept elsewhere too: what is read of its results?")
        yield from (*names, *of)


def _fields_of(module: SourceModule, call: cst.Call) -> Iterator[str]:
    """Read of the result of one call."""
    above = module.parent(call)
    if isinstance(above, cst.Expr):
        return
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        target = above.targets[0].target
        if isinstance(target, cst.Name):
            # In whichever function a name is the same: more is read then than it may be.
            yield from (_field(module, use) for use in _loads(module, target.value))
            return
    yield _field(module, call)


def _field(module: SourceModule, result: cst.BaseExpression) -> str:
    above = module.parent(result)
    if isinstance(above, cst.Attribute) and not _is_called(module, above):
        return above.attr.value
    if isinstance(above, cst.Subscript) and above.value is result and len(above.slice) == 1:
        index = above.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            return str(index.value.evaluated_value)
    raise Refused(f"`{module.code(above or result)}` may read all of the result")
