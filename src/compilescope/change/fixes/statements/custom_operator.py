"""A statement made an operator of its own: a graph may hold it, and it runs where it stood.

`torch.library.custom_op` with an ordered effect: torch 2.13 keeps it, in its place among the others
of its kind, with the backends eager, aot_eager and inductor, also where it gives nothing back. What
it is handed must be tensors, numbers and texts; all else it takes from the module.

What functions change of a module's top level is no use to it: compiled code writes that only when a
graph has ended, so that an operator of the graph still sees what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import read_from
from compilescope.change.fixes.values.graph_values import ValueFact, graph_values
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.flow.aliasing import is_buffer
from compilescope.knowledge.source.flow.liveness import only_value, targets
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    bound_names,
    declared_names,
    is_of_module,
    is_receiver,
)
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_NOT_SHOWN = ("detach", "tolist", "numpy", "data")
_NUMBERS = {"builtins.int": "int", "builtins.float": "float", "builtins.bool": "bool"}


def annotation(subject: Subject, node: cst.BaseExpression, torch: str) -> str:
    """The type of one of the operator's parameters."""
    text = subject.module.code(node)
    seen = subject.facts(text) or subject.facts(text, subject.module.line(subject.statement))
    kinds = {_kind(fact) for fact in seen} or {_kind_as_written(subject, node)}
    if "tensor" in kinds:
        _check_shown(subject, node, seen)
    if kinds == {"tensor"}:
        return f"{torch}.Tensor"
    if kinds == {"tensor", "none"}:
        return f"{torch}.Tensor | None"
    if len(kinds) == 1 and (kind := next(iter(kinds))) in ("int", "float", "bool", "str"):
        return kind
    if not seen and isinstance(node, cst.Attribute):
        raise Refused(f"the type of `{text}` is unknown")
    raise Refused(f"`{text}` is not a tensor, number or string that an operator accepts")


def _check_shown(subject: Subject, node: cst.BaseExpression, seen: Sequence[ValueFact]) -> None:
    """A tensor that is printed whole shows its `grad_fn`, which it has not inside an operator."""
    module = subject.module
    if not _is_shown(subject, node):
        return
    history = any(fact.requires_grad for fact in seen)
    if history or (not seen and graph_values(subject.program.run).computes_grad):
        raise Refused(f"`{module.code(node)}` would be shown without its `grad_fn`")


def _is_shown(subject: Subject, node: cst.CSTNode) -> bool:
    """Is it, or a tensor that is computed from it, printed whole, and not as a number?"""
    module = subject.module
    for below in [node, *module.ancestors(node)]:
        if read_from(module, below) is not None or is_static(subject, below):
            return False
        if isinstance(below, cst.Attribute) and below.attr.value in _NOT_SHOWN:
            return False
        above = module.parent(below)
        if isinstance(above, cst.FormattedStringExpression):
            return above.format_spec is None
        if isinstance(above, cst.Arg) and output_of(module, module.parent(above)):
            return True
        if above is None or isinstance(above, cst.BaseStatement):
            return False
    return False


def _kind(fact: ValueFact) -> str:
    if fact.kind in ("tensor", "parameter"):
        return "tensor"
    if fact.kind == "number":
        return _NUMBERS.get(fact.type, "")
    if fact.kind == "text":
        return "str" if fact.type == "builtins.str" else ""
    return fact.kind if fact.kind == "none" else ""


def _kind_as_written(subject: Subject, node: cst.BaseExpression) -> str:
    """Where no run was looked at: a counter is an int, all other names are taken for tensors."""
    module = subject.module
    if not isinstance(node, cst.Name):
        return _kind_of_attribute(module, node)
    if is_receiver(module, node):
        return ""
    if is_of_module(module, node):
        return kind_of_global(module, node.value)
    value = only_value(module, subject.function, node.value)
    if value is not None and (kind := _kind_of_value(subject, value)):
        return kind
    for definition in module.scope(node)[node.value]:  # type: ignore[index]
        above = getattr(definition, "node", None)
        loop = module.around(above, cst.For) if above is not None else None
        if loop is not None and module.calls(loop.iter, "builtins.range", "builtins.enumerate"):
            counter: cst.BaseExpression = loop.target
            if isinstance(counter, cst.Tuple):
                counter = counter.elements[0].value
            if isinstance(counter, cst.Name) and counter.value == node.value:
                return "int"
    return "tensor"


def _kind_of_value(subject: Subject, value: cst.CSTNode) -> str:
    """Of what is no tensor, as far as it is plain; empty where it may be one."""
    constant = _kind_of_constant(value)
    if constant:
        return constant
    if isinstance(value, cst.Call) and subject.module.calls(value, "builtins.len"):
        return "int"
    if read_from(subject.module, value) is not None or is_static(subject, value):
        return "number"
    return ""


def _kind_of_constant(value: cst.CSTNode) -> str:
    if isinstance(value, cst.Integer):
        return "int"
    if isinstance(value, cst.Float):
        return "float"
    return "str" if isinstance(value, (cst.SimpleString, cst.FormattedString)) else ""


def _kind_of_attribute(module: SourceModule, node: cst.BaseExpression) -> str:
    """`self.name`, by what the file assigns to it."""
    if is_buffer(module, node):
        return "tensor"
    code = module.code(node)
    given = [
        each.value
        for each in module.walk()
        if isinstance(each, cst.Assign) and any(module.code(t.target) == code for t in each.targets)
    ]
    kinds = {_kind_of_constant(value) for value in given}
    return kinds.pop() if len(kinds) == 1 else ""


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


def outline_outside(edit: Edit, call: cst.Call, verb: str) -> None:
    """The same as a plain function that runs eagerly, and gives what the call gives."""
    needed = _Needed(edit.module, call, _step)
    name = _operator_name(edit.module, call, verb)
    text = f"""
        @{edit.module_name("torch")}.compiler.disable
        def {name}({", ".join(needed.names)}):
            return None
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
        stub = cst.ensure_type(function.body.body[0], cst.SimpleStatementLine).body[0]
        given = isinstance(stub, cst.Return)
        line = cst.SimpleStatementLine([cst.Return(renamed) if given else cst.Expr(renamed)])
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
    return above if isinstance(above, cst.Attribute) and is_receiver(module, node) else node


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


_REBOUND = "rebound"


def is_rebound(module: SourceModule, name: cst.Name) -> bool:
    """A global that some function gives another value: `global step; step += 1`."""
    if not is_of_module(module, name):
        return False
    if _REBOUND not in module.kept:
        module.kept[_REBOUND] = [
            declared
            for each in _functions(module)
            if (names := declared_names(each))
            for declared in names & set(bound_names(each.body.body))
        ]
    return name.value in module.kept[_REBOUND]


def is_changed(module: SourceModule, name: cst.Name) -> bool:
    """A global object of which some function changes a part, or a method is called for its
    effect: `meter.n += 1`, `seen["x"] = x`, `history.append(x)`."""
    if not is_of_module(module, name) or not _is_variable(module, name):
        return False
    return any(
        _root(part) == name.value
        for function in _functions(module)
        for node in module.walk(function.body)
        for part in _changed_parts(module, node)
    )


def _changed_parts(module: SourceModule, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield from (
        each.value for each in targets(node) if isinstance(each, (cst.Attribute, cst.Subscript))
    )
    call = node.value if isinstance(node, cst.Expr) else None
    method = call.func if isinstance(call, cst.Call) else None
    if isinstance(method, cst.Attribute) and output_of(module, call) is None:
        yield method.value


def kind_of_global(module: SourceModule, name: str) -> str:
    """`int`, `float` or `str`, where all that the file gives it are such constants."""
    given: list[cst.CSTNode] = []
    for node in module.walk():
        if any(isinstance(each, cst.Name) and each.value == name for each in targets(node)):
            value = getattr(node, "value", None)
            given.append(value if isinstance(value, cst.CSTNode) else node)
    if given and all(isinstance(each, cst.Integer) for each in given):
        return "int"
    if given and all(isinstance(each, cst.Float) for each in given):
        return "float"
    return "str" if given and all(isinstance(each, cst.SimpleString) for each in given) else ""


def _functions(module: SourceModule) -> Iterator[cst.FunctionDef]:
    return (each for each in module.walk() if isinstance(each, cst.FunctionDef))


def _is_variable(module: SourceModule, name: cst.Name) -> bool:
    scope = module.scope(name)
    found = [getattr(each, "node", None) for each in scope[name.value]] if scope is not None else []
    fixed = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef)
    return bool(found) and not any(each is None or isinstance(each, fixed) for each in found)


def _root(node: cst.CSTNode) -> str:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
