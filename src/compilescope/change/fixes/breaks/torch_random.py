"""Numbers that torch draws, in place of Python's or NumPy's."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.scalars import Uses
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_STATES = (
    "The random numbers differ but have the same distribution, and torch.manual_seed controls them."
)


def _normal(torch: str, mean: str, spread: str) -> str:
    drawn = f"{torch}.randn(())" if spread in ("1", "1.0") else f"{spread} * {torch}.randn(())"
    return f"({drawn})" if mean in ("0", "0.0") else f"({mean} + {drawn})"


def _spread(torch: str, low: str, high: str) -> str:
    return f"({low} + ({high} - {low}) * {torch}.rand(()))"


_ZERO = {"random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample"}
_PAIRS: dict[str, Callable[[str, str, str], str]] = {
    "random.gauss": _normal,
    "random.normalvariate": _normal,
    "numpy.random.normal": _normal,
    "random.uniform": _spread,
    "numpy.random.uniform": _spread,
}


def _propose(subject: Subject) -> Patch:
    module = subject.module
    found = [
        each
        for each in module.walk(subject.node)
        if isinstance(each, cst.Call) and module.calls(each, *_ZERO, *_PAIRS, "numpy.random.randn")
    ]
    if len(found) != 1:
        raise NotMeant("torch does not draw such numbers, or not from the same generator")
    call = found[0]
    if any(arg.keyword or arg.star for arg in call.args):
        raise Refused("the call uses keyword arguments")
    Uses(subject).follow(call)
    edit = Edit(module)
    drawn = _drawn(subject, edit, call)
    alone = isinstance(module.parent(call), (cst.Assign, cst.Arg))
    edit.replace(call, edit.expression(drawn[1:-1] if alone and drawn.startswith("(") else drawn))
    return Patch(edit.files(), states=_STATES, allows=frozenset({"other-random-numbers"}))


def _drawn(subject: Subject, edit: Edit, call: cst.Call) -> str:
    meanings = subject.module.meaning(call.func)
    torch = edit.module_name("torch")
    given = [subject.module.code(arg.value) for arg in call.args]
    if not all(isinstance(arg.value, (cst.Integer, cst.Float, cst.Name)) for arg in call.args):
        raise Refused("its arguments are computed in the call")
    if meanings & _ZERO and not given:
        return f"{torch}.rand(())"
    if "numpy.random.randn" in meanings and not given:
        return f"{torch}.randn(())"
    for name, made in _PAIRS.items():
        if name in meanings and len(given) == 2:
            return made(torch, *given)
    raise Refused("it draws more than one number")


FIX = Fix(
    id="torch-random",
    title="draw the random numbers with torch",
    rules=frozenset({"random-number"}),
    order=110,
    kind="source",
    why="torch's own generator is part of the graph. The numbers differ from before but have "
    "the same distribution.",
    propose=_propose,
)
