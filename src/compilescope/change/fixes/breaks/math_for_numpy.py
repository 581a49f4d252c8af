"""NumPy on a few Python numbers: Python's own functions give the same."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import facts_of
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_FUNCTIONS = {"numpy.prod": "math.prod", "numpy.product": "math.prod", "numpy.sum": "sum"}

_HOLDERS = ("torch.Size", "builtins.list", "builtins.tuple")
_SIZED = {"int", "zeros", "ones", "empty", "full", "reshape", "view", "range", "arange"}


def _propose(subject: Subject) -> Patch:
    module = subject.module
    call = _call(subject)
    given = call.args[0].value
    if not _is_whole_numbers(subject, given):
        raise Refused(f"it is unknown whether `{module.code(given)}` holds only integers")
    edit = Edit(module)
    name = next(_FUNCTIONS[m] for m in module.meaning(call.func) if m in _FUNCTIONS)
    if name == "sum":
        if "sum" in {each.value for each in module.walk() if isinstance(each, cst.Name)} and any(
            not m.startswith("builtins.") for m in _meanings(module, "sum")
        ):
            raise Refused("the file uses the name sum for something else")
    else:
        name = f"{edit.module_name('math')}.prod"
    edit.replace(call.func, edit.expression(name))
    return Patch(edit.files())


def _meanings(module: SourceModule, name: str) -> set[str]:
    return {
        meaning
        for each in module.walk()
        if isinstance(each, cst.Name) and each.value == name
        for meaning in module.meaning(each)
    }


def _call(subject: Subject) -> cst.Call:
    module = subject.module
    found = [
        each
        for each in module.walk(subject.statement)
        if isinstance(each, cst.Call) and module.calls(each, *_FUNCTIONS)
    ]
    if len(found) != 1:
        raise NotMeant("numpy.prod or numpy.sum is not called by itself here")
    if len(found[0].args) != 1 or found[0].args[0].keyword or found[0].args[0].star:
        raise Refused("the call uses NumPy options")
    return found[0]


def _is_whole_numbers(subject: Subject, node: cst.BaseExpression) -> bool:
    """A shape, or a list that is written out, or a part of either."""
    module = subject.module
    if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice):
        return _is_whole_numbers(subject, node.value)
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return True
    if isinstance(node, cst.Call):
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value == "size" and not node.args:
            return True
        if module.calls(node, "builtins.list", "builtins.tuple") and len(node.args) == 1:
            return _is_whole_numbers(subject, node.args[0].value)
        return False
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_is_whole_number(subject, each.value) for each in node.elements)
    seen = facts_of(subject, node)
    if not seen or not all(fact.type in _HOLDERS for fact in seen):
        return False
    # What a list holds is not looked at; as a size it can only be whole numbers.
    return all(fact.type == "torch.Size" for fact in seen) or _is_size(subject, node)


def _is_size(subject: Subject, node: cst.CSTNode) -> bool:
    module = subject.module
    for above in module.ancestors(node):
        if isinstance(above, cst.BaseStatement):
            return False
        if isinstance(above, cst.Call) and not module.calls(above, *_FUNCTIONS):
            func = above.func
            name = func.attr.value if isinstance(func, cst.Attribute) else module.code(func)
            return name in _SIZED
    return False


def _is_whole_number(subject: Subject, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Integer):
        return True
    if isinstance(node, cst.Subscript):
        return _is_whole_numbers(subject, node.value)
    seen = facts_of(subject, node)
    return bool(seen) and all(fact.type == "builtins.int" for fact in seen)


FIX = Fix(
    id="math-for-numpy",
    title="use Python's product or sum instead of NumPy's",
    rules=frozenset({"numpy-call", "scalar-extraction", "GB0208", "GB0033", "outside-call"}),
    order=42,
    kind="source",
    why="For a shape or another few integers, `math.prod` and `sum` give the same number. "
    "Dynamo evaluates them while tracing, but turns NumPy's results into tensors.",
    propose=_propose,
)
