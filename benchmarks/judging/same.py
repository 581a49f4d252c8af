"""Rewrites of a program that are the same by construction. `REWRITES` has the kinds.

Each is right whatever the values are, or it is not made: where it takes a type, only an expression
that can be nothing else has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
)

_OF_TENSORS = ("sin", "cos", "tanh", "sigmoid", "relu", "exp", "softmax", "log_softmax", "neg")
"""Methods that nothing else has, and functions of torch that give a tensor."""
_UNARY = ("sin", "cos", "tanh", "sigmoid", "relu", "exp")
_AS_FUNCTION = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_BY_KEYWORD = {
    **dict.fromkeys(("softmax", "log_softmax", "cat", "stack", "argmax", "argmin"), "dim"),
    **dict.fromkeys(("cumsum", "unsqueeze", "unbind"), "dim"),
}
_TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
_FREE = ("kept_here", "same_as_before", "made_first")


def rewrites(text: str) -> list[Written]:
    if any(name in text for name in _FREE):
        return []
    return each_change(Source(text), _is_wanted, REWRITES)


def _is_wanted(source: Source, node: ast.AST) -> bool:
    if isinstance(node, ast.arguments) or not hasattr(node, "lineno"):
        return False
    above = list(source.above(node))
    if any(isinstance(each, (ast.JoinedStr, ast.arg, ast.Lambda)) for each in above):
        return False
    if any(isinstance(each, _LOOPS) for each in above):
        return False
    functions = [each for each in (node, *above) if isinstance(each, Functions)]
    if any(node is mark or mark in above for each in functions for mark in each.decorator_list):
        return False
    return bool(functions) and not any(_looks_at_itself(each) for each in functions)


_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _looks_at_itself(function: ast.AST) -> bool:
    names = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
    return bool(names & {"locals", "vars", "eval", "exec", "inspect", "dir", "globals"})


def _renamed_locals(source: Source, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, Functions) or _has_inner(node):
        return
    given = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    if any(_in_text(source, each) for each in names):
        return
    others = [each for each in ast.walk(node) if isinstance(each, _OTHER_NAMES)]
    if others:
        return
    stored = dict.fromkeys(each.id for each in names if isinstance(each.ctx, ast.Store))
    for name in stored:
        if name not in given:
            mine = [each for each in names if each.id == name]
            yield mine[0], [Edit(*source.span(each), f"{name}_kept_here") for each in mine]


_OTHER_NAMES = (ast.Global, ast.Nonlocal, ast.ExceptHandler, ast.Import, ast.ImportFrom, ast.Delete)
_MATCHES = (ast.Match,)


def _temporaries(source: Source, node: ast.AST) -> Iterator[Change]:
    """The left side first, as Python does."""
    if isinstance(node, (ast.Assign, ast.Return)) and isinstance(node.value, ast.BinOp):
        if not _stands_alone(source, node):
            return
        left = node.value.left
        if isinstance(left, (ast.Constant, ast.Name)):
            return
        if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name):
            return
        first = f"made_first = {ast.unparse(left)}\n{_indent(node)}"
        new = changed(node.value, left=ast.Name("made_first", ast.Load()))
        yield (
            node,
            [
                Edit(source.span(node)[0], source.span(node)[0], first),
                Edit(*source.span(node.value), ast.unparse(new)),
            ],
        )


def _returned_by_name(source: Source, node: ast.AST) -> Iterator[Change]:
    if (
        isinstance(node, ast.Return)
        and _stands_alone(source, node)
        and node.value is not None
        and not isinstance(node.value, (ast.Name, ast.Constant))
    ):
        segment = source.segment(node.value)
        if "\n" not in segment:
            words = f"made_first = {segment}\n{_indent(node)}return made_first"
            yield node, [Edit(*source.span(node), words)]


def _torch_functions(source: Source, node: ast.AST) -> Iterator[Change]:
    """`a + b` -> `torch.add(a, b)`"""
    if not isinstance(node, ast.BinOp) or type(node.op) not in _AS_FUNCTION:
        return
    if _is_tensor(node.left) and (_is_tensor(node.right) or _is_number(node.right)):
        call = _torch(_AS_FUNCTION[type(node.op)], [node.left, node.right])
        yield node, [source.in_place_of(node, call)]


def _methods(source: Source, node: ast.AST) -> Iterator[Change]:
    """`x.sin()` -> `torch.sin(x)`, and back"""
    if not isinstance(node, ast.Call) or called(node) not in _UNARY or node.keywords:
        return
    func = node.func
    if not isinstance(func, ast.Attribute):
        return
    if isinstance(func.value, ast.Name) and func.value.id == "torch" and len(node.args) == 1:
        if not isinstance(node.args[0], (ast.Starred, ast.Constant)):
            inner = ast.Attribute(node.args[0], func.attr, ast.Load())
            yield node, [source.in_place_of(node, ast.Call(inner, [], []))]
    elif not is_of_module(func) and not node.args and _is_made_of_names(func.value):
        yield node, [source.in_place_of(node, _torch(func.attr, [func.value]))]


def _helpers(source: Source, node: ast.AST) -> Iterator[Change]:
    """What is returned comes from a function within."""
    if isinstance(node, ast.Return) and _stands_alone(source, node) and node.value is not None:
        inside = [type(each) for each in ast.walk(node.value)]
        if not set(inside) & {ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr}:
            if "super" in ast.unparse(node) or isinstance(node.value, (ast.Name, ast.Constant)):
                return
            step = _indent(node)
            helper = f"def same_as_before():\n{step}    return {ast.unparse(node.value)}\n{step}"
            helper += "return same_as_before()"
            yield node, [Edit(*source.span(node), helper)]


def _turned_ifs(source: Source, node: ast.AST) -> Iterator[Change]:
    """`if not c: B else: A`"""
    if isinstance(node, ast.If) and node.orelse and _stands_alone(source, node):
        is_elif = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
        if is_elif or _is_elif(source, node):
            return
        new = ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
        yield node, [_block(source, node, new)]
    elif isinstance(node, ast.IfExp):
        other = ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
        yield node, [source.in_place_of(node, other)]


def _nested_elifs(source: Source, node: ast.AST) -> Iterator[Change]:
    if (
        isinstance(node, ast.If)
        and not _is_elif(source, node)
        and _stands_alone(source, node)
        and len(node.orelse) == 1
        and isinstance(node.orelse[0], ast.If)
    ):
        text = ast.unparse(changed(node, orelse=[])) + "\nelse:\n"
        inner = ast.unparse(node.orelse[0])
        text += "\n".join(f"    {line}" for line in inner.splitlines())
        yield node, [Edit(*source.span(node), _indented(text, node))]


def _chosen_by_statement(source: Source, node: ast.AST) -> Iterator[Change]:
    """`y = a if c else b`"""
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.IfExp)
        and isinstance(node.targets[0], ast.Name)
        and _stands_alone(source, node)
    ):
        chosen = node.value
        new = ast.If(
            chosen.test,
            [ast.Assign(node.targets, chosen.body)],
            [ast.Assign(node.targets, chosen.orelse)],
        )
        yield node, [_block(source, node, new)]


def _formatted(source: Source, node: ast.AST) -> Iterator[Change]:
    """`print(a, b)` -> `print(f"{a!s} {b!s}")`"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        plain = not node.keywords and node.args
        if plain and all(isinstance(arg, (ast.Name, ast.Attribute)) for arg in node.args):
            inner = " ".join(f"{{{ast.unparse(arg)}!s}}" for arg in node.args)
            yield node, [Edit(*source.span(node), f'print(f"{inner}")')]


def _reordered(source: Source, node: ast.AST) -> Iterator[Change]:
    """Two names that know nothing of each other, of what cannot fail."""
    parent = source.parents.get(node)
    body = getattr(parent, "body", None)
    if not isinstance(node, ast.Assign) or not isinstance(body, list) or node not in body:
        return
    at = body.index(node)
    before = body[at - 1] if at else None
    if isinstance(before, ast.Assign) and _is_plain(before) and _is_plain(node):
        one, other = ast.unparse(before.targets[0]), ast.unparse(node.targets[0])
        names = [{n.id for n in ast.walk(e) if isinstance(n, ast.Name)} for e in (before, node)]
        if one not in names[1] and other not in names[0]:
            yield (
                node,
                [
                    Edit(*source.span(before), source.segment(node)),
                    Edit(*source.span(node), source.segment(before)),
                ],
            )


def _keywords(source: Source, node: ast.AST) -> Iterator[Change]:
    """`torch.softmax(x, -1)` -> `torch.softmax(x, dim=-1)`, and arguments of functions here"""
    if not isinstance(node, ast.Call) or not node.args:
        return
    if any(isinstance(arg, ast.Starred) for arg in node.args) or node.keywords:
        return
    name, at = called(node), len(node.args) - 1
    func = node.func
    if isinstance(func, ast.Attribute) and name in _BY_KEYWORD:
        of_torch = isinstance(func.value, ast.Name) and func.value.id == "torch"
        if at == (1 if of_torch else 0) and (of_torch or name in _OF_TENSORS):
            yield node, [_by_keyword(source, node, _BY_KEYWORD[name])]
    elif isinstance(func, ast.Name):
        known = [f for f in source.tree.body if isinstance(f, Functions) and f.name == name]
        if len(known) == 1 and not known[0].decorator_list:
            given = known[0].args
            plain = not (given.vararg or given.kwarg or given.posonlyargs)
            if plain and at < len(given.args) and _is_bound_once(source, name):
                yield node, [_by_keyword(source, node, given.args[at].arg)]


def _unpacked(source: Source, node: ast.AST) -> Iterator[Change]:
    """`a, b = x` -> `[a, b] = x`"""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        target = node.targets[0]
        if len(node.targets) == 1:
            inner = ", ".join(ast.unparse(each) for each in target.elts)
            yield node, [Edit(*source.span(target), f"[{inner}]")]


def _asserted(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Assert) and _stands_alone(source, node):
        error = ast.Call(
            ast.Name("AssertionError", ast.Load()), [node.msg] if node.msg is not None else [], []
        )
        new = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Raise(error)], [])
        yield node, [_block(source, node, new)]


def _turned_comparisons(source: Source, node: ast.AST) -> Iterator[Change]:
    """`a < b` -> `b > a`, of names and numbers"""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
        left, right = node.left, node.comparators[0]
        if all(isinstance(each, (ast.Name, ast.Constant)) for each in (left, right)):
            new = ast.Compare(right, [_TURNED[type(node.ops[0])]()], [left])
            yield node, [source.in_place_of(node, new)]


def _ranges(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and called(node) == "range" and len(node.args) == 1:
        new = changed(node, args=[ast.Constant(0), node.args[0]])
        yield node, [source.in_place_of(node, new)]


def _annotated(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Name) and not _is_global(source, node, target.id):
            words = f"{target.id}: object"
            yield node, [Edit(*source.span(target), words)]


def _reshaped(source: Source, node: ast.AST) -> Iterator[Change]:
    """Where a view is possible, `reshape` gives it."""
    if (
        isinstance(node, ast.Call)
        and called(node) == "view"
        and isinstance(node.func, ast.Attribute)
    ):
        by_type = any(isinstance(arg, ast.Attribute) for arg in node.args)
        if not by_type and not is_of_module(node.func) and _is_contiguous(node.func.value):
            func = changed(node.func, attr="reshape")
            yield node, [source.in_place_of(node, changed(node, func=func))]


def _moved_methods(source: Source, node: ast.AST) -> Iterator[Change]:
    """Two methods of a class, in the other order"""
    parent = source.parents.get(node)
    if not isinstance(node, ast.FunctionDef) or not isinstance(parent, ast.ClassDef):
        return
    at = parent.body.index(node)
    before = parent.body[at - 1] if at else None
    plain = isinstance(before, ast.FunctionDef) and not before.decorator_list
    if (
        plain
        and isinstance(before, ast.FunctionDef)
        and not node.decorator_list
        and before.name != node.name
        and not before.args.defaults
        and not node.args.defaults
    ):
        yield (
            node,
            [
                Edit(*source.span(before), source.segment(node)),
                Edit(*source.span(node), source.segment(before)),
            ],
        )


def _in_brackets(source: Source, node: ast.AST) -> Iterator[Change]:
    """`if c` -> `if not not c`"""
    if isinstance(node, ast.If) and not isinstance(node.test, ast.UnaryOp):
        twice = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node.test))
        yield node, [source.in_place_of(node.test, twice)]


REWRITES: dict[str, Maker] = {
    "renamed locals": _renamed_locals,
    "temporaries": _temporaries,
    "returned by name": _returned_by_name,
    "torch functions": _torch_functions,
    "methods": _methods,
    "helpers": _helpers,
    "turned ifs": _turned_ifs,
    "nested elifs": _nested_elifs,
    "statements for choices": _chosen_by_statement,
    "f-strings": _formatted,
    "reordered": _reordered,
    "keywords": _keywords,
    "lists for tuples": _unpacked,
    "asserts": _asserted,
    "turned comparisons": _turned_comparisons,
    "ranges": _ranges,
    "annotations": _annotated,
    "reshape for view": _reshaped,
    "moved methods": _moved_methods,
    "double negations": _in_brackets,
}


def _has_inner(function: ast.AST) -> bool:
    inner = (*Functions, ast.Lambda, ast.ClassDef, *_LOOPS, *_MATCHES)
    return any(isinstance(each, inner) for each in ast.walk(function) if each is not function)


def _in_text(source: Source, node: ast.AST) -> bool:
    """Its place is not known within an f-string (Python before 3.12)."""
    return any(isinstance(each, ast.JoinedStr) for each in source.above(node))


def _stands_alone(source: Source, node: ast.AST) -> bool:
    """On lines of its own."""
    begin, end = source.span(node)
    row = source.text.encode()
    first, last = row.rfind(b"\n", 0, begin) + 1, row.find(b"\n", end)
    after = row[end : last if last >= 0 else None].strip()
    return not row[first:begin].strip() and (not after or after.startswith(b"#"))


def _indent(node: ast.AST) -> str:
    return " " * int(getattr(node, "col_offset", 0))


def _indented(text: str, node: ast.AST) -> str:
    first, *rest = text.splitlines()
    return "\n".join([first, *(_indent(node) + line for line in rest)])


def _block(source: Source, node: ast.AST, new: ast.stmt) -> Edit:
    text = ast.unparse(ast.fix_missing_locations(new))
    return Edit(*source.span(node), _indented(text, node))


def _is_elif(source: Source, node: ast.If) -> bool:
    parent = source.parents.get(node)
    return isinstance(parent, ast.If) and parent.orelse == [node]


def _torch(name: str, args: list[ast.expr]) -> ast.Call:
    func = ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())
    return ast.Call(func, args, [])


def _is_tensor(node: ast.expr) -> bool:
    """Whatever the values are?"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        known = called(node) in _OF_TENSORS
        return known and (of_torch or not is_of_module(node.func))
    if isinstance(node, ast.BinOp) and type(node.op) in _AS_FUNCTION:
        sides = (node.left, node.right)
        return any(map(_is_tensor, sides)) and all(_is_tensor(s) or _is_number(s) for s in sides)
    return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_made_of_names(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.BinOp, ast.Call))


def _is_contiguous(node: ast.expr) -> bool:
    """Just made: `self.qkv(x).view(...)`"""
    return isinstance(node, ast.Call) and called(node) not in _VIEWS


_VIEWS = ("transpose", "permute", "t", "expand", "unbind", "chunk", "split", "view", "narrow")


def _is_plain(node: ast.Assign) -> bool:
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return False
    value = node.value
    if isinstance(value, ast.Call) and called(value) in _UNARY and not value.keywords:
        func = value.func
        if isinstance(func, ast.Attribute) and not value.args:
            return isinstance(func.value, ast.Name)
        return len(value.args) == 1 and isinstance(value.args[0], ast.Name)
    return isinstance(value, ast.Constant)


def _by_keyword(source: Source, node: ast.Call, name: str) -> Edit:
    *args, last = node.args
    return source.in_place_of(node, changed(node, args=args, keywords=[ast.keyword(name, last)]))


def _is_bound_once(source: Source, name: str) -> bool:
    bound = [
        each
        for each in ast.walk(source.tree)
        if (isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store))
        or (isinstance(each, (*Functions, ast.ClassDef)) and each.name == name)
        or (isinstance(each, ast.arg) and each.arg == name)
        or (isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names)
    ]
    return len(bound) == 1


def _is_global(source: Source, node: ast.AST, name: str) -> bool:
    """An annotated name may not be declared `global`."""
    function = next((each for each in source.above(node) if isinstance(each, Functions)), None)
    inner = ast.walk(function) if function is not None else ()
    return function is None or any(
        isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names for each in inner
    )
