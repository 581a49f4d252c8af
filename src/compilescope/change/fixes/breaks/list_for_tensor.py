"""The Python list that a tensor of sizes was made of, for a function that only goes through it.

`shapes = torch.as_tensor(sizes)`, then `for h, w in shapes:` in a function that is handed the
tensor: each number is read back out of it, which no graph can do. Where the list is at hand, too,
the function gets that.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensor_sizes import (
    SizeUses,
    argument_of,
    calls_of,
    check_kept,
)
from compilescope.knowledge.source.flow.liveness import only_value, reads, targets
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_receiver, parameters_of, receiver_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_MAKES = ("torch.as_tensor", "torch.tensor")
_WHOLE_DTYPES = ("torch.long", "torch.int64")
_MOST_STEPS = 4
"""From a tensor to the list behind it, a call each. Chosen: a bound for a search that calls could
make go round."""


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    loop, tensor = _loop(subject)
    numbers = [
        each.value
        for each in targets(loop)
        if isinstance(each, cst.Name) and not _counts(module, loop, each)
    ]
    SizeUses(subject, module).follow_names(function, numbers)
    edit = Edit(module)
    if tensor.value not in parameters_of(function):
        made_of = _list_behind(module, function, tensor.value, _MOST_STEPS)
        edit.replace(tensor, edit.expression(made_of))
        return Patch(edit.files())
    others = [each for each in reads(module, function.body) if each.value == tensor.value]
    if len(others) != 1:
        raise Refused(f"`{tensor.value}` is used as a tensor, too")
    for call in calls_of(module, function):
        given = argument_of(module, function, call, tensor.value)
        caller = module.function_of(call)
        if not isinstance(given, cst.Name) or caller is None:
            raise Refused(f"no list is known for `{short(module, given)}`")
        made_of = _list_behind(module, caller, given.value, _MOST_STEPS)
        edit.replace(given, edit.expression(made_of))
    return Patch(edit.files())


def _loop(subject: Subject) -> tuple[cst.For, cst.Name]:
    """The loop around the finding that goes through a tensor of whole numbers, and its name."""
    module = subject.module
    for each in (subject.node, *module.ancestors(subject.node)):
        if not isinstance(each, cst.For):
            continue
        gone_through = each.iter
        if isinstance(gone_through, cst.Call) and module.calls(gone_through, "builtins.enumerate"):
            gone_through = gone_through.args[0].value
        if not isinstance(gone_through, cst.Name):
            continue
        seen = subject.facts(gone_through.value)
        if seen and all(fact.kind == "tensor" and fact.dtype == "int64" for fact in seen):
            return each, gone_through
    raise NotMeant("it is in no loop over a tensor of sizes")


def _counts(module: SourceModule, loop: cst.For, target: cst.Name) -> bool:
    """Is it the number that `enumerate` gives, a Python one in any case?"""
    numbered = isinstance(loop.iter, cst.Call) and module.calls(loop.iter, "builtins.enumerate")
    pair = loop.target
    return numbered and isinstance(pair, cst.Tuple) and pair.elements[0].value is target


def _list_behind(module: SourceModule, function: cst.FunctionDef, name: str, depth: int) -> str:
    """What the function calls the list that it, or who calls it, made the tensor of. Raises
    `Refused` where that is not known, or not all that is in it."""
    check_kept(module, function, name)
    if name in parameters_of(function):
        return _handed_beside(module, function, name, depth)
    made = only_value(module, function, name)
    if not isinstance(made, cst.Call) or not module.calls(made, *_MAKES):
        raise Refused(f"`{name}` is not made of a list here")
    first = made.args[0].value
    dtypes = [arg.value for arg in made.args if arg.keyword and arg.keyword.value == "dtype"]
    if any(not module.means(each, *_WHOLE_DTYPES) for each in dtypes):
        raise Refused(f"`{name}` is not of whole numbers")
    if not isinstance(first, cst.Name):
        raise Refused(f"the list that `{name}` is made of has no name")
    _check_list(module, function, first.value, module.line(made))
    return first.value


def _handed_beside(module: SourceModule, function: cst.FunctionDef, name: str, depth: int) -> str:
    """The parameter that gets the list in every call that hands over the tensor."""
    if not depth:
        raise Refused(f"no list is known for `{name}`")
    common: set[str] | None = None
    for call in _calls(module, function):
        caller = module.function_of(call)
        given = argument_of(module, function, call, name)
        if not isinstance(given, cst.Name) or caller is None:
            raise Refused(f"no list is known for `{name}`")
        behind = _list_behind(module, caller, given.value, depth - 1)
        unlike = (name, receiver_of(module, function))
        found = {
            other
            for other in parameters_of(function)
            if other not in unlike and _is_given(module, function, call, other, behind)
        }
        common = found if common is None else common & found
    if not common:
        raise Refused(f"no list is handed over beside `{name}`")
    beside = sorted(common)[0]
    written = [target for each in module.walk(function.body) for target in targets(each)]
    if any(isinstance(each, cst.Name) and each.value == beside for each in written):
        raise Refused(f"`{beside}` is set in several places")
    return beside


def _is_given(
    module: SourceModule, function: cst.FunctionDef, call: cst.Call, parameter: str, value: str
) -> bool:
    try:
        given = argument_of(module, function, call, parameter)
    except Refused:
        return False
    return isinstance(given, cst.Name) and given.value == value


def _calls(module: SourceModule, function: cst.FunctionDef) -> list[cst.Call]:
    """Also `self.encoder(...)` for the `forward` of a class that the file makes an `encoder` of."""
    made = module.class_of(function)
    if made is None or function.name.value != "forward":
        return calls_of(module, function)
    names = set(_attributes_of(module, made.name.value))
    found = [
        each
        for each in module.walk()
        if isinstance(each, cst.Call)
        and isinstance(each.func, cst.Attribute)
        and is_receiver(module, each.func.value)
        and each.func.attr.value in names
    ]
    if not found:
        raise Refused(f"it is unknown who calls `{made.name.value}`")
    return found


def _attributes_of(module: SourceModule, name: str) -> Iterator[str]:
    """`encoder` of `self.encoder = Encoder(config)`. Raises `Refused` for any other use of the
    class, but for a mention as a type."""
    for node in module.walk():
        if not isinstance(node, cst.Call):
            continue
        if not isinstance(node.func, cst.Name) or node.func.value != name:
            continue
        above = module.parent(node)
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        if not isinstance(target, cst.Attribute):
            raise Refused(f"`{name}` is made in several ways")
        yield target.attr.value


def _check_list(module: SourceModule, function: cst.FunctionDef, name: str, line: int) -> None:
    """Raises `Refused` unless it is a list of sizes that is complete by that line."""
    value = only_value(module, function, name)
    if value is None or not _holds_sizes(module, function, value):
        raise Refused(f"it is unknown what `{name}` holds")
    for node in module.walk(function.body):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        above = module.parent(node)
        if isinstance(above, cst.Attribute):
            call = module.parent(above)
            added = isinstance(call, cst.Call) and above.attr.value == "append"
            if not added or module.line(node) >= line:
                raise Refused(f"`{name}` is changed later")
            assert isinstance(call, cst.Call)
            if not _is_size(module, function, call.args[0].value):
                raise Refused(f"it is unknown what `{name}` holds")
        elif isinstance(above, (cst.Subscript, cst.AugAssign)):
            raise Refused(f"`{name}` is changed later")


def _holds_sizes(
    module: SourceModule, function: cst.FunctionDef, value: cst.BaseExpression
) -> bool:
    """`[]`, `[(4, 4), (2, 2)]`, `[x.shape[-2:] for x in maps]`."""
    if isinstance(value, cst.List):
        return all(_is_size(module, function, each.value) for each in value.elements)
    return isinstance(value, cst.ListComp) and _is_size(module, function, value.elt)


def _is_size(module: SourceModule, function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """A whole number that Python knows, or several: `4`, `x.shape[2]`, `(height, width)`."""
    if isinstance(node, cst.Integer):
        return True
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_is_size(module, function, each.value) for each in node.elements)
    if isinstance(node, cst.Subscript):
        return _is_shape(node.value)
    if isinstance(node, cst.Call):
        func = node.func
        return isinstance(func, cst.Attribute) and func.attr.value == "size"
    if isinstance(node, cst.Name):
        value = only_value(module, function, node.value)
        return (
            _is_size(module, function, value) if value else _unpacks_shape(module, function, node)
        )
    return _is_shape(node)


def _is_shape(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "shape"


def _unpacks_shape(module: SourceModule, function: cst.FunctionDef, name: cst.Name) -> bool:
    """`height` of `batch, height, width = x.shape`, wherever it is set."""
    found = [
        each
        for each in module.walk(function.body)
        if any(isinstance(t, cst.Name) and t.value == name.value for t in targets(each))
    ]
    return bool(found) and all(
        isinstance(each, cst.Assign) and (_is_size(module, function, each.value)) for each in found
    )


FIX = Fix(
    id="list-for-tensor",
    title="pass the Python list instead of the tensor made of it",
    rules=frozenset({"scalar-extraction", "GB0124", "GB0033", "category/data-dependent-branch"}),
    order=36,
    kind="source",
    why="The function goes through the numbers of a tensor that was made of a Python list, and uses "
    "each as a size or in arithmetic, where a Python number gives the same. Dynamo knows the numbers "
    "of the list.",
    propose=_propose,
)
