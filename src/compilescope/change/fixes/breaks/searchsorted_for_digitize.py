"""`np.digitize`, which Dynamo does not trace, as the `np.searchsorted` that it is made of.

NumPy's `digitize` searches ascending bins with `searchsorted`, descending ones the other way round,
and raises for others. So the bins must be seen to ascend.
"""

from __future__ import annotations

from itertools import pairwise

from compilescope.change.fixes.branches.layers import set_by_class
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_constant
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, local_names
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_BY_HAND = "If the bins ascend, call `np.searchsorted(bins, x, side='right')` instead."
_HOLDING = ("numpy.array", "numpy.asarray")
_EVENLY = ("numpy.linspace", "numpy.arange")


def _propose(subject: Subject) -> Patch:
    module = subject.module
    call = _call(subject)
    given = {
        arg.keyword.value if arg.keyword else place: arg for place, arg in enumerate(call.args)
    }
    values, bins = (given.get(place) or given.get(name) for place, name in ((0, "x"), (1, "bins")))
    right = given.get(2) or given.get("right")
    if values is None or bins is None or any(arg.star for arg in call.args):
        raise Refused("the call passes its arguments in another way")
    _check_ascends(subject, bins.value)
    side = _side(subject, right.value if right is not None else None)
    edit = Edit(module)
    parts = f"{module.code(bins.value)}, {module.code(values.value)}{side}"
    numpy = module.code(call.func).removesuffix("digitize")
    edit.replace(call, edit.expression(f"{numpy}searchsorted({parts})"))
    return Patch(edit.files())


def _call(subject: Subject) -> cst.Call:
    module = subject.module
    calls = [each for each in module.walk(subject.statement) if isinstance(each, cst.Call)]
    found = [each for each in calls if module.calls(each, "numpy.digitize")]
    if len(found) != 1:
        raise NotMeant("numpy.digitize is not called here")
    if not isinstance(found[0].func, cst.Attribute):
        raise Refused("numpy.digitize is imported by its own name", instead=_BY_HAND)
    return found[0]


def _side(subject: Subject, right: cst.BaseExpression | None) -> str:
    """A bin holds its left end, unless `right` says so: what is equal to it goes to its right."""
    shown = "False" if right is None else subject.module.code(right)
    if shown not in ("True", "False"):
        raise Refused(f"it is unknown whether `{shown}` is True", instead=_BY_HAND)
    return "" if shown == "True" else ', side="right"'


def _check_ascends(subject: Subject, bins: cst.BaseExpression) -> None:
    module = subject.module
    shown = short(module, bins)
    written = _written(subject, bins)
    if written is None:
        raise Refused(f"it is unknown whether `{shown}` ascends", instead=_BY_HAND)
    numbers = _numbers(subject, written)
    if numbers is None or not all(a <= b for a, b in pairwise(numbers)):
        raise Refused(f"it is unknown whether `{shown}` ascends", instead=_BY_HAND)


def _written(subject: Subject, bins: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the bins are set to, once and for all."""
    module = subject.module
    if isinstance(bins, cst.Attribute):
        made = set_by_class(module, bins, bins)
        return made[0] if len(made) == 1 and not _is_stored_in(subject, bins) else None
    if not isinstance(bins, cst.Name):
        return bins
    if bins.value in local_names(subject.function):
        made_here = only_value(module, subject.function, bins.value)
        return made_here if not _is_stored_in(subject, bins) else None
    check_constant(subject, bins)
    found = definitions_of(module, bins)
    line = module.parent(found[0]) if len(found) == 1 else None
    while line is not None and not isinstance(line, (cst.Assign, cst.BaseStatement)):
        line = module.parent(line)
    return line.value if isinstance(line, cst.Assign) else None


def _is_stored_in(subject: Subject, bins: cst.BaseExpression) -> bool:
    """Is an item of it set, or a method called that may sort it?"""
    module = subject.module
    code = module.code(bins)
    for each in module.walk():
        if isinstance(each, (cst.Subscript, cst.Attribute)) and module.code(each.value) == code:
            return True
        if isinstance(each, cst.AugAssign) and module.code(each.target) == code:
            return True
    return False


def _numbers(subject: Subject, node: cst.BaseExpression) -> list[float] | None:
    """A row that goes up as these do."""
    module = subject.module
    if isinstance(node, cst.Call) and module.calls(node, *_HOLDING) and node.args:
        return _numbers(subject, node.args[0].value)
    if isinstance(node, cst.Call) and module.calls(node, *_EVENLY):
        ends = [number(arg.value) for arg in node.args[:2] if arg.keyword is None]
        first, last = ends if len(ends) == 2 else (None, None)
        step = module.calls(node, "numpy.arange") and len(node.args) > 2
        return None if first is None or last is None or step else [float(first), float(last)]
    if not isinstance(node, (cst.List, cst.Tuple)):
        return None
    found = [number(element.value) for element in node.elements]
    known = [float(each) for each in found if each is not None]
    return known if known and len(known) == len(found) else None


FIX = Fix(
    id="searchsorted-for-digitize",
    title="use np.searchsorted instead of np.digitize",
    rules=frozenset({"numpy-call", "GB0208", "GB0033", "outside-call"}),
    order=42,
    kind="source",
    why="For ascending bins, NumPy's `digitize` is a call of `searchsorted`, which Dynamo traces.",
    propose=_propose,
)
