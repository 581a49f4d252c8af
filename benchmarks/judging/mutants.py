"""Mutants of a program: in each, one thing is another. Which operators there are is in `OPERATORS`.

Pure: from a text to texts. Only what is in functions is changed; what the program does with them
decides what they are given, and stays.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from judging.edits import (
    Change,
    Edit,
    Functions,
    Maker,
    Source,
    Written,
    called,
    changed,
    each_change,
    is_of_module,
    is_text,
)

_ARITHMETIC: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
}
_LOGIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_REDUCED = {
    "sum": "mean",
    "mean": "sum",
    "max": "min",
    "min": "max",
    "amax": "amin",
    "amin": "amax",
    "any": "all",
    "all": "any",
    "prod": "sum",
    "argmax": "argmin",
    "argmin": "argmax",
    "std": "var",
    "var": "std",
    "nansum": "sum",
    "logsumexp": "amax",
    "cumsum": "cumprod",
    "norm": "sum",
}
_FUNCTIONS = {
    "relu": "gelu",
    "gelu": "relu",
    "silu": "relu",
    "ReLU": "GELU",
    "GELU": "ReLU",
    "SiLU": "ReLU",
    "Tanh": "Sigmoid",
    "sigmoid": "tanh",
    "tanh": "sigmoid",
    "sin": "cos",
    "cos": "sin",
    "exp": "expm1",
    "log": "log1p",
    "log1p": "log",
    "sqrt": "abs",
    "rsqrt": "reciprocal",
    "abs": "neg",
    "floor": "ceil",
    "ceil": "floor",
    "round": "floor",
    "softmax": "log_softmax",
    "log_softmax": "softmax",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "zeros": "ones",
    "ones": "zeros",
    "randn_like": "rand_like",
    "rand_like": "randn_like",
    "randn": "rand",
    "rand": "randn",
    "isnan": "isinf",
    "isinf": "isnan",
    "isfinite": "isnan",
    "mse_loss": "l1_loss",
    "l1_loss": "mse_loss",
    "cat": "stack",
    "stack": "cat",
    "maximum": "minimum",
    "minimum": "maximum",
    "clamp_min": "clamp_max",
    "clamp_max": "clamp_min",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "unsqueeze": "squeeze",
    "nan_to_num": "abs",
    "append": "remove",
}
_DTYPES = {
    "float32": "float64",
    "float": "double",
    "float64": "float32",
    "double": "float",
    "float16": "bfloat16",
    "half": "bfloat16",
    "bfloat16": "float16",
    "int64": "int32",
    "long": "int",
    "int32": "int64",
    "int": "long",
    "bool": "uint8",
}
_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "bool", "to", "type_as")
_MASKED = ("masked_fill", "masked_fill_", "where", "tril", "triu", "masked_select")
_DIMS = ("dim", "axis", "dims", "start_dim", "end_dim", "dim0", "dim1")
_BY_DIM = {
    **dict.fromkeys(("sum", "mean", "max", "min", "amax", "amin", "any", "all", "argmax"), 0),
    **dict.fromkeys(("argmin", "std", "var", "softmax", "log_softmax", "unsqueeze", "squeeze"), 0),
    **dict.fromkeys(("cumsum", "flatten", "prod", "size", "split", "chunk", "norm"), 0),
    **dict.fromkeys(("cat", "stack", "unbind", "argsort", "sort", "select", "narrow"), 0),
}
"""By name of a method: which of its first numbers is a dim. Of a function of torch, one later."""
_SHAPED = ("view", "reshape", "expand", "repeat", "permute", "transpose", "unflatten", "tile")
_GRADIENTS = {"no_grad": "enable_grad", "inference_mode": "enable_grad", "enable_grad": "no_grad"}
_COPIED = ("clone", "copy", "deepcopy")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def mutants(text: str) -> list[Written]:
    """All of them, each once, in the order of the text."""
    return each_change(Source(text), _is_wanted, OPERATORS)


def draw(found: Sequence[Written], number: int, seed: str) -> list[Written]:
    """Some of them: the operators take turns."""
    rng = random.Random(seed)
    by_operator: dict[str, list[Written]] = defaultdict(list)
    for each in found:
        by_operator[each.operator].append(each)
    queues = [rng.sample(each, len(each)) for each in by_operator.values()]
    rng.shuffle(queues)
    drawn: list[Written] = []
    while len(drawn) < number and any(queues):
        for queue in queues:
            if queue and len(drawn) < number:
                drawn.append(queue.pop())
    return drawn


def _is_wanted(source: Source, node: ast.AST) -> bool:
    """In a function; no part of a text, an annotation or a decorator."""
    if not hasattr(node, "lineno"):
        return False
    inside = False
    below: ast.AST = node
    for each in source.above(node):
        if isinstance(each, (ast.JoinedStr, ast.arg)) or is_text(below):
            return False
        if isinstance(each, (*Functions, ast.ClassDef)) and below in each.decorator_list:
            return False
        if isinstance(each, Functions):
            if below is each.returns:
                return False
            inside = True
        inside = inside or isinstance(each, ast.Lambda)
        if isinstance(each, ast.AnnAssign) and below is each.annotation:
            return False
        below = each
    return inside


# One operator each. A node is given; what is made of it is yielded.


def _arithmetic(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp):
        for other in _ARITHMETIC.get(type(node.op), ()):
            yield node, [source.in_place_of(node, changed(node, op=other()))]
    elif isinstance(node, ast.AugAssign):
        for other in _ARITHMETIC.get(type(node.op), ()):
            yield node, [_statement(source, node, changed(node, op=other()))]
    elif (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and not isinstance(node.operand, ast.Constant)
    ):
        yield node, [source.in_place_of(node, node.operand)]


def _comparisons(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for other in _COMPARED.get(type(node.ops[0]), ()):
            new = changed(node, ops=[other(), *node.ops[1:]])
            yield node, [source.in_place_of(node, new)]


def _logic(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, [source.in_place_of(node, changed(node, op=other))]
        yield node, [source.in_place_of(node, node.values[0])]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        yield node, [source.in_place_of(node, node.operand)]
    elif isinstance(node, ast.BinOp) and type(node.op) in _LOGIC:
        yield node, [source.in_place_of(node, changed(node, op=_LOGIC[type(node.op)]()))]
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and not _is_compared(node.test):
        yield node, [source.in_place_of(node.test, _not(node.test))]


def _constants(source: Source, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Constant) or _is_special(source, node):
        return
    for value in _other_constants(node.value):
        yield node, [source.in_place_of(node, ast.Constant(value))]


def _other_constants(value: object) -> Iterator[bool | int | float | str]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value > 1:
            yield value - 1
    elif isinstance(value, float):
        yield value * 1.1 if value and abs(value) < 1e30 else 1.0
        if value and abs(value) < 1e30:
            yield -value
    elif isinstance(value, str):
        yield f"{value}s"


def _dims(source: Source, node: ast.AST) -> Iterator[Change]:
    if _is_dim(source, node):
        new = ast.Constant(1 if _number(node) == 0 else 0)
        yield node, [source.in_place_of(node, new)]
        if _number(node) != -1:
            yield node, [source.in_place_of(node, _literal(-1))]
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "keepdim" and isinstance(keyword.value, ast.Constant):
                new = ast.Constant(not keyword.value.value)
                yield keyword.value, [source.in_place_of(keyword.value, new)]


def _shapes(source: Source, node: ast.AST) -> Iterator[Change]:
    # A transposition is the same one either way.
    if (
        isinstance(node, ast.Call)
        and called(node) in _SHAPED
        and len(node.args) >= 2
        and called(node) != "transpose"
        and not any(isinstance(arg, ast.Starred) for arg in node.args)
    ):
        args = [node.args[1], node.args[0], *node.args[2:]]
        yield node, [source.in_place_of(node, changed(node, args=args))]
    if (
        isinstance(node, ast.Call)
        and called(node) in ("transpose", "permute", "t", "flip")
        and isinstance(node.func, ast.Attribute)
        and not is_of_module(node.func)
    ):
        yield node, [source.in_place_of(node, node.func.value)]
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node, [source.in_place_of(node, node.value)]


def _slices(source: Source, node: ast.AST) -> Iterator[Change]:
    new: ast.expr
    if isinstance(node, ast.Slice):
        for name in ("lower", "upper"):
            end = getattr(node, name)
            if end is not None:
                for more in (ast.Add(), ast.Sub()):
                    new = ast.BinOp(end, more, ast.Constant(1))
                    yield node, [Edit(*source.span(node), ast.unparse(_sliced(node, name, new)))]
            elif name == "lower":
                new_slice = _sliced(node, name, ast.Constant(1))
                yield node, [Edit(*source.span(node), ast.unparse(new_slice))]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        number = _number(node.slice)
        if number is not None:
            new = ast.Constant(0) if number == -1 else _literal(number + 1)
            yield node, [source.in_place_of(node, changed(node, slice=new))]


def _dtypes(source: Source, node: ast.AST) -> Iterator[Change]:
    if (
        isinstance(node, ast.Attribute)
        and node.attr in _DTYPES
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
    ):
        yield node, [source.in_place_of(node, changed(node, attr=_DTYPES[node.attr]))]
    method = _method(node)
    if method is not None and method.func.attr in _CASTS:
        if method.func.attr in _DTYPES and not method.args:
            func = changed(method.func, attr=_DTYPES[method.func.attr])
            yield method, [source.in_place_of(method, changed(method, func=func))]
        yield method, [source.in_place_of(method, method.func.value)]


def _masks(source: Source, node: ast.AST) -> Iterator[Change]:
    name = called(node)
    if not isinstance(node, ast.Call) or name not in _MASKED:
        return
    func = node.func
    if name in ("tril", "triu"):
        other = "triu" if name == "tril" else "tril"
        yield node, [source.in_place_of(node, changed(node, func=_named(func, other)))]
        return
    if name == "where" and is_of_module(func) and len(node.args) == 3:
        test, one, other_one = node.args
        yield node, [source.in_place_of(node, changed(node, args=[test, other_one, one]))]
        yield node, [source.in_place_of(node, one)]
        yield node, [source.in_place_of(node, other_one)]
    elif isinstance(func, ast.Attribute) and not is_of_module(func) and len(node.args) == 2:
        mask = ast.UnaryOp(ast.Invert(), node.args[0])
        yield node, [source.in_place_of(node, changed(node, args=[mask, node.args[1]]))]
        yield node, [source.in_place_of(node, func.value)]


def _in_place(source: Source, node: ast.AST) -> Iterator[Change]:
    method = _method(node)
    if method is not None and method.func.attr.endswith("_") and method.func.attr[:-1].isalpha():
        func = changed(method.func, attr=method.func.attr[:-1])
        yield method, [source.in_place_of(method, changed(method, func=func))]
    elif method is not None and method.func.attr in _HAVE_IN_PLACE and _is_held(method.func):
        func = changed(method.func, attr=f"{method.func.attr}_")
        yield method, [source.in_place_of(method, changed(method, func=func))]
    if isinstance(node, ast.AugAssign):
        loaded = changed(node.target, ctx=ast.Load())
        new = ast.Assign([node.target], ast.BinOp(loaded, node.op, node.value))
        yield node, [_statement(source, node, new)]
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if (
            isinstance(value, ast.BinOp)
            and isinstance(target, (ast.Name, ast.Attribute))
            and ast.unparse(value.left) == ast.unparse(target)
        ):
            new_step = ast.AugAssign(target, value.op, value.right)
            yield node, [_statement(source, node, new_step)]


def _is_held(func: ast.Attribute) -> bool:
    """What was just computed nobody else sees."""
    return isinstance(func.value, (ast.Name, ast.Attribute, ast.Subscript))


_HAVE_IN_PLACE = ("add", "mul", "sub", "div", "clamp", "relu", "neg", "exp", "sqrt", "sigmoid")


def _gradients(source: Source, node: ast.AST) -> Iterator[Change]:
    method = _method(node)
    if method is not None and method.func.attr == "detach":
        yield method, [source.in_place_of(method, method.func.value)]
    elif (
        method is not None and method.func.attr in _REDUCED and not _has_gradient_cut(source, node)
    ):
        detached = ast.Call(ast.Attribute(method, "detach", ast.Load()), [], [])
        yield method, [source.in_place_of(method, detached)]
    if isinstance(node, ast.Attribute) and node.attr in _GRADIENTS:
        yield node, [source.in_place_of(node, changed(node, attr=_GRADIENTS[node.attr]))]
    if isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
        detached = ast.Call(ast.Attribute(node.value.left, "detach", ast.Load()), [], [])
        if isinstance(node.value.left, (ast.Call, ast.Name)):
            new = changed(node.value, left=detached)
            yield node, [source.in_place_of(node.value, new)]


def _checks(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, (ast.Raise, ast.Assert)):
        yield node, [Edit(*source.span(node), "pass")]
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield node, [source.in_place_of(node.type, ast.Name("ZeroDivisionError", ast.Load()))]


def _defaults(source: Source, node: ast.AST) -> Iterator[Change]:
    """Of parameters: numbers, truths and None."""
    if not isinstance(node, (ast.arguments, ast.Constant)):
        return
    parent = source.parents.get(node)
    if isinstance(node, ast.Constant) and isinstance(parent, ast.arguments):
        for value in _other_constants(node.value):
            yield node, [source.in_place_of(node, ast.Constant(value))]


def _states(source: Source, node: ast.AST) -> Iterator[Change]:
    """What is kept on objects: not written, written twice, written before what comes before it."""
    if not _is_update(node):
        return
    yield node, [Edit(*source.span(node), "pass")]
    if isinstance(node, (ast.AugAssign, ast.Expr)):
        segment = source.segment(node)
        if "\n" not in segment and not _is_set_once(node):
            yield node, [Edit(*source.span(node), f"{segment}; {segment}")]
    before = _before(source, node)
    if before is not None and _depend(before, node):
        yield node, _swapped(source, before, node)


def _statements(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, _SIMPLE) and not _is_update(node):
        is_first = isinstance(node, ast.Assign) and _is_first(source, node)
        if not is_first:
            yield node, [Edit(*source.span(node), "pass")]
        before = _before(source, node)
        if before is not None and _depend(before, node):
            yield node, _swapped(source, before, node)
    elif isinstance(node, (ast.Break, ast.Continue)):
        other = "continue" if isinstance(node, ast.Break) else "break"
        yield node, [Edit(*source.span(node), other)]
    elif isinstance(node, ast.If) and not node.orelse:
        yield node, [source.in_place_of(node.test, ast.Constant(True))]
        yield node, [source.in_place_of(node.test, ast.Constant(False))]


def _arguments(source: Source, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Call) or called(node) in _SHAPED:
        return
    args = node.args
    starred = any(isinstance(arg, ast.Starred) for arg in args)
    if (
        len(args) >= 2
        and not starred
        and ast.dump(args[0]) != ast.dump(args[1])
        and called(node) != "where"
    ):
        swapped = [args[1], args[0], *args[2:]]
        yield node, [source.in_place_of(node, changed(node, args=swapped))]
    if node.keywords and node.keywords[-1].arg not in (None, "backend", "fullgraph"):
        yield node, [source.in_place_of(node, changed(node, keywords=node.keywords[:-1]))]


def _reductions(source: Source, node: ast.AST) -> Iterator[Change]:
    name = called(node)
    if isinstance(node, ast.Call) and name in _REDUCED:
        if isinstance(node.func, ast.Name) and name not in ("max", "min", "any", "all"):
            return
        new = changed(node, func=_named(node.func, _REDUCED[name]))
        yield node, [source.in_place_of(node, new)]


def _functions(source: Source, node: ast.AST) -> Iterator[Change]:
    name = called(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if name in _FUNCTIONS:
        new = changed(node, func=_named(node.func, _FUNCTIONS[name]))
        yield node, [source.in_place_of(node, new)]
    if name == "softmax":
        kept = node.args[:1] if is_of_module(node.func) else []
        new = ast.Call(_named(node.func, "sigmoid"), kept, [])
        yield node, [source.in_place_of(node, new)]


def _copies(source: Source, node: ast.AST) -> Iterator[Change]:
    method = _method(node)
    if method is not None and method.func.attr in _COPIED and not method.args:
        yield method, [source.in_place_of(method, method.func.value)]
    elif (
        isinstance(node, ast.Call)
        and called(node) in ("list", "dict", "tuple", "clone")
        and len(node.args) == 1
    ):
        yield node, [source.in_place_of(node, node.args[0])]


def _dropout(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and "dropout" in called(node).lower():
        for given in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if isinstance(given, ast.Constant) and type(given.value) is float:
                new = ast.Constant(given.value / 2 if given.value else 0.5)
                yield given, [source.in_place_of(given, new)]
            elif isinstance(given, ast.Attribute) and given.attr == "training":
                yield given, [source.in_place_of(given, ast.Constant(True))]
                yield given, [source.in_place_of(given, ast.Constant(False))]


def _returns(source: Source, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Return) or node.value is None:
        return
    value = node.value
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) > 1:
        swapped = [value.elts[1], value.elts[0], *value.elts[2:]]
        yield node, [source.in_place_of(value, changed(value, elts=swapped))]
        yield node, [source.in_place_of(value, changed(value, elts=value.elts[:-1]))]
    elif isinstance(value, ast.Dict) and len(value.keys) > 1:
        values = [value.values[1], value.values[0], *value.values[2:]]
        yield node, [source.in_place_of(value, changed(value, values=values))]
    elif isinstance(value, ast.Name):
        copied = ast.Call(ast.Attribute(value, "clone", ast.Load()), [], [])
        yield node, [source.in_place_of(value, copied)]


OPERATORS: dict[str, Maker] = {
    "arithmetic": _arithmetic,
    "comparisons": _comparisons,
    "logic": _logic,
    "constants": _constants,
    "dims": _dims,
    "shapes": _shapes,
    "slices": _slices,
    "dtypes": _dtypes,
    "masks": _masks,
    "in place": _in_place,
    "gradients": _gradients,
    "checks": _checks,
    "defaults": _defaults,
    "state": _states,
    "statements": _statements,
    "arguments": _arguments,
    "reductions": _reductions,
    "functions": _functions,
    "copies": _copies,
    "dropout": _dropout,
    "returns": _returns,
}


class _Method(ast.Call):
    """A call of a method of a value: what is called is an attribute."""

    func: ast.Attribute


def _method(node: ast.AST) -> _Method | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and not is_of_module(node.func)
    ):
        return node  # type: ignore[return-value]
    return None


def _statement(source: Source, node: ast.AST, new: ast.stmt) -> Edit:
    return Edit(*source.span(node), ast.unparse(ast.fix_missing_locations(new)))


def _not(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _sliced(node: ast.Slice, name: str, new: ast.expr) -> ast.AST:
    return changed(node, **{name: new})


def _named(func: ast.expr, name: str) -> ast.expr:
    if isinstance(func, ast.Attribute):
        return changed(func, attr=name)
    return ast.Name(name, ast.Load())


def _number(node: ast.AST | None) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return -inner if inner is not None else None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _literal(number: int) -> ast.expr:
    if number < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-number))
    return ast.Constant(number)


def _is_dim(source: Source, node: ast.AST) -> bool:
    """The outermost node of a number that says which dimension is meant."""
    parent = source.parents.get(node)
    if _number(node) is None:
        return False
    if isinstance(parent, ast.keyword):
        return parent.arg in _DIMS
    if isinstance(parent, ast.Call) and called(parent) in _BY_DIM and node in parent.args:
        at = parent.args.index(node)
        return at == (1 if is_of_module(parent.func) else _BY_DIM[called(parent)])
    return False


def _is_special(source: Source, node: ast.Constant) -> bool:
    """Another operator is about it."""
    parent = source.parents.get(node)
    if isinstance(parent, (ast.arguments, ast.Expr)):
        return True
    if isinstance(parent, ast.keyword) and parent.arg in (*_DIMS, "keepdim", "backend"):
        return True
    if isinstance(parent, ast.UnaryOp) and _is_dim(source, parent):
        return True
    if isinstance(parent, (ast.Subscript, ast.Slice)):
        return True
    return _is_dim(source, node)


def _is_update(node: ast.AST) -> bool:
    """`self.count += 1`, `self.seen.append(x)`, `cache[key] = x`"""
    if isinstance(node, ast.Assign):
        return any(isinstance(each, (ast.Attribute, ast.Subscript)) for each in node.targets)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, (ast.Attribute, ast.Subscript))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        func = node.value.func
        return isinstance(func, ast.Attribute) and not is_of_module(func)
    return False


def _before(source: Source, node: ast.AST) -> ast.stmt | None:
    parent = source.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            at = block.index(node)
            return block[at - 1] if at else None
    return None


def _depend(one: ast.stmt, other: ast.AST) -> bool:
    """Does one of them read or write what the other writes? Else their order says nothing."""
    if not isinstance(one, _SIMPLE) or is_text(one):
        return False
    return bool(_writes(one) & _named_in(other) or _writes(other) & _named_in(one))


def _is_set_once(node: ast.AST) -> bool:
    """`super().__init__()`, `self.register_buffer(...)`: neither twice nor in another order does it
    do anything else."""
    return isinstance(node, ast.Expr) and called(node.value) in _SET_ONCE


_SET_ONCE = ("__init__", "register_buffer", "register_parameter", "add_module", "eval", "train")


def _writes(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Expr):
        func = node.value.func if isinstance(node.value, ast.Call) else None
        written = isinstance(func, ast.Attribute) and not _is_set_once(node)
        return {ast.unparse(func.value)} if written else set()  # type: ignore[union-attr]
    return {
        ast.unparse(each)
        for each in ast.walk(node)
        if _is_stored(each) and isinstance(each, (ast.Name, ast.Attribute))
    }


def _named_in(node: ast.AST) -> set[str]:
    return {ast.unparse(e) for e in ast.walk(node) if isinstance(e, (ast.Name, ast.Attribute))}


def _is_compared(test: ast.expr) -> bool:
    """Another operator turns it."""
    return isinstance(test, ast.Compare) and len(test.ops) == 1


def _swapped(source: Source, one: ast.AST, other: ast.AST) -> list[Edit]:
    return [
        Edit(*source.span(one), source.segment(other)),
        Edit(*source.span(other), source.segment(one)),
    ]


def _is_first(source: Source, node: ast.Assign) -> bool:
    """Would the name be unknown without it? Then dropping it says nothing."""
    names = {each.id for each in ast.walk(node) if _is_stored(each) and isinstance(each, ast.Name)}
    function = next((each for each in source.above(node) if isinstance(each, Functions)), None)
    if function is None:
        return True
    known = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    for each in ast.walk(function):
        if _is_stored(each) and isinstance(each, ast.Name) and each.lineno < node.lineno:
            known.add(each.id)
    return not names & known


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


_DIFFERENTIABLE = frozenset(_REDUCED) - {"any", "all", "argmax", "argmin"}
_CUTS = ("item", "detach", "tolist", "numpy", "float", "int", "bool", "print")


def _has_gradient_cut(source: Source, node: ast.AST) -> bool:
    """Gradients do not flow through a truth, nor where they are cut already."""
    if "detach" in ast.unparse(node):
        return True
    below = node
    for each in source.above(node):
        if isinstance(each, ast.Compare) or called(each) in _CUTS:
            return True
        if isinstance(each, (ast.If, ast.While, ast.IfExp)) and below is each.test:
            return True
        below = each
    return False
