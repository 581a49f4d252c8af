"""A statement made an operator of its own: a graph may hold it, and it runs where it stood.

`torch.library.custom_op` with an ordered effect: torch 2.13 keeps it, in its place among the others
of its kind, with the backends eager, aot_eager and inductor, also where it gives nothing back. What
it is handed must be tensors, numbers and texts; all else it takes from the module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.bindings import is_of_module
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.module_state import is_changed, is_rebound
from compilescope.fixes.source.operator_types import annotation
from compilescope.fixes.source.replacing import replaced
from compilescope.fixes.subject import Subject


def outline(
    subject: Subject,
    edit: Edit,
    call: cst.Call | cst.If,
    verb: str,
    numbers: frozenset[str] = frozenset(),
) -> None:
    """Put the call, or an `if` that only writes, into an operator above its function, and a call
    of that in its place. `numbers` are names that now hold a tensor, of which the call wants
    the number. Raises `Refused` where it needs what no operator can be handed."""
    torch = edit.module_name("torch")
    needed = _Needed(subject.module, call, _step)
    kinds = [
        f"{torch}.Tensor" if each in numbers else annotation(subject, node, torch)
        for each, node in zip(needed.names, needed.values, strict=True)
    ]
    for node, new in needed.new_names.items():
        needed.new_names[node] = f"{new}.item()" if new in numbers else new
    name = _operator_name(subject.module, call, verb)
    stem = re.sub(r"\W", "_", Path(subject.module.path).stem)
    params = ", ".join(f"{each}: {kind}" for each, kind in zip(needed.names, kinds, strict=True))
    text = f"""
        @{torch}.library.custom_op("{stem}::{name}", mutates_args=())
        def {name}({params}) -> None:
            pass


        {name}.register_fake(lambda {", ".join(needed.names)}: None)
        {name}.register_effect({torch}._library.effects.EffectType.ORDERED)
    """
    _move(edit, call, needed, text.replace("lambda : ", "lambda: "))


def outline_constant(edit: Edit, call: cst.Call, verb: str) -> None:
    """The same as a plain function that Dynamo calls itself, while it traces. What it is handed
    must be known by then."""
    needed = _Needed(edit.module, call, _chain)
    name = _operator_name(edit.module, call, verb)
    text = f"""
        @{edit.module_name("torch")}.compiler.assume_constant_result
        def {name}({", ".join(needed.names)}):
            pass
    """
    _move(edit, call, needed, text)


def _move(edit: Edit, call: cst.Call | cst.If, needed: _Needed, text: str) -> None:
    """The call into the body of the function that `text` begins with, which goes above."""
    made = edit.statements(text)
    renamed = replaced(
        call, {node: edit.expression(text) for node, text in needed.new_names.items()}
    )
    function = made[0]
    assert isinstance(function, cst.FunctionDef)
    line: cst.BaseStatement
    if isinstance(renamed, cst.If):
        line = renamed.with_changes(leading_lines=())
    else:
        assert isinstance(renamed, cst.BaseExpression)
        line = cst.SimpleStatementLine([cst.Expr(renamed)])
    blank = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    made[0] = function.with_deep_changes(function.body, body=[line]).with_changes(
        leading_lines=blank
    )
    # After the statement above its own, so that comments stay with what they are about.
    module = edit.module
    top = next(each for each in module.ancestors(call) if module.parent(each) is module.tree)
    body = list(module.tree.body)
    place = next(i for i, each in enumerate(body) if each is top)
    if place == 0:
        raise Refused("the function is at the very top of its file")
    previous = body[place - 1]
    assert isinstance(previous, cst.BaseStatement)
    edit.put_after(previous, made)
    passed = ", ".join(module.code(node) for node in needed.values)
    new = f"{function.name.value}({passed})"
    if isinstance(call, cst.If):
        edit.replace_statement(call, new)
    else:
        edit.replace(call, edit.expression(new))


class _Needed:
    """What a call reads of its function, and the names that its new home has for it."""

    def __init__(
        self,
        module: SourceModule,
        call: cst.Call | cst.If,
        whole: Callable[[SourceModule, cst.Name], cst.BaseExpression],
    ) -> None:
        self.names: list[str] = []
        self.values: list[cst.BaseExpression] = []
        self.new_names: dict[cst.CSTNode, str] = {}
        texts: dict[str, str] = {}
        for node in module.walk(call):
            if isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)):
                raise Refused("it assigns or waits inside the call")
            if not isinstance(node, cst.Name) or not self._is_handed(module, node, call):
                continue
            value = whole(module, node)
            text = module.code(value)
            if text not in texts:
                name = re.sub(r"\W+", "_", text).strip("_")
                if name != text and name in module.names_in(call):
                    name = module.fresh_name(name)
                texts[text] = name
                self.names.append(name)
                self.values.append(value)
            self.new_names[value] = texts[text]

    @staticmethod
    def _is_handed(module: SourceModule, node: cst.Name, call: cst.CSTNode) -> bool:
        """A local, or a global that has another value by the time the graph has ended."""
        if not module.names_in(node) or _is_attribute_name(module, node):
            return False
        if _is_bound_within(module, node, call):
            return False
        if not is_of_module(module, node) or is_rebound(module, node):
            return True
        if not _is_called(module, node) and is_changed(module, node):
            raise Refused(
                f"`{node.value}` is changed in a function, and an operator would see the "
                "change late"
            )
        return False


def _step(module: SourceModule, node: cst.Name) -> cst.BaseExpression:
    """`self.loss` for `self`: the object itself is nothing that an operator takes."""
    above = module.parent(node)
    return above if isinstance(above, cst.Attribute) and node.value in ("self", "cls") else node


def _chain(module: SourceModule, node: cst.Name) -> cst.BaseExpression:
    """`self.config.size`, `x.shape[0]`: as far as no call begins."""
    found: cst.BaseExpression = node
    for above in module.ancestors(node):
        if isinstance(above, cst.Attribute) and above.value is found:
            call = module.parent(above)
            if isinstance(call, cst.Call) and call.func is above:
                return found
        elif not (isinstance(above, cst.Subscript) and above.value is found and _is_plain(above)):
            return found
        assert isinstance(above, cst.BaseExpression)
        found = above
    return found


def _is_plain(node: cst.Subscript) -> bool:
    """With a constant in it."""
    index = node.slice[0].slice
    return (
        len(node.slice) == 1
        and isinstance(index, cst.Index)
        and isinstance(index.value, (cst.Integer, cst.SimpleString))
    )


def _is_called(module: SourceModule, node: cst.Name) -> bool:
    """`log` of `log.info(...)`."""
    found: cst.CSTNode = node
    above = module.parent(found)
    while isinstance(above, cst.Attribute) and above.value is found:
        found, above = above, module.parent(above)
    return isinstance(above, cst.Call) and above.func is found


def _is_attribute_name(module: SourceModule, node: cst.Name) -> bool:
    above = module.parent(node)
    if isinstance(above, cst.Attribute):
        return above.attr is node
    return isinstance(above, cst.Arg) and above.keyword is node


def _is_bound_within(module: SourceModule, node: cst.Name, call: cst.CSTNode) -> bool:
    """By a comprehension or a lambda inside the call."""
    scope = module.scope(node)
    if scope is None:
        return False
    inner = {id(each) for each in module.walk(call)}
    return bool(scope[node.value]) and all(
        id(getattr(each, "node", None)) in inner for each in scope[node.value]
    )


def _operator_name(module: SourceModule, call: cst.Call | cst.If, verb: str) -> str:
    """`print_in_net_forward`; numbered by its place among the calls of the function, so that two
    operators made apart from each other have two names."""
    around = [
        each for each in module.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.ClassDef))
    ]
    if not any(isinstance(each, cst.FunctionDef) for each in around):
        raise NotMeant("it is not inside a function")
    words = [each.name.value.strip("_").lower() for each in reversed(around)]
    name = re.sub(r"\W", "_", "_".join([verb, "in", *words]))
    function = next(each for each in around if isinstance(each, cst.FunctionDef))
    same = [
        each
        for each in module.walk(function)
        if isinstance(each, type(call))
        and (isinstance(each, cst.If) or isinstance(module.parent(each), cst.Expr))
    ]
    number = next((i for i, each in enumerate(same, 1) if each is call), 1)
    return module.fresh_name(name if number == 1 else f"{name}_{number}")
