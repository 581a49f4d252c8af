"""A function that fills tensors by what it reads from others, made an operator of the graph.

A mask or a table that is built in a loop over `nonzero`, an `if` for each entry: no graph can hold
that, but what comes out has sizes that do not depend on it. The sizes come from the same lines
without the loop.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import changes_in_place, is_fresh
from compilescope.knowledge.source.flow.liveness import names_read, names_set, only_value, targets
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_of_module, parameters_of, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_BUILTINS = ("range", "len", "enumerate", "zip", "min", "max", "int", "bool", "float", "tuple")
_CALLED = tuple(f"builtins.{name}" for name in _BUILTINS)
_READS = frozenset({"item", "tolist"})
_RESHAPES = frozenset(
    f"{name}_"
    for name in (
        *("resize", "resize_as", "set", "t", "transpose", "swapaxes", "swapdims", "squeeze"),
        *("unsqueeze", "requires_grad", "as_strided"),
    )
)
"""What leaves another size, or a gradient: the lines that give sizes have no such call."""
_LOOPS = kinds(lambda: (cst.For, cst.While))
_BLOCKS = kinds(lambda: (cst.For, cst.While, cst.If))
_EXACT = ("int", "bool")
_STATES = "`{0}` is an operator of the graph, which runs its lines as they are, in eager mode."


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    body = _checked_body(subject)
    last = body[-1]
    returned = _returned(module, function, last)
    kept = _sizes_only(module, body)
    edit = Edit(module)
    torch = edit.module_name("torch")
    name = function.name.value
    stem = re.sub(r"\W", "_", Path(module.path).stem)
    params = ", ".join(f"{each}: {_annotation(subject, each)}" for each in parameters_of(function))
    params = params.replace("torch.", f"{torch}.")
    result = f"{torch}.Tensor"
    if len(returned) > 1:
        result = f"tuple[{', '.join([result] * len(returned))}]"
    made = edit.statements(
        f"""
        @{torch}.library.custom_op("{stem}::{name}", mutates_args=())
        def {name}({params}) -> {result}:
            pass


        @{name}.register_fake
        def {module.fresh_name(f"{name}_sizes")}({", ".join(parameters_of(function))}):
            pass
        """
    )
    operator, sizes = (cst.ensure_type(each, cst.FunctionDef) for each in made)
    edit.replace_statement(
        function,
        [
            function.with_changes(
                leading_lines=(),
                decorators=operator.decorators,
                params=operator.params,
                returns=operator.returns,
            ),
            sizes.with_deep_changes(sizes.body, body=[_plain(each) for each in kept]).with_changes(
                leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
            ),
        ],
    )
    return Patch(edit.files(), states=_STATES.format(name))


def _plain(statement: cst.BaseStatement) -> cst.BaseStatement:
    """Without the comments above it."""
    return statement.with_changes(leading_lines=())


def _checked_body(subject: Subject) -> list[cst.BaseStatement]:
    """Of a plain function of the file. Raises `Refused` where it does more than compute, or the
    gradient could go through it."""
    module, function = subject.module, subject.function
    name = function.name.value
    if module.class_of(function) is not None or module.parent(function) is not module.tree:
        raise NotMeant("it is not a function of the file")
    if function.decorators or function.asynchronous is not None:
        raise NotMeant(f"`{name}` has a decorator or is async")
    if not any(_fills(module, each) for each in statements_of(function)):
        raise NotMeant("nothing is filled in a loop here")
    if function.params.star_kwarg is not None or isinstance(function.params.star_arg, cst.Param):
        raise Refused(f"`{name}` takes any number of arguments")
    if any(each.default is not None for each in function.params.params):
        raise Refused(f"`{name}` has default arguments")
    body = [each for each in statements_of(function) if not _is_docstring(each)]
    given = set(parameters_of(function))
    for where, changed in changes_in_place(module, function):
        method = where.func if isinstance(where, cst.Call) else None
        if isinstance(method, cst.Attribute) and method.attr.value in _RESHAPES:
            raise Refused(f"`{short(module, where)}` changes a size in place")
        if changed in given or not _is_made_here(module, function, changed):
            raise Refused(f"`{short(module, where)}` may change what it is given")
    for node in module.walk(function.body):
        if isinstance(node, cst.Call):
            _check_call(module, node)
        if isinstance(node, (cst.Raise, cst.Assert, cst.Try, cst.With, cst.Global, cst.Yield)):
            raise Refused(f"`{name}` does more than compute")
        if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.Await, cst.NamedExpr)):
            raise Refused(f"`{name}` does more than compute")
        if isinstance(node, cst.Name) and is_of_module(module, node):
            _check_global(module, node)
    return body


def _fills(module: SourceModule, statement: cst.BaseStatement) -> bool:
    return isinstance(statement, _LOOPS) and any(changes_in_place(module, statement))


def _is_made_here(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Is every value that the function gives it a new tensor, or a number?"""
    found = [
        each
        for each in module.walk(function.body)
        if not isinstance(each, cst.AugAssign)
        and any(isinstance(x, cst.Name) and x.value == name for x in targets(each))
    ]
    return bool(found) and all(
        isinstance(each, cst.Assign)
        and isinstance(each.targets[0].target, cst.Name)
        and (_is_new(module, each.value) or isinstance(each.value, (cst.Integer, cst.Float)))
        for each in found
    )


def _is_new(module: SourceModule, value: cst.CSTNode) -> bool:
    """A tensor of its own, or what is made of one: `torch.zeros(3).bool()`."""
    if is_fresh(module, value):
        return True
    func = value.func if isinstance(value, cst.Call) else None
    known = isinstance(value, cst.Call) and operator_of(module, value) is not None
    return known and isinstance(func, cst.Attribute) and _is_new(module, func.value)


def _check_call(module: SourceModule, call: cst.Call) -> None:
    if module.calls(call, *_CALLED):
        return
    name = operator_of(module, call)
    func = call.func
    if name is None and isinstance(func, cst.Attribute):
        method = func.attr.value
        if method in _READS | operators.INQUIRIES:
            return
        name = method.removesuffix("_") if method.removesuffix("_") in operators.KNOWN else None
    if name is None or name in operators.RANDOM:
        raise Refused(f"`{short(module, call)}` may do more than compute")


def _check_global(module: SourceModule, name: cst.Name) -> None:
    """A constant of the file, a module or a function: no tensor, which could need a gradient."""
    above = module.parent(name)
    if isinstance(above, cst.Attribute) or (isinstance(above, cst.Call) and above.func is name):
        return
    if name.value in ("True", "False", "None"):
        return
    given = [
        each.value
        for statement in module.tree.body
        if isinstance(statement, cst.SimpleStatementLine)
        for each in statement.body
        if isinstance(each, cst.Assign)
        and any(
            isinstance(x.target, cst.Name) and x.target.value == name.value for x in each.targets
        )
    ]
    try:
        (only,) = given
        ast.literal_eval(module.code(only))
    except ValueError:
        raise Refused(f"it is unknown what `{name.value}` holds") from None


def _is_docstring(statement: cst.BaseStatement) -> bool:
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(only, cst.Expr) and isinstance(
        only.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def _annotation(subject: Subject, name: str) -> str:
    """Raises `Refused` unless every call was seen to give it whole numbers, or a number."""
    first = statements_of(subject.function)
    lines = [subject.line, *(subject.module.line(each) for each in first)]
    seen = next((found for line in lines if (found := subject.facts(name, line))), ())
    if not seen:
        raise Refused(f"no run shows what `{name}` is")
    if all(fact.kind == "tensor" for fact in seen):
        dtypes = {fact.dtype or "" for fact in seen}
        if not all(any(word in dtype for word in _EXACT) for dtype in dtypes):
            raise Refused(f"a gradient may go through `{name}`")
        return "torch.Tensor"
    raise Refused(f"`{name}` is no tensor")


def _returned(
    module: SourceModule, function: cst.FunctionDef, last: cst.BaseStatement
) -> list[cst.BaseExpression]:
    """The tensors that the last line returns, each one that the function made."""
    ends = [each for each in module.walk(function) if isinstance(each, cst.Return)]
    at_end = isinstance(last, cst.SimpleStatementLine) and last.body[-1] in ends
    if len(ends) != 1 or not at_end or ends[0].value is None:
        raise Refused(f"`{function.name.value}` returns in several places")
    value = ends[0].value
    parts = [each.value for each in value.elements] if isinstance(value, cst.Tuple) else [value]
    roots = [_root(each) for each in parts]
    if len(set(roots)) != len(roots):
        raise Refused("two of its results may share memory")
    for part, root in zip(parts, roots, strict=True):
        made = only_value(module, function, root) if root else None
        if made is None or not _is_new(module, made):
            raise Refused(f"`{short(module, part)}` may share memory with what it is given")
    return parts


def _root(node: cst.CSTNode) -> str:
    """`mask` of `mask.to(torch.long)`."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        node = node.func.value
    return node.value if isinstance(node, cst.Name) else ""


def _sizes_only(module: SourceModule, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Those that what is returned needs, but for blocks, which may only write into it."""
    needed = names_read(module, body[-1])
    kept = [body[-1]]
    for statement in reversed(body[:-1]):
        given = set(names_set(module, statement))
        if isinstance(statement, _BLOCKS):
            if given & needed:
                raise Refused(f"what is returned depends on `{sorted(given & needed)[0]}`")
            continue
        if isinstance(statement, cst.SimpleStatementLine) and given & needed:
            needed |= names_read(module, statement)
            kept.insert(0, statement)
    return kept


FIX = Fix(
    id="function-operator",
    title="make the function an operator of the graph",
    rules=frozenset(
        {
            "dynamic-shape",
            "GB0036",
            "scalar-extraction",
            "tensor-if",
            "category/data-dependent-branch",
        }
    ),
    order=98,
    kind="source",
    why="As a custom operator the function runs as it is, in one place of the graph. It only fills "
    "tensors that it makes, so their sizes come from the same lines without the loops. Its inputs are "
    "whole numbers or bools, so no gradient goes through it.",
    propose=_propose,
    observable=True,
)
