"""What a line does with a list of tensors: adds to it, joins it, asks whether it is empty."""

from __future__ import annotations

from typing import NamedTuple

from compilescope.change.fixes.arguments.callers import last_name
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


class Growth(NamedTuple):
    """A statement that adds one tensor."""

    module: SourceModule
    statement: cst.SimpleStatementLine
    held: cst.BaseExpression
    value: cst.BaseExpression


class Join(NamedTuple):
    """A call that joins all of them."""

    module: SourceModule
    call: cst.Call
    dim: int


def growth_of(module: SourceModule, statement: cst.CSTNode) -> Growth | None:
    """`past.append(k)`, and `past += [k]`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    if isinstance(only, cst.AugAssign) and isinstance(only.operator, cst.AddAssign):
        added = only.value.elements if isinstance(only.value, cst.List) else ()
        if len(added) == 1 and isinstance(added[0], cst.Element):
            return Growth(module, statement, only.target, added[0].value)
    call = only.value if isinstance(only, cst.Expr) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        args = call.args
        plain = len(args) == 1 and not args[0].star and args[0].keyword is None
        if call.func.attr.value == "append" and plain:
            return Growth(module, statement, call.func.value, args[0].value)
    return None


def key_of(node: cst.Subscript) -> str | None:
    """`k` of `cache["k"]`."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    value = index.value if isinstance(index, cst.Index) else None
    return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None


def check_index(module: SourceModule, node: cst.Subscript) -> None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        raise Refused(f"`{short(module, node)}` picks several lists")


def looks_at_all_items(call: cst.Call) -> bool:
    """`cache.values()`, of whatever is kept under a name; not of a result such as a state dict."""
    func = call.func
    if any(arg.star == "**" and not last_name(arg.value).endswith("kwargs") for arg in call.args):
        return True
    if not isinstance(func, cst.Attribute) or func.attr.value not in ("values", "items", "popitem"):
        return False
    return not isinstance(func.value, cst.Call)


def is_without(node: cst.Dict, key: str) -> bool:
    """A dict with plain words for keys, and not this one."""
    for each in node.elements:
        word = each.key if isinstance(each, cst.DictElement) else None
        if not isinstance(word, cst.SimpleString) or word.evaluated_value == key:
            return False
    return True


def is_asked(module: SourceModule, node: cst.BaseExpression) -> bool:
    """Only whether it is empty, or there: `if past`, `not past`, `past is None`."""
    above = module.parent(node)
    if isinstance(above, cst.Comparison) and above.left is node:
        return all(isinstance(each.operator, (cst.Is, cst.IsNot)) for each in above.comparisons)
    while isinstance(above, cst.BooleanOperation):
        node, above = above, module.parent(above)
    if isinstance(above, cst.UnaryOperation):
        return isinstance(above.operator, cst.Not)
    if isinstance(above, cst.Arg):
        return module.calls(module.parent(above), "builtins.bool")  # type: ignore[arg-type]
    tests = (cst.If, cst.While, cst.IfExp, cst.Assert)
    return isinstance(above, tests) and above.test is node


def dim_of(module: SourceModule, call: cst.Call) -> int:
    """Of `torch.cat(past, dim=2)`."""
    dim: cst.BaseExpression | None = None
    for place, arg in enumerate(call.args):
        word = arg.keyword.value if arg.keyword is not None else ("tensors", "dim")[place % 2]
        if word not in ("tensors", "dim", "axis") or arg.star or place > 1:
            raise Refused(f"`{short(module, call)}` has other arguments")
        if word != "tensors":
            dim = arg.value
    value = 0 if dim is None else number(dim)
    if not isinstance(value, int):
        raise Refused(f"`{short(module, call)}` joins in a dimension that may change")
    return value
