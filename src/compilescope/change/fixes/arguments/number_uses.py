"""What a function does with a number that is to come as a tensor: arithmetic takes either; where an
operator takes a number alone, the code is changed so that it takes both.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.arguments.calls import argument_for, is_plain
from compilescope.change.fixes.arguments.edits import CallEdits, operand
from compilescope.change.fixes.arguments.guarded import uses_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import decides
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, parameters_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_DEEPEST = 3
"""Calls of the user's own functions that are followed. Chosen: an update or a loss is made of a few
helpers."""
_ARITHMETIC = kinds(lambda: (cst.BinaryOperation, cst.UnaryOperation))
_SIGNS = kinds(lambda: (cst.Minus, cst.Plus))
_SCALED, _FUSED = "alpha", "addcmul"
_FACTORS = {
    **dict.fromkeys(("add", "sub", "subtract"), _SCALED),
    **dict.fromkeys(("addcmul", "addcdiv"), "value"),
}
"""Operators with an argument that takes a number alone, and multiply what comes after the first
tensor by it. Those of lists, `_foreach_add`, do the same with each."""
_OF_EITHER = operators.named("mul multiply div divide true_divide add sub subtract pow")
"""Operators that take a number or a tensor, and give the same for both."""
_OF_LISTS = operators.named("mul div add")
"""Those of them that do so with each tensor of a list."""
_LIMITS = {
    **dict.fromkeys(("clamp", "clip"), ("min", "max")),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
}
_FOREACH = "_foreach_"
_OF_COLLECTIONS = ("add",)
"""Methods that a set or a meter has as well."""


class NumberUses:
    """Follows a number through a function and those that it calls; changes what needs one."""

    def __init__(self, edits: CallEdits | None = None, *, always_tensor: bool = False) -> None:
        """`always_tensor`: every call of the function that it starts in passes one; those that it
        calls in turn may be given a number elsewhere. Without `edits` nothing is changed."""
        self._edits, self._always_tensor = edits, always_tensor
        self._seen: set[tuple[cst.CSTNode, str]] = set()
        self._computes = False
        self._met: list[tuple[SourceModule, cst.BaseExpression]] = []
        """What it is added to, multiplied by and so on, no number."""

    def dtype(self, subject: Subject) -> str:
        """What `torch.tensor` is given with the number. Where it only meets tensors, the default:
        torch converts a Python number to that too, and the results keep their dtype. Where Python
        computed with it first, or tensors are float64, no digit may be lost."""
        precise = self._computes or "float64" in "".join(graph_values(subject.program.run).dtypes)
        return ", dtype=torch.float64" if precise else ""

    def check_not_widened(self, subject: Subject) -> None:
        """Raises `Refused` where a float64 tensor would make another of no dimensions one too."""
        for module, other in self._met:
            kind = kind_of(subject.at(module, other), other)
            if kind.shape == () and kind.dtype in ("float32", "float16", "bfloat16"):
                raise Refused(f"`{short(module, other)}` has no dimensions, and would be widened")

    def follow(
        self,
        module: SourceModule,
        function: cst.FunctionDef | cst.Lambda,
        name: str,
        depth: int = 0,
    ) -> None:
        """Raises `Refused` where the number itself is needed."""
        if (function, name) in self._seen:
            return
        self._seen.add((function, name))
        for read in uses_of(module, function, name):
            self.use(module, function, read, depth)

    def use(
        self,
        module: SourceModule,
        function: cst.FunctionDef | cst.Lambda,
        read: cst.BaseExpression,
        depth: int = 0,
    ) -> None:
        """The same of one place at which it is read, or of an expression of it alone."""
        test = decides(module, read)
        if test is not None:
            raise Refused(f"Python control flow depends on it in `{short(module, test)}`")
        whole, is_number, computes = _arithmetic_around(module, read)
        self._computes |= computes
        self._met += [(module, each) for each in _operands(module, read, whole)]
        above = module.parent(whole)
        call = module.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(above, cst.Arg) and isinstance(call, cst.Call):
            taken = self._in_call(module, call, above, is_number, depth)
        elif isinstance(above, cst.Assign) and isinstance(function, cst.FunctionDef):
            taken = is_number and self._named(module, function, above, depth)
        else:
            taken = isinstance(above, cst.AugAssign)
        if is_number and not taken:
            raise Refused(f"`{short(module, call or above or read)}` needs a number")

    def _named(
        self, module: SourceModule, function: cst.FunctionDef, line: cst.Assign, depth: int
    ) -> bool:
        """`weight = 1 - m`: the name stands for it from there on."""
        target = line.targets[0].target
        if not isinstance(target, cst.Name):
            return False
        if only_value(module, function, target.value) is not line.value:
            return False
        self.follow(module, function, target.value, depth)
        return True

    def _in_call(
        self, module: SourceModule, call: cst.Call, arg: cst.Arg, is_number: bool, depth: int
    ) -> bool:
        """Does the call take a tensor there, as it is now?"""
        name = _operator(module, call)
        if name is not None:
            of_lists = name.startswith(_FOREACH)
            name = name.removeprefix(_FOREACH).removesuffix("_")
            keyword = arg.keyword.value if arg.keyword is not None else ""
            is_tensor = depth == 0 and self._always_tensor
            if self._edits is None and (keyword or name == "lerp" or name in _LIMITS):
                return False
            if keyword and keyword == _FACTORS.get(name):
                if keyword == _SCALED and is_tensor and not of_lists:
                    self._fuse(module, call, arg)
                else:
                    self._multiply(module, call, arg, of_lists=of_lists)
                return True
            if name == "lerp" and not of_lists and is_tensor:
                return self._as_weight(module, call, arg)
            if name in _LIMITS:
                fits = _is_one_limit(module, call, arg, name)
                return fits and self._as_limit(module, call, arg, is_tensor=is_tensor)
            return name in (_OF_LISTS if of_lists else _OF_EITHER) and not keyword
        called = _own_function(module, call)
        if called is None or depth == _DEEPEST:
            return False
        for parameter in parameters_of(called):
            if argument_for(module, called, call, parameter) is arg.value:
                if is_number:
                    self.follow(module, called, parameter, depth + 1)
                return True
        return False

    def _edit(self, module: SourceModule) -> Edit:
        assert self._edits is not None
        return self._edits.edit_of(module)

    def _fuse(self, module: SourceModule, call: cst.Call, factor: cst.Arg) -> None:
        """`p.add_(s, alpha=1 - m)` as `p.addcmul_(s, 1 - m)`, which rounds once as well."""
        func = call.func
        if len(call.args) != 2 + (not _is_method(module, call)) or call.args[-1] is not factor:
            raise Refused(f"`{short(module, call)}` names what it multiplies")
        if not isinstance(func, cst.Attribute):
            self._multiply(module, call, factor, of_lists=False)
            return
        edit = self._edit(module)
        name = func.attr.value
        by = factor.value
        if name.startswith("sub"):
            by = _negative(by)
        in_place = "_" if name.endswith("_") else ""
        edit.replace(func.attr, cst.Name(f"{_FUSED}{in_place}"))
        plain = {"keyword": None, "equal": cst.MaybeSentinel.DEFAULT}
        edit.replace(factor, factor.with_changes(value=by, **plain))

    def _multiply(
        self, module: SourceModule, call: cst.Call, factor: cst.Arg, *, of_lists: bool
    ) -> None:
        """`p.add_(s, alpha=-lr)` as `p.add_(s * -lr)`."""
        edit = self._edit(module)
        plain = [each for each in call.args if each.keyword is None and not each.star]
        place = 0 if _is_method(module, call) else 1
        if len(plain) <= place:
            raise Refused(f"`{short(module, call)}` names what it multiplies")
        scaled, by = plain[place], module.code(factor.value)
        if of_lists:
            torch = edit.module_name("torch")
            text = f"{torch}.{_FOREACH}mul({module.code(scaled.value)}, {by})"
        else:
            by = f"({by})" if _binds_loosely(factor.value) else by
            text = f"{operand(module.code(scaled.value))} * {by}"
        is_last = call.args[-1] is factor and call.args[-2] is scaled
        comma = factor.comma if is_last else scaled.comma
        edit.replace(scaled, scaled.with_changes(value=edit.expression(text), comma=comma))
        edit.remove(factor)

    def _as_limit(
        self, module: SourceModule, call: cst.Call, arg: cst.Arg, *, is_tensor: bool
    ) -> bool:
        """A limit is not moved to the tensor's device, as a factor is (torch 2.11, uncompiled)."""
        tensor = _first_tensor(module, call)
        if not is_plain(tensor):
            return False
        edit, text = self._edit(module), module.code(arg.value)
        torch = edit.module_name("torch")
        held = operand(text) if is_tensor else f"{torch}.as_tensor({text})"
        moved = f"{held}.to({module.code(tensor)}.device)"
        edit.replace(arg.value, edit.expression(moved))
        return True

    def _as_weight(self, module: SourceModule, call: cst.Call, arg: cst.Arg) -> bool:
        """`lerp` takes a weight of the tensors' own dtype alone."""
        tensor = _first_tensor(module, call)
        if arg is not call.args[-1] or not is_plain(tensor):
            return False
        text = f"{operand(module.code(arg.value))}.to({module.code(tensor)})"
        edit = self._edit(module)
        edit.replace(arg.value, edit.expression(text))
        return True


def _arithmetic_around(
    module: SourceModule, read: cst.BaseExpression
) -> tuple[cst.BaseExpression, bool, bool]:
    """The whole of the arithmetic that it is part of; whether that surely is one of numbers; and
    whether the first step of it is."""
    whole: cst.BaseExpression = read
    numbers: list[bool] = []
    while isinstance(above := module.parent(whole), _ARITHMETIC):
        if isinstance(above, cst.UnaryOperation) and not isinstance(above.operator, _SIGNS):
            break
        if isinstance(above, cst.BinaryOperation):
            other = above.right if above.left is whole else above.left
            numbers.append(number(other) is not None)
        whole = above
    return whole, all(numbers), numbers[:1] == [True]


def _operands(
    module: SourceModule, read: cst.BaseExpression, whole: cst.BaseExpression
) -> Iterator[cst.BaseExpression]:
    """The others of the arithmetic, but for numbers."""
    node: cst.CSTNode | None = read
    while node is not whole and node is not None:
        above = module.parent(node)
        if isinstance(above, cst.BinaryOperation):
            other = above.right if above.left is node else above.left
            if number(other) is None:
                yield other
        node = above


def _operator(module: SourceModule, call: cst.Call) -> str | None:
    """Of torch, by its plain name; also one that works in place, and one for lists."""
    for meaning in module.meaning(call.func):
        name = operators.plain_name(meaning)
        if name is not None:
            return name
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value in _OF_COLLECTIONS:
        return None
    in_place = operators.out_of_place(func.attr.value)
    return in_place if in_place in operators.KNOWN else operator_of(module, call)


def _is_method(module: SourceModule, call: cst.Call) -> bool:
    """`x.add(y)`, not `torch.add(x, y)`."""
    return not any(operators.plain_name(each) for each in module.meaning(call.func))


def _first_tensor(module: SourceModule, call: cst.Call) -> cst.BaseExpression:
    """`x` of `x.clamp(min=1)` and of `torch.clamp(x, min=1)`."""
    if _is_method(module, call):
        return cst.ensure_type(call.func, cst.Attribute).value
    return call.args[0].value


def _is_one_limit(module: SourceModule, call: cst.Call, arg: cst.Arg, name: str) -> bool:
    """Two limits are both tensors or both numbers."""
    tensors = 0 if _is_method(module, call) else 1
    if len(call.args) != tensors + 1 or call.args[-1] is not arg:
        return False
    return arg.keyword is None or arg.keyword.value in _LIMITS[name]


def _own_function(module: SourceModule, call: cst.Call) -> cst.FunctionDef | None:
    if not isinstance(call.func, cst.Name):
        return None
    found = definitions_of(module, call.func)
    only = found[0] if len(found) == 1 else None
    return only if isinstance(only, cst.FunctionDef) else None


def _negative(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return node.expression
    if _binds_loosely(node):
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Minus(), node)


def _binds_loosely(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and not node.lpar


def is_float_text(text: str) -> bool:
    """Is it what Python or torch prints of a number, NaN and infinity too?"""
    try:
        float(text)
    except ValueError:
        return False
    return True
