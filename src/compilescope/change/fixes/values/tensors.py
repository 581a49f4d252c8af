"""What kind of value an expression has: a tensor, a Python value, or nobody can tell.

From how it is written, and from the facts of a real run for plain names and `self.x`.
"""

from __future__ import annotations

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import ValueFact
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import next_statement, only_value
from compilescope.knowledge.source.flow.purity import operator_of
from compilescope.knowledge.source.syntax.bindings import is_receiver, parameters_of
from compilescope.knowledge.source.trees import cst

_STATIC_CALLS = {
    "builtins.isinstance",
    "builtins.hasattr",
    "builtins.len",
    "builtins.callable",
    "builtins.issubclass",
    "torch.is_tensor",
    "torch.is_grad_enabled",
    "torch.is_floating_point",
    "torch.compiler.is_compiling",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.cuda.is_available",
    "torch.is_autocast_enabled",
}
_STATIC_METHODS = {
    "size",
    "dim",
    "numel",
    "ndimension",
    "is_floating_point",
    "is_complex",
    "stride",
}
_STATIC_ATTRIBUTES = {"training", "ndim", "shape", "dtype", "device", "is_cuda", "requires_grad"}
_PYTHON = ("number", "text", "none")


def facts_of(subject: Subject, node: cst.CSTNode) -> tuple[ValueFact, ...]:
    """Of `x` and of `self.x`; empty for all else, and where nothing was seen."""
    if isinstance(node, (cst.Name, cst.Attribute)):
        return subject.facts(subject.module.code(bare(node)))
    return ()


def facts_after(subject: Subject, node: cst.CSTNode) -> tuple[ValueFact, ...]:
    """Of a tensor that gets a name where it stands: what the name was seen to hold when the next
    statement was about to run. Other ways may lead there too, so only what is the same for all
    tells something; empty where the run did not come by."""
    module = subject.module
    above = module.parent(node)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    line = module.parent(above) if above is not None else None
    if not isinstance(target, cst.Name) or not isinstance(line, cst.SimpleStatementLine):
        return ()
    facts, following = subject.program.facts, next_statement(module, line)
    came_by = facts.reached(subject.file, module.line(line))
    if following is None or len(line.body) > 1 or not came_by:
        return ()
    seen = facts.at(subject.file, module.line(following), target.value)
    return seen if all(fact.kind in ("tensor", "parameter") for fact in seen) else ()


def known_as(subject: Subject, node: cst.CSTNode) -> cst.CSTNode:
    """For a local name that is set once, what it is set to."""
    if isinstance(node, cst.Name) and not facts_of(subject, node):
        return _set_to(subject, node)
    return node


def _set_to(subject: Subject, node: cst.CSTNode) -> cst.CSTNode:
    if not isinstance(node, cst.Name):
        return node
    function = subject.module.function_of(node)
    value = only_value(subject.module, function, node.value) if function else None
    return value if value is not None else node


def bare(node: cst.CSTNode) -> cst.CSTNode:
    """Without the brackets around it."""
    return node.with_changes(lpar=(), rpar=()) if getattr(node, "lpar", ()) else node


def is_static(subject: Subject, node: cst.CSTNode) -> bool:
    """A Python value that does not depend on a tensor's numbers: Dynamo guards on it."""
    seen = facts_of(subject, node)
    if seen:
        return all(fact.kind in _PYTHON for fact in seen)
    if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString)):
        return True
    if isinstance(node, cst.Name):
        return node.value in ("None", "True", "False")
    if isinstance(node, cst.Attribute):
        if isinstance(node.value, cst.Call):
            return is_static(subject, node.value)
        return node.attr.value in _STATIC_ATTRIBUTES
    if isinstance(node, cst.Call):
        return _is_static_call(subject, node)
    if isinstance(node, cst.Subscript):
        return is_static(subject, node.value)
    if isinstance(node, cst.UnaryOperation):
        return is_static(subject, node.expression)
    if isinstance(node, (cst.BooleanOperation, cst.BinaryOperation)):
        return is_static(subject, node.left) and is_static(subject, node.right)
    if isinstance(node, cst.Comparison):
        return _is_static_comparison(subject, node)
    return False


def _is_static_call(subject: Subject, call: cst.Call) -> bool:
    if subject.module.meaning(call.func) & _STATIC_CALLS:
        return True
    if operator_of(subject.module, call) in operators.INQUIRIES:
        return True
    func = call.func
    return isinstance(func, cst.Attribute) and func.attr.value in _STATIC_METHODS


def _is_static_comparison(subject: Subject, node: cst.Comparison) -> bool:
    operators_used = [each.operator for each in node.comparisons]
    if all(isinstance(each, (cst.Is, cst.IsNot)) for each in operators_used):
        return True
    parts = [node.left, *(each.comparator for each in node.comparisons)]
    sizes = [part for part in parts if is_static(subject, part)]
    # Beside a size or a dtype, an unknown name is of the same kind.
    constants = (cst.Integer, cst.Float, cst.SimpleString)
    named = any(not isinstance(part, constants) for part in sizes)
    rest = [part for part in parts if part not in sizes]
    if not rest:
        return True
    unknown = [
        part
        for part in rest
        if isinstance(part, (cst.Name, cst.Attribute)) and is_tensor(subject, part) is None
    ]
    return named and len(unknown) == len(rest)


def is_tensor(subject: Subject, node: cst.CSTNode) -> bool | None:
    """None: nobody can tell."""
    seen, known = facts_of(subject, node), _set_to(subject, node)
    # What is left of `t or flag` may be either: what was compiled shows only what came by first.
    either = isinstance(known, cst.BooleanOperation) and not subject.program.facts.seen
    if seen and not either:
        return all(fact.kind in ("tensor", "parameter") for fact in seen)
    if is_static(subject, node):
        return False
    node = known_as(subject, node) if not either else known
    if isinstance(node, cst.Call):
        name = operator_of(subject.module, node)
        if name is not None:
            return name not in ("item", "tolist", "numpy", "allclose", "equal")
        return None
    if isinstance(node, cst.UnaryOperation):
        return is_tensor(subject, node.expression)
    if isinstance(node, cst.NamedExpr):
        return is_tensor(subject, node.value)
    if isinstance(node, cst.BooleanOperation):
        both = is_tensor(subject, node.left), is_tensor(subject, node.right)
        return True if all(both) else None
    parts: list[cst.BaseExpression] = []
    if isinstance(node, cst.BinaryOperation):
        parts = [node.left, node.right]
    elif isinstance(node, cst.Comparison):
        parts = [node.left, *(each.comparator for each in node.comparisons)]
    elif isinstance(node, cst.Subscript):
        return is_tensor(subject, node.value)
    elif isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT", "data", "values"):
        return True
    if any(is_tensor(subject, part) for part in parts):
        return True
    return None


def is_one_number(subject: Subject, node: cst.CSTNode) -> bool:
    """Surely a tensor of no dimensions, or a Python number."""
    seen = facts_of(subject, node)
    if seen:
        return all(fact.shape == () or fact.kind == "number" for fact in seen)
    node = known_as(subject, node)
    if isinstance(node, (cst.Integer, cst.Float)):
        return True
    if isinstance(node, cst.UnaryOperation):
        return is_one_number(subject, node.expression)
    if isinstance(node, cst.NamedExpr):
        return is_one_number(subject, node.value)
    if isinstance(node, cst.Comparison):
        parts = [node.left, *(each.comparator for each in node.comparisons)]
        return all(is_one_number(subject, part) for part in parts)
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return is_one_number(subject, node.left) and is_one_number(subject, node.right)
    if isinstance(node, cst.Call):
        return _is_whole_reduction(subject, node)
    return is_static(subject, node)


def _is_whole_reduction(subject: Subject, call: cst.Call) -> bool:
    """`x.any()`, `torch.any(x)`; and what is done to one number: `x.sum().abs()`."""
    name = operator_of(subject.module, call)
    if name is None:
        return False
    func = call.func
    is_method = not subject.module.meaning(func) & {
        f"{prefix}{name}" for prefix in operators.PREFIXES
    }
    operands = [arg.value for arg in call.args]
    if is_method and isinstance(func, cst.Attribute):
        operands.insert(0, func.value)
    if name in operators.REDUCTIONS:
        return len(operands) == 1
    if name in operators.LOSSES and not is_method and _is_reduced(call):
        return True
    elementwise = operators.PLAIN | operators.STEEP | {"float", "double", "detach", "bool", "item"}
    return name in elementwise and all(is_one_number(subject, each) for each in operands)


_OTHER_REDUCTIONS = frozenset({"reduction", "reduce", "size_average"})


def _is_reduced(call: cst.Call) -> bool:
    """Nobody says how a loss is to be reduced: to its mean."""
    words = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    plain = [arg for arg in call.args if arg.keyword is None]
    return len(plain) <= 2 and not words & _OTHER_REDUCTIONS and not any(a.star for a in call.args)


def needs_grad(subject: Subject, nodes: list[cst.CSTNode]) -> bool:
    """False only where a run that was watched has shown every name, and none with a gradient."""
    if not subject.program.facts.seen:
        return True
    for node in nodes:
        within = list(subject.module.walk(node))
        # Of an operation that a fix has made up, the file does not know what is what.
        attributes = {id(each.attr) for each in within if isinstance(each, cst.Attribute)}
        for each in within:
            seen = _value_facts(subject, each) if id(each) not in attributes else None
            if seen is None:
                continue
            if not seen or any(f.requires_grad or f.kind in ("module", "other") for f in seen):
                return True
    return False


def _value_facts(subject: Subject, node: cst.CSTNode) -> tuple[ValueFact, ...] | None:
    """None for what is no value of the function's: an attribute's name, a module, a function."""
    module = subject.module
    if not isinstance(node, cst.Name) or not module.names_in(node):
        return None
    above = module.parent(node)
    if isinstance(above, cst.For) and node in (above.iter, above.target):
        return None  # What it holds is seen where the loop's variable is used.
    if isinstance(above, cst.Attribute) and is_receiver(module, node):
        return subject.facts(module.code(above))
    if isinstance(above, cst.Attribute) and above.attr.value in ("grad", "data"):
        # A tensor of its own: whether the weight requires a gradient says nothing of it.
        held = module.code(above)
        return subject.facts(held) or _facts_in_loop(subject, node, held)
    if any(m.split(".")[0] in ("torch", "builtins", "math") for m in module.meaning(node)):
        return None
    return subject.facts(node.value) or _facts_in_loop(subject, node, node.value)


def _facts_in_loop(subject: Subject, name: cst.Name, held: str) -> tuple[ValueFact, ...]:
    """Of the variable of a loop or a list comprehension around it, or what it holds: it is there
    only within."""
    items = subject.module.around(name, cst.ListComp)
    if items is not None and subject.module.code(items.for_in.target) == name.value:
        return subject.facts(held, subject.module.line(items.elt))
    loop = subject.module.around(name, cst.For)
    if loop is None or subject.module.code(loop.target) != name.value:
        return ()
    return subject.facts(held, subject.module.line(loop.body.body[0]))


_NO_TENSOR = frozenset(
    {"item", "tolist", "numpy", "size", "dim", "numel", "ndimension", "stride", "split", "chunk"}
    | {"unbind", "is_floating_point", "is_complex", "is_contiguous", "type", "data_ptr", "keys"}
    | {"items", "values", "get", "copy", "format", "join", "index", "count", "pop", "parameters"}
)
"""Methods of tensors that give something else, and methods of containers and text."""
_MAKING = frozenset(
    f"torch.{name}"
    for name in (
        *("tensor", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "eye"),
        *("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "cat"),
        *(
            "stack",
            "where",
            "add",
            "sub",
            "mul",
            "div",
            "matmul",
            "exp",
            "log",
            "sqrt",
            "sin",
            "cos",
        ),
        *(
            "tanh",
            "sigmoid",
            "relu",
            "softmax",
            "sum",
            "mean",
            "abs",
            "clamp",
            "bmm",
            "mm",
            "einsum",
        ),
    )
)
_DEPTH = 6
"""Steps into an expression, and from a name to what it was set to. Chosen: beyond, it does not
count as known."""


def known_tensor(subject: Subject, value: cst.BaseExpression, depth: int = _DEPTH) -> bool:
    """True where facts or the source itself say so."""
    if depth == 0:
        return False
    if isinstance(value, cst.Name):
        seen = subject.is_tensor(value.value)
        return seen if seen is not None else _named_tensor(subject, value, depth)
    if isinstance(value, cst.Attribute):
        code = subject.module.code(value)
        if subject.is_tensor(code) is not None:
            return bool(subject.is_tensor(code))
        return value.attr.value in ("data", "T", "mT") and known_tensor(
            subject, value.value, depth - 1
        )
    if isinstance(value, cst.BinaryOperation):
        sides = (value.left, value.right)
        return any(known_tensor(subject, side, depth - 1) for side in sides)
    if isinstance(value, cst.UnaryOperation):
        return not isinstance(value.operator, cst.Not) and known_tensor(
            subject, value.expression, depth - 1
        )
    return isinstance(value, cst.Call) and _gives_tensor(subject, value, depth)


def _gives_tensor(subject: Subject, call: cst.Call, depth: int) -> bool:
    if subject.module.meaning(call.func) & _MAKING:
        return True
    method = call.func
    if isinstance(method, cst.Attribute) and method.attr.value not in _NO_TENSOR:
        return known_tensor(subject, method.value, depth - 1)
    return False


def _named_tensor(subject: Subject, name: cst.Name, depth: int) -> bool:
    """A variable of the function, all of whose values are known to be tensors; or a parameter
    that it does arithmetic of tensors with."""
    function = subject.function
    if name.value in parameters_of(function):
        return _is_used_as_tensor(subject, name.value)
    values = [
        each.value
        for each in subject.module.walk(function.body)
        if isinstance(each, cst.Assign)
        and any(
            isinstance(target.target, cst.Name) and target.target.value == name.value
            for target in each.targets
        )
    ]
    return bool(values) and all(known_tensor(subject, value, depth - 1) for value in values)


_ONLY_TENSORS = frozenset(
    {
        "detach",
        "clone",
        "sum",
        "mean",
        "view",
        "reshape",
        "sin",
        "cos",
        "exp",
        "log",
        "relu",
        "unsqueeze",
    }
    | {"requires_grad_", "backward", "matmul", "softmax", "permute", "contiguous", "add_", "mul_"}
)


def _is_used_as_tensor(subject: Subject, name: str) -> bool:
    """Is a method called on it that only tensors have?"""
    for node in subject.module.walk(subject.function.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            value = node.func.value
            if (
                isinstance(value, cst.Name)
                and value.value == name
                and node.func.attr.value in _ONLY_TENSORS
            ):
                return True
    return False
