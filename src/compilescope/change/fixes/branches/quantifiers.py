"""Python's `any(...)` and `all(...)` over tests of tensors, read so that a tensor can answer them.

Python stops at the first test that decides, and a tensor's `any` looks at all of them, so a test
must do nothing but compute. `any` of nothing is False and `all` of nothing True, where there is no
tensor to be asked: that case stays an `if` of Python's, which Dynamo guards on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import facts_of, is_static, known_as
from compilescope.knowledge.source.flow.liveness import only_value, reads
from compilescope.knowledge.source.flow.purity import remarks, short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_WORDS = ("any", "all")
_WITH_LENGTH = frozenset(
    {
        *(f"builtins.{name}" for name in ("list", "tuple", "dict", "range")),
        *("collections.deque", "collections.OrderedDict", "collections.defaultdict"),
        *(f"torch.nn.modules.container.{name}" for name in ("ModuleList", "ParameterList")),
    }
)
"""Classes that can be gone through again and again, and have a length."""
_NEVER_EMPTY = ("split", "chunk", "tensor_split")
"""Methods of tensors that give a tuple of one tensor at least."""
_WALKS = ("parameters", "buffers", "named_parameters", "named_buffers")
"""Methods of modules that begin anew with each call."""


@dataclass(frozen=True)
class Quantifier:
    """`any(test for name in things)`, or `any([test, test])`."""

    word: str
    """`any` or `all`."""
    tests: tuple[cst.BaseExpression, ...]
    """All of a list that is written out; the one of a comprehension."""
    clause: cst.CompFor | None
    """`for name in things if condition`; None where the list is written out."""
    filled: str
    """Python code that is true where there is something to go through; empty: there always is."""


def quantifier_of(subject: Subject, node: cst.CSTNode) -> Quantifier | None:
    """None for what is no such call. Raises `Refused` where looking at all of it shows."""
    module = subject.module
    if not isinstance(node, cst.Call) or len(node.args) != 1:
        return None
    word = next((each for each in _WORDS if module.calls(node, f"builtins.{each}")), None)
    given = node.args[0]
    if word is None or given.star or given.keyword is not None:
        return None
    inside = known_as(subject, given.value)
    if isinstance(inside, (cst.List, cst.Tuple)) and inside is given.value:
        return _written_out(subject, word, inside)
    if not isinstance(inside, (cst.GeneratorExp, cst.ListComp)) or inside is not given.value:
        raise Refused(f"it is unknown what `{short(module, node)}` goes through")
    if isinstance(inside, cst.GeneratorExp):
        _check_quiet(subject, inside)
    return Quantifier(word, (inside.elt,), inside.for_in, _filled(subject, inside.for_in))


def _written_out(subject: Subject, word: str, given: cst.List | cst.Tuple) -> Quantifier:
    if not given.elements or any(isinstance(e, cst.StarredElement) for e in given.elements):
        shown = short(subject.module, given)
        raise Refused(f"it is unknown how many tests there are in `{shown}`")
    return Quantifier(word, tuple(each.value for each in given.elements), None, "")


def _check_quiet(subject: Subject, given: cst.GeneratorExp) -> None:
    """A list is made before it is looked at; a generator goes on only as far as it must."""
    for found in remarks(subject.module, given.elt):
        if found.concern not in ("effect", "unknown", "random", "raises"):
            continue
        if found.subscript is None or not _is_counted(subject, given.for_in, found.subscript):
            raise Refused(found.words.replace("the branch", "the condition"))


def _is_counted(subject: Subject, clause: cst.CompFor, row: cst.Subscript) -> bool:
    """`x[i]` by the variable of a range: whether there is such a row is no matter of values."""
    names = {each.value for each in _targets(clause.target)}
    by = [part.slice.value for part in row.slice if isinstance(part.slice, cst.Index)]
    counted = subject.module.calls(clause.iter, "builtins.range", "builtins.enumerate")
    return counted and all(isinstance(each, cst.Name) and each.value in names for each in by)


def _targets(node: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(node, cst.Name):
        yield node
    elif isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _targets(element.value)


def _filled(subject: Subject, clause: cst.CompFor) -> str:
    module = subject.module
    if clause.inner_for_in is not None or clause.asynchronous is not None:
        raise Refused(f"the tests of `{short(module, clause)}` are in nested loops")
    for each in clause.ifs:
        if not is_static(subject, each.test):
            raise Refused(f"`{short(module, each.test)}` is not known before the values are")
    things = _lengths(subject, clause.iter)
    if clause.ifs or things is None:
        return f"any(True {module.code(clause).strip()})"
    return " and ".join(f"len({each}) > 0" for each in things)


def _lengths(subject: Subject, node: cst.BaseExpression) -> list[str] | None:
    """What must not be empty, as code; None where it has no length, but can be begun anew. Raises
    `Refused` where it may be an iterator: to ask whether there is something in it would use it
    up."""
    module = subject.module
    if isinstance(node, (cst.List, cst.Tuple)):
        if node.elements and not isinstance(node.elements[0], cst.StarredElement):
            return []
    elif isinstance(node, cst.Call):
        return _lengths_of_call(subject, node)
    elif isinstance(node, (cst.Name, cst.Attribute)):
        _check_has_length(subject, node)
        return [] if _is_never_empty(subject, node) else [module.code(node)]
    raise Refused(f"it is unknown whether `{short(module, node)}` is empty")


def _is_never_empty(subject: Subject, node: cst.Name | cst.Attribute) -> bool:
    """A local list that is written out with something in it, and only looked at."""
    module, function = subject.module, subject.module.function_of(node)
    if not isinstance(node, cst.Name) or function is None:
        return False
    made = only_value(module, function, node.value)
    if not isinstance(made, (cst.List, cst.Tuple)) or not made.elements:
        return False
    if isinstance(made.elements[0], cst.StarredElement):
        return False
    return all(
        _is_looked_at(module, each)
        for each in reads(module, function.body)
        if each.value == node.value
    )


def _is_looked_at(module: SourceModule, node: cst.Name) -> bool:
    above = module.parent(node)
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.iter is node
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call):
        return any(name.startswith(("builtins.", "torch.")) for name in module.meaning(call.func))
    if isinstance(above, cst.Subscript) and above.value is node:
        return not isinstance(module.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del))
    return False


def _lengths_of_call(subject: Subject, call: cst.Call) -> list[str] | None:
    module, func = subject.module, call.func
    plain = all(arg.keyword is None and not arg.star for arg in call.args)
    if module.calls(call, "builtins.range") and len(call.args) == 1:
        last = call.args[0].value
        if isinstance(last, cst.Integer) and last.evaluated_value > 0:
            return []
        if is_static(subject, last):
            return [module.code(call)]
    if module.calls(call, "builtins.zip", "builtins.enumerate", "builtins.reversed") and plain:
        held = call.args if module.calls(call, "builtins.zip") else call.args[:1]
        lengths = [_lengths(subject, arg.value) for arg in held]
        known = [each for each in lengths if each is not None]
        return None if len(known) < len(lengths) else [name for each in known for name in each]
    if isinstance(func, cst.Attribute):
        if func.attr.value in _NEVER_EMPTY:
            return []
        if func.attr.value in ("values", "items", "keys") and not call.args:
            return _lengths(subject, func.value)
        if func.attr.value in _WALKS and isinstance(func.value, (cst.Name, cst.Attribute)):
            return None
    raise Refused(f"it is unknown whether `{short(module, call)}` is empty")


def _check_has_length(subject: Subject, node: cst.Name | cst.Attribute) -> None:
    seen = facts_of(subject, node)
    module = subject.module
    if seen:
        known = (fact.kind in ("tensor", "parameter") or fact.type in _WITH_LENGTH for fact in seen)
        if all(known):
            return
        raise Refused(f"it is unknown whether `{short(module, node)}` is empty")
    if isinstance(known_as(subject, node), (cst.List, cst.ListComp, cst.Tuple)):
        return
    if not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show whether `{short(module, node)}` has a length")
    raise Refused(f"it is unknown whether `{short(module, node)}` has a length")
