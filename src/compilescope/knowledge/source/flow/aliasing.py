"""Who else sees it when a tensor is changed in place, or is replaced by another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import parameters, reads, targets
from compilescope.knowledge.source.flow.purity import operator_of
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import is_receiver
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def is_fresh(module: SourceModule, node: cst.CSTNode) -> bool:
    """A new tensor of its own: the result of arithmetic, or of an operator that is no view."""
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        return True
    if isinstance(node, cst.UnaryOperation):
        return not isinstance(node.operator, cst.Plus)
    if isinstance(node, cst.Call):
        name = operator_of(module, node)
        known = operators.PLAIN | operators.STEEP | operators.COSTLY | operators.RANDOM
        return name is not None and name in known and name not in operators.VIEWS
    return False


def is_fresh_local(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Every value that the function gives it is new, and nothing else can hold the same."""
    if name in parameters(function):
        return False
    found = False
    for each in module.walk(function.body):
        if isinstance(each, cst.Assign):
            if any(isinstance(t, cst.Name) and t.value == name for t in targets(each)):
                found = True
                if len(each.targets) > 1 or not is_fresh(module, each.value):
                    return False
            elif isinstance(each.value, cst.Name) and each.value.value == name:
                return False
        elif not isinstance(each, (cst.AugAssign, cst.NamedExpr)) and any(
            isinstance(t, cst.Name) and t.value == name for t in targets(each)
        ):
            return False
    return found and not is_shared(module, function, name)


def is_shared(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """A view is taken of it, or it is given to what may keep it."""
    return any(
        module.function_of(each) is not function or not _is_passed_by(module, each)
        for each in reads(module, function.body)
        if each.value == name
    )


def _is_passed_by(module: SourceModule, node: cst.CSTNode) -> bool:
    """Only its numbers are used here, or it is returned."""
    above = module.parent(node)
    plain = (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.AugAssign, cst.Return)
    if isinstance(above, plain):
        return True
    if isinstance(above, cst.UnaryOperation):
        return is_fresh(module, above)
    if isinstance(above, cst.Arg):
        call = module.parent(above)
        return call is not None and (
            is_fresh(module, call) or module.calls(call, "builtins.print", "builtins.len")
        )
    if isinstance(above, cst.Element):
        whole = module.parent(above)
        return isinstance(whole, cst.Tuple) and isinstance(module.parent(whole), cst.Return)
    if isinstance(above, cst.Subscript) and above.value is node:
        return isinstance(module.parent(above), plain)
    if isinstance(above, cst.Attribute):
        return _is_asked(module, above)
    return False


def _is_asked(module: SourceModule, node: cst.Attribute) -> bool:
    """`x.shape`, `x.size(0)`, `x.sin()`; `x.mul_(2)` as a statement of its own."""
    call = module.parent(node)
    if not isinstance(call, cst.Call) or call.func is not node:
        return node.attr.value in ("shape", "dtype", "device", "ndim", "requires_grad")
    if node.attr.value.endswith("_"):
        return isinstance(module.parent(call), cst.Expr)
    known = ("size", "dim", "numel", "item", "tolist", "is_floating_point")
    return is_fresh(module, call) or node.attr.value in known


def changes_in_place(module: SourceModule, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, str]]:
    """(where, name) of what may change the tensor that a name holds."""
    for each in module.walk(node):
        changed: cst.CSTNode | None = None
        if isinstance(each, cst.AugAssign):
            changed = each.target
        elif isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute):
            method = each.func.attr.value
            if method.endswith("_") and not method.startswith("_"):
                changed = each.func.value
        elif isinstance(each, (cst.Assign, cst.AnnAssign)):
            for target in targets(each):
                if isinstance(target, cst.Subscript):
                    yield each, _head(module, target)
        if changed is not None:
            yield each, _head(module, changed)


def _head(module: SourceModule, node: cst.CSTNode) -> str:
    """`x` of `x[0]` and `x.data`; `self.x` of `self.x[0]`."""
    while isinstance(node, (cst.Subscript, cst.Attribute, cst.Call)):
        if isinstance(node, cst.Call):
            node = node.func
        elif isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            own = is_receiver(module, node.value)
            return f"{node.value.value}.{node.attr.value}" if own else node.value.value
        else:
            node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def is_changed_later(
    module: SourceModule, function: cst.FunctionDef, statement: cst.CSTNode, name: str
) -> bool:
    """In place, after the statement or in the next turn of a loop around it."""
    end = module.position(statement).end
    inside = {id(each) for each in module.walk(statement)}
    loop = module.around(statement, cst.For, cst.While)
    again = {id(each) for each in module.walk(loop)} if loop is not None else set()
    for where, changed in changes_in_place(module, function.body):
        if changed != name or id(where) in inside:
            continue
        start = module.position(where).start
        if (start.line, start.column) >= (end.line, end.column) or id(where) in again:
            return True
    return False


def is_buffer(module: SourceModule, node: cst.CSTNode) -> bool:
    """`self.x`, where the class registers a buffer or makes a tensor of that name."""
    if not isinstance(node, cst.Attribute) or not is_receiver(module, node.value):
        return False
    return any(_registers(each, node.attr.value) for each in module.walk())


def _registers(node: cst.CSTNode, name: str) -> bool:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if node.func.attr.value != "register_buffer" or not node.args:
        return False
    first = node.args[0].value
    return isinstance(first, cst.SimpleString) and first.evaluated_value == name


def runs_without_grad(module: SourceModule, node: cst.CSTNode) -> bool:
    """Within `with torch.no_grad():`, or in a function that is decorated so."""
    off = {"torch.no_grad", "torch.inference_mode"}
    for above in module.ancestors(node):
        expressions: list[cst.BaseExpression] = []
        if isinstance(above, cst.With):
            expressions = [item.item for item in above.items]
        elif isinstance(above, cst.FunctionDef):
            expressions = [each.decorator for each in above.decorators]
        for each in expressions:
            func = each.func if isinstance(each, cst.Call) else each
            if module.meaning(func) & off:
                return True
        if isinstance(above, cst.FunctionDef):
            return False
    return False


def check_unchanged(
    module: SourceModule,
    function: cst.FunctionDef,
    statement: cst.CSTNode,
    values: Iterable[cst.CSTNode],
    names: Iterable[str] = (),
) -> None:
    """Raises `Refused` where a copy would no longer follow what it is a copy of: a value that is
    no tensor of its own, or the name that gets it, is changed in place later."""
    held = set(names)
    for value in values:
        if not is_fresh(module, value):
            held |= module.names_in(value)
    for name in sorted(held):
        changed = is_changed_later(module, function, statement, name)
        if changed and not is_fresh_local(module, function, name):
            raise Refused(f"`{name}` is changed in place later and may be held elsewhere")
