"""Loops over what a tensor selects: `for i in (mask.sum((1, 2)) > 0).nonzero():`, or over the
numbers that occur in one, `for e in torch.unique(chosen):`.

Instead, a loop over all that could occur goes through the same ones in the same order, and through
others that no row is for. Which could occur, only where the numbers come from tells: places in a
tensor (`argmax`, `topk`) are never negative and less than its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_MOVING = {
    "permute",
    "transpose",
    "t",
    "movedim",
    "swapaxes",
    "to",
    "int",
    "long",
    "bool",
    "contiguous",
}
_FLATTENING = {"flatten()", "view(-1)", "reshape(-1)", "squeeze(-1)", "squeeze(1)"}


@dataclass(frozen=True)
class Hit:
    """What a loop over the hit ones goes through."""

    kind: Literal["row", "number", "int"]
    """A tensor of one number, a 0-dim tensor, or Python's number."""
    turns: str
    """How many there are, hit or not, as code."""
    made_by: tuple[cst.BaseStatement, ...]
    """The statement that finds them, where only the loop needs it."""
    counted: str = ""
    """The name of the tensor that has a first row for each, where there is one."""
    chosen: str = ""
    """Else that of the tensor which holds their numbers."""

    def selections(self, name: str, *, unpacked: bool) -> set[str]:
        """Code of what is selected for the one that the variable stands for."""
        if self.chosen:
            each = (name, f"{name}.item()", f"int({name})")
            return {f"{self.chosen} == {it}" for it in each} | {
                f"{it} == {self.chosen}" for it in each
            }
        if self.kind != "row":
            return {f"{self.counted}[{name}]"}
        forms = {f"{self.counted}[{name}].squeeze(0)"}
        return forms | {f"{self.counted}[{name}]"} if unpacked else forms


def read_hit(subject: Subject, loop: cst.For, edit: Edit) -> Hit:
    module, function = subject.module, subject.function
    made_by: tuple[cst.BaseStatement, ...] = ()
    node: cst.BaseExpression | None = loop.iter
    if isinstance(node, cst.Name):
        name = node.value
        node = liveness.only_value(module, function, name)
        reads = [each for each in liveness.reads(module, function) if each.value == name]
        if node is not None and len(reads) == 1:
            made_by = (module.statement_of(node),)
    if node is None or not isinstance(loop.target, cst.Name):
        raise NotMeant("the loop does not go through what is hit")
    distinct = _read_distinct(module, node)
    if distinct is not None:
        turns = _width_of(subject, edit, distinct.numbers, loop)
        given = "int" if distinct.as_int else "number"
        return Hit(given, turns, made_by, chosen=distinct.numbers)  # type: ignore[arg-type]
    kind: Literal["row", "number", "int"] = "number"
    whole = node
    called = method_called(node)
    if called is not None and called[1] == "tolist()":
        kind, node = "int", called[0]
    called = method_called(node)
    if called is not None and called[1] in _FLATTENING:
        found = _nonzero(module, called[0])
    elif isinstance(node, cst.Subscript) and module.code(node).endswith("[0]"):
        found = _nonzero(module, node.value, as_tuple=True)
    else:
        found = _nonzero(module, node)
        if kind == "int":
            raise NotMeant("each is a list")
        kind = "row"
    if found is None:
        raise NotMeant("the loop does not go through what is hit")
    counted = _counted(subject, found, module.line(loop))
    last = max(
        (module.line(each) for each in module.walk(function) if _sets(each, counted)), default=0
    )
    if last >= module.line(whole):
        raise Refused(f"`{counted}` changes after it was asked what is hit")
    return Hit(kind, f"{counted}.shape[0]", made_by, counted=counted)


def _sets(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(node))


def method_called(node: cst.CSTNode) -> tuple[cst.BaseExpression, str] | None:
    """`x`, `view(-1)` of `x.view(-1)`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    given = ", ".join(cst.Module([]).code_for_node(arg.value) for arg in node.args)
    return node.func.value, f"{node.func.attr.value}({given})"


def _nonzero(
    module: SourceModule, node: cst.BaseExpression, *, as_tuple: bool = False
) -> cst.BaseExpression | None:
    """What is asked for its nonzero items."""
    if not isinstance(node, cst.Call):
        return None
    keywords = [module.code(arg).rstrip(", ") for arg in node.args if arg.keyword is not None]
    given = [arg.value for arg in node.args if arg.keyword is None]
    tupled = keywords == ["as_tuple=True"]
    if module.calls(node, "torch.where") and len(given) == 1 and not keywords:
        return given[0] if as_tuple else None
    if tupled is not as_tuple or (keywords and not tupled):
        return None
    if module.calls(node, "torch.nonzero") and len(given) == 1:
        return given[0]
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "nonzero" and not given:
        return func.value
    return None


def _counted(subject: Subject, node: cst.BaseExpression, line: int) -> str:
    """`mask` of `mask.sum((1, 2)) > 0` and `mask.any(-1)`: true where a first row has an item that
    is not zero."""
    module = subject.module
    node = bare(node)  # type: ignore[assignment]
    if isinstance(node, cst.Name):
        made = liveness.only_value(module, subject.function, node.value)
        node = bare(made) if made is not None else node  # type: ignore[assignment]
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        only = node.comparisons[0]
        if isinstance(only.operator, cst.GreaterThan) and number(only.comparator) == 0:
            node = bare(node.left)  # type: ignore[assignment]
    elif isinstance(node, cst.Call) and operator_of(module, node) in ("greater", "gt"):
        given = [arg.value for arg in node.args]
        if isinstance(node.func, cst.Attribute) and not module.calls(
            node, "torch.greater", "torch.gt"
        ):
            given.insert(0, node.func.value)
        if len(given) == 2 and number(given[1]) == 0:
            node = given[0]
    if isinstance(node, cst.Call) and operator_of(module, node) in ("sum", "any"):
        func = node.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name):
            name = func.value.value
            if len(node.args) == 1 and _is_over_rest(subject, name, node.args[0], line):
                if _is_never_negative(subject, name, line):
                    return name
                raise Refused(f"it is unknown whether `{name}` has negative items")
    raise NotMeant("the loop does not go through what is hit")


def _is_over_rest(subject: Subject, name: str, dims: cst.Arg, line: int) -> bool:
    """Over all dimensions but the first?"""
    if dims.keyword is not None and dims.keyword.value not in ("dim", "axis"):
        return False
    if not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show how many dimensions `{name}` has")
    ranks = {len(f.shape) if f.shape is not None else None for f in subject.facts(name, line)}
    parts = [e.value for e in dims.value.elements] if isinstance(dims.value, cst.Tuple) else []
    given = [number(each) for each in (parts or [dims.value])]
    rank = next(iter(ranks)) if len(ranks) == 1 else None
    if not rank or any(not isinstance(each, int) for each in given):
        return False
    return {each % rank for each in given if isinstance(each, int)} == set(range(1, rank))


def _is_never_negative(subject: Subject, name: str, line: int) -> bool:
    """Of truths, or made by `one_hot`: a sum is zero only if all are."""
    seen = subject.facts(name, line)
    if seen and all(fact.dtype == "bool" for fact in seen):
        return True
    module = subject.module
    made = [
        each.value
        for each in module.walk(subject.function)
        if isinstance(each, cst.Assign) and _sets(each, name)
    ]
    setting = [each for each in module.walk(subject.function) if _sets(each, name)]
    if len(made) != len(setting) or any(
        name == changed for _, changed in changes_in_place(module, subject.function.body)
    ):
        return False
    return bool(made) and all(_is_one_hot(module, each, name) for each in made)


def _is_one_hot(module: SourceModule, node: cst.BaseExpression, name: str) -> bool:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value not in _MOVING:
            break
        node = node.func.value
    if isinstance(node, cst.Name):
        return node.value == name
    return module.calls(node, "torch.nn.functional.one_hot")


_SAME_NUMBERS = {
    "clone",
    "contiguous",
    "detach",
    "flatten",
    "long",
    "ravel",
    "reshape",
    "squeeze",
    "unsqueeze",
    "view",
}
"""Methods of an int64 tensor after which it holds the same numbers, however they lie."""
_PLACES = {"argmax": None, "argmin": None, "topk": -1, "multinomial": -1}
"""Operators that give places along a dimension, and the one that they take if none is given."""
_SECOND = {"topk", "max", "min", "sort"}
"""Those that give the places second, after the values."""


@dataclass(frozen=True)
class Distinct:
    """What such a loop goes through."""

    numbers: str
    """The name of the tensor that holds them."""
    as_int: bool
    """Each is a number of Python's, not a tensor."""


def _read_distinct(module: SourceModule, node: cst.BaseExpression) -> Distinct | None:
    """Of `torch.unique(chosen)` and `chosen.unique().tolist()`; None of another."""
    as_int = False
    if _method(node) == "tolist":
        assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
        node, as_int = node.func.value, True
    if isinstance(node, cst.Call):
        given = [arg.value for arg in node.args]
        if _method(node) == "unique" and not module.calls(node, "torch.unique"):
            assert isinstance(node.func, cst.Attribute)
            given.insert(0, node.func.value)
        elif not module.calls(node, "torch.unique"):
            given = []
        plain = all(arg.keyword is None and not arg.star for arg in node.args)
        if plain and len(given) == 1 and isinstance(given[0], cst.Name):
            return Distinct(given[0].value, as_int)
    return None


def _method(node: cst.CSTNode) -> str:
    is_method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.func.attr.value if is_method else ""  # type: ignore[attr-defined]


def _width_of(subject: Subject, edit: Edit, name: str, loop: cst.For) -> str:
    """How many numbers could occur in the tensor, as code; what has no name gets one. Raises
    `Refused` where the source does not show it."""
    module, function = subject.module, subject.function
    if name in liveness.parameters(function):
        raise Refused(f"it is unknown which numbers `{name}` may hold")
    if any(name == changed for _, changed in changes_in_place(module, function.body)):
        raise Refused(f"`{name}` changes in place")
    sources = []
    for statement, value, second in _given(module, function, name):
        if value is None or not _keeps(module, value, name):
            sources.append((statement, value, second))
    if len(sources) != 1 or sources[0][1] is None:
        raise Refused(f"it is unknown which numbers `{name}` may hold")
    statement, value, second = sources[0]
    assert value is not None
    found = _places_in(module, value, second)
    if found is None:
        raise Refused(f"it is unknown which numbers `{short(module, value)}` may give")
    _check_way(module, statement, loop)
    tensor, dim = found
    if _may_be_one_number(subject, tensor):
        raise Refused(f"`{short(module, tensor)}` may have no dimensions")
    if not isinstance(tensor, cst.Name):
        fresh = module.fresh_name("scores")
        edit.put_before(tensor, f"{fresh} = {module.code(tensor)}")
        edit.replace(tensor, cst.Name(fresh))
        return f"{fresh}.shape[{dim}]"
    for later, _, _ in _given(module, function, tensor.value):
        if module.line(later) >= module.line(statement):
            raise Refused(f"`{tensor.value}` is another one after the numbers were found in it")
    return f"{tensor.value}.shape[{dim}]"


def _may_be_one_number(subject: Subject, tensor: cst.BaseExpression) -> bool:
    seen = subject.facts(subject.module.code(tensor), subject.module.line(tensor))
    return any(fact.shape == () for fact in seen) or kind_of(subject, tensor).shape == ()


def _check_way(module: SourceModule, statement: cst.BaseStatement, loop: cst.For) -> None:
    """Every run that comes to the loop must have come by the statement."""
    above = [loop, *module.ancestors(loop)]
    if module.parent(statement) not in above or module.line(statement) >= module.line(loop):
        raise Refused("the numbers come from elsewhere on some ways to the loop")


def _given(
    module: SourceModule, function: cst.FunctionDef, name: str
) -> Iterator[tuple[cst.BaseStatement, cst.BaseExpression | None, bool]]:
    """Each statement that sets the name, what it is set to where that is plain to see, and whether
    it is the second of two results."""
    for node in module.walk(function.body):
        if not any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(node)):
            continue
        statement = module.statement_of(node)
        value, second = None, False
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, cst.Name):
                value = node.value
            elif isinstance(target, (cst.Tuple, cst.List)):
                names = [module.code(each.value) for each in target.elements]
                place = names.index(name) if names.count(name) == 1 else -1
                if isinstance(node.value, cst.Tuple):
                    parts = [each.value for each in node.value.elements]
                    value = parts[place] if 0 <= place < len(parts) == len(names) else None
                elif place == 1 and len(names) == 2:
                    value, second = node.value, True
        yield statement, value, second


def _keeps(module: SourceModule, value: cst.BaseExpression, name: str) -> bool:
    """`chosen.view(-1)`: the same numbers."""
    while _method(value) in _SAME_NUMBERS:
        assert isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)
        value = value.func.value
    return isinstance(value, cst.Name) and value.value == name


def _places_in(
    module: SourceModule, value: cst.BaseExpression, second: bool
) -> tuple[cst.BaseExpression, int] | None:
    """What the numbers are places in, and along which dimension."""
    while not second and _method(value) in _SAME_NUMBERS:
        assert isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)
        value = value.func.value
    named = isinstance(value, cst.Attribute) and value.attr.value == "indices"
    numbered = isinstance(value, cst.Subscript) and module.code(value).endswith("[1]")
    if (named or numbered) and not second:
        value, second = value.value, True  # type: ignore[attr-defined]
    if not isinstance(value, cst.Call):
        return None
    name = operator_of(module, value)
    if name is None or (name in _SECOND) is not second or name not in {*_PLACES, *_SECOND}:
        return None
    if any(arg.star for arg in value.args):
        return None
    given = [arg.value for arg in value.args if arg.keyword is None]
    by_name = {arg.keyword.value: arg.value for arg in value.args if arg.keyword is not None}
    if not module.calls(value, f"torch.{name}"):
        if not isinstance(value.func, cst.Attribute):
            return None
        given.insert(0, value.func.value)
    if not given:
        return None
    where = 2 if name == "topk" else 1
    dim = by_name.get("dim", given[where] if len(given) > where else None)
    known = number(dim) if dim is not None else _PLACES.get(name)
    if name == "multinomial":
        known = -1  # What stands second there is how many are drawn.
    if not isinstance(known, int) or "\n" in module.code(given[0]):
        return None
    return given[0], known
