"""A loop over those that anything is selected for: `for i in (mask.sum((1, 2)) > 0).nonzero():`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compilescope.fixes.subject import Subject
from compilescope.fixes.values.tensors import bare
from compilescope.source.flow import liveness
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.purity import operator_of
from compilescope.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.source.syntax.module import SourceModule
from compilescope.source.syntax.snippets import number
from compilescope.source.trees import cst

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
    counted: str
    """The name of the tensor that has a first row for each."""
    made_by: tuple[cst.BaseStatement, ...]
    """The statement that finds them, where only the loop needs it."""


def read_hit(subject: Subject, loop: cst.For) -> Hit:
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
    return Hit(kind, counted, made_by)


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
    if not isinstance(rank, int) or any(not isinstance(each, int) for each in given):
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
