"""What a function uses a number for that it read out of a tensor.

A tensor of no dimensions takes a number's place in arithmetic with tensors, and nowhere else: as a
condition, a size, an index, a text or a result a number is something else. Python's own arithmetic
raises where a tensor's goes on (division by zero), so that is left alone too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import read_from
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.change.fixes.values.kinds import Kind, category, joined_kind, kind_of
from compilescope.change.fixes.values.tensors import facts_of, is_static, is_tensor
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import check_unchanged, is_buffer
from compilescope.knowledge.source.flow.liveness import reads, targets
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.syntax.bindings import declared_names, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_PLAIN_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "builtins.object"})
"""Classes that call no method of a subclass, but for `forward` and those with underscores."""
_ABSORBING = {"mul", "multiply", "add", "sub", "subtract", "div", "divide", "true_divide", "pow"}
_ABSORBING |= {"masked_fill", "where", "eq", "ne", "lt", "le", "gt", "ge", "lerp"}
_DOUBLE = {"float64", "complex128"}
_BOUNDED = {"clamp", "clip", "clamp_min", "clamp_max"}
_SMALLEST = 1e-30
"""What float32 does not round to zero, with room."""
_KEEPING_SIGN = {"sum", "mean", "max", "amax", "min", "amin", "sqrt", "detach", "float", "double"}


_OUTSIDE = "Keep the tensor, and read its number outside the compiled code."


class Divided(Refused):
    """Python divides by the number."""


class Uses:
    """Follows a number through the function; raises `Refused` at the first use that needs one."""

    def __init__(
        self,
        subject: Subject,
        leaving: Collection[cst.CSTNode] = (),
        tensor: cst.CSTNode | None = None,
        kind: Kind | None = None,
        inner: Uses | None = None,
        set_again: Collection[cst.CSTNode] = (),
        indexes: bool = False,
    ) -> None:
        """`indexes`: the fix writes `indexed` anew, so that the number may be an index."""
        self._subject = subject
        self._indexes = indexes
        self.indexed: list[cst.Subscript] = []
        self._module = subject.module
        self._names: set[str] = set()
        self._leaving = leaving
        """Reads that somebody else sees to."""
        self._set_again = set_again
        """Statements that may give its name another number, which somebody else sees to."""
        self._tensor_read = tensor
        self._kind = kind_of(subject, tensor) if tensor is not None else kind
        """Of the tensor that is to take the number's place."""
        self.is_used = False
        """Is a name of it read, but for what somebody else sees to?"""
        self.is_returned = False
        """Does the function give it to its callers?"""
        self._computed = False
        """Has Python computed with the number, in double precision?"""
        self._helpers: frozenset[cst.FunctionDef] = frozenset()
        """Functions that hand the number on, up to here."""
        if inner is not None:
            self._kind, self._computed = inner._kind, inner._computed
            self._helpers = inner._helpers | {inner._subject.function}

    def follow(self, node: cst.CSTNode) -> None:
        """Up to where a tensor takes it in."""
        above = self._module.parent(node)
        if isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Minus):
            self.follow(above)
        elif isinstance(above, cst.BinaryOperation):
            self._operation(above, node)
        elif isinstance(above, cst.ComparisonTarget):
            self._comparison(above)
        elif isinstance(above, cst.Comparison):
            self._comparison(above.comparisons[0])
        elif isinstance(above, cst.Arg):
            self._argument(above)
        elif isinstance(above, cst.Index) and self._indexes:
            self._index(above)
        elif isinstance(above, cst.AugAssign) and isinstance(above.operator, _IN_PLACE):
            self._tensor(above.target, above)
        elif isinstance(above, cst.Assign) and len(above.targets) == 1:
            target = above.targets[0].target
            if not isinstance(target, cst.Name):
                kept = short(self._module, target)
                raise Refused(f"the number is stored in `{kept}`", instead=_OUTSIDE)
            self.follow_name(target.value)
        elif isinstance(above, cst.Return):
            self._returned(above)
        else:
            self._refuse(above)

    def _returned(self, above: cst.Return) -> None:
        """A helper gives the number: what each of its callers does with it."""
        if self._subject.function in self._helpers or self._leaving:
            self._refuse(above)
        try:
            calls = _calls_of_helper(self._subject)
        except NeedsRun:
            raise
        except Refused as reason:
            shown = short(self._module, above)
            raise Refused(f"a Python number is needed in `{shown}`: {reason}") from None
        annotated = self._subject.function.returns is not None
        if annotated and self._helpers:
            self._refuse(above)  # The fix writes another type for the first of them alone.
        for there, call in calls:
            Uses(there, inner=self).follow(call)
        self.is_returned = True

    def follow_name(self, name: str) -> None:
        """Every read of a name that the function gives the number to."""
        if name in self._names:
            return
        self._names.add(name)
        module, function = self._module, self._subject.function
        left = {id(x) for each in self._set_again for x in module.walk(each)}
        written = [t for x in module.walk(function) if id(x) not in left for t in targets(x)]
        times = sum(isinstance(t, cst.Name) and t.value == name for t in written)
        if times != 1 or name in declared_names(function):
            raise Refused(f"`{name}` is set in several places")
        for read in reads(module, function.body):
            if read.value != name or read in self._leaving:
                continue
            if module.function_of(read) is not function:
                raise Refused(f"`{name}` is used in a nested function")
            self.is_used = True
            self.follow(read)

    def _operation(self, above: cst.BinaryOperation, node: cst.CSTNode) -> None:
        other = above.right if above.left is node else above.left
        self._check_known(other)
        if is_tensor(self._subject, other) or not self._is_number(other):
            if not isinstance(above.operator, _OPERATORS):
                self._refuse(above)
            self._check_dtype(other)
            return
        divides = isinstance(above.operator, cst.Divide)
        if (
            isinstance(above.operator, (cst.Add, cst.Subtract, cst.Multiply))
            or (divides and above.left is node and _is_nonzero(other))
            or (divides and above.right is node and self._is_positive(node))
            or (isinstance(above.operator, cst.Power) and self._is_exponent(above, node))
        ):
            self._computed = True
            self.follow(above)
        elif divides:
            raise Divided("Python raises if the number is zero, a tensor does not")
        else:
            self._refuse(above)

    def _is_exponent(self, above: cst.BinaryOperation, node: cst.CSTNode) -> bool:
        """`2 ** n` in double precision: of whole numbers, Python's have no end."""
        double = self._kind is not None and self._kind.dtype == "float64"
        base = number(above.left)
        return double and above.right is node and base is not None and base > 0

    def _is_positive(self, node: cst.CSTNode) -> bool:
        """`norm + 1e-6`: Python never divides by zero there, nor does a tensor of 32 bits."""
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
            return False
        if self._kind is None or self._kind.dtype not in ("float32", "float64"):
            return False
        name, added = node.left, node.right
        if isinstance(name, (cst.Integer, cst.Float)):
            name, added = added, name
        this = isinstance(name, cst.Name) and name.value in self._names
        small = float(added.evaluated_value) if isinstance(added, (cst.Integer, cst.Float)) else 0.0
        return this and small > _SMALLEST and self._is_never_negative

    @property
    def _is_never_negative(self) -> bool:
        """By what the tensor is computed with."""
        node = self._tensor_read
        while isinstance(node, cst.Call):
            name = operator_of(self._module, node)
            if name in operators.NEVER_NEGATIVE:
                return True
            if name not in _KEEPING_SIGN or not isinstance(node.func, cst.Attribute):
                return False
            node = node.func.value
        return False

    def _check_known(self, other: cst.CSTNode) -> None:
        """What a comprehension goes through has not been seen: it may be numbers."""
        around = [each for each in self._module.ancestors(other) if isinstance(each, cst.BaseComp)]
        bound = {
            name.value
            for each in around
            for part in self._module.walk(each)
            for name in targets(part)
            if isinstance(name, cst.Name)
        }
        if isinstance(other, cst.Name) and other.value in bound:
            raise Refused(f"it is unknown whether `{other.value}` is a tensor")

    def _check_dtype(self, other: cst.CSTNode) -> None:
        """A Python number takes the dtype of the tensors that it meets; a tensor may widen it."""
        if self._kind is None:
            return
        mine, met = self._kind.dtype, kind_of(self._subject, other)
        if self._computed and met.dtype in _DOUBLE and mine not in _DOUBLE:
            raise Refused(f"Python computes it in double precision, and it meets {met.dtype}")
        if mine and met.dtype and met.dims and category(met.dtype) >= category(mine):
            return  # Something with dimensions is not widened within its own category.
        if mine is not None and met.dtype is not None and met.shape is not None:
            plain = Kind(("bool", "int64", "float32", "complex64")[category(mine)], (), python=True)
            as_number = joined_kind([met, plain]).dtype
            as_tensor = joined_kind([met, Kind(mine, ())]).dtype
            if as_number != as_tensor:
                raise Refused(f"as a tensor it would make the result {as_tensor}, not {as_number}")
        elif not self._subject.program.facts.seen and self._mixes():
            raise NeedsRun("the result may get another dtype, which the source does not show")
        elif mine is not None and self._is_of_several(other):
            raise Refused("it meets tensors of several dtypes, and may change one of them")

    def _is_of_several(self, node: cst.CSTNode) -> bool:
        """Is a name in it seen with several dtypes, as where a loop changes it?"""
        names = (each for each in self._module.walk(node) if isinstance(each, cst.Name))
        seen = ({fact.dtype for fact in facts_of(self._subject, each)} for each in names)
        return any(len(dtypes) > 1 for dtypes in seen)

    def _mixes(self) -> bool:
        """The program computes in several widths, or in one that is not the usual."""
        dtypes = graph_values(self._subject.program.run).dtypes
        return bool(dtypes & {"float64", "float16", "bfloat16"}) and len(dtypes - {"bool"}) > 1

    def _comparison(self, part: cst.ComparisonTarget) -> None:
        whole = self._module.parent(part)
        assert isinstance(whole, cst.Comparison)
        sides = [whole.left, *(each.comparator for each in whole.comparisons)]
        if len(sides) != 2 or not any(is_tensor(self._subject, side) for side in sides):
            raise Refused("the number is compared, and Python uses the result")

    def _argument(self, arg: cst.Arg) -> None:
        call = self._module.parent(arg)
        assert isinstance(call, (cst.Call, cst.ClassDef))
        name = operator_of(self._module, call) if isinstance(call, cst.Call) else None
        if name is None or not isinstance(call, cst.Call):
            self._refuse(call)
            return
        plain = name.removesuffix("_")
        if plain in _ABSORBING or (plain in _BOUNDED and self._are_bounds(call)):
            return
        self._refuse(call)

    def _index(self, index: cst.Index) -> None:
        """`rows[n]`, `x[b, n]`, `x[:, n]`: the number is the last index of a tensor."""
        element = self._module.parent(index)
        whole = self._module.parent(element) if element is not None else None
        if not isinstance(whole, cst.Subscript) or whole.slice[-1] is not element:
            self._refuse(whole)
            return
        if self._kind is None or self._kind.dtype not in ("int64", "int32") or self._computed:
            self._refuse(whole)
        if not is_tensor(self._subject, whole.value):
            raise Refused(f"it is unknown whether `{short(self._module, whole.value)}` is a tensor")
        if not all(self._is_row(each.slice) for each in whole.slice[:-1]):
            self._refuse(whole)
        above = self._module.parent(whole)
        if isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.Del, cst.Subscript)):
            self._refuse(above)
        self.indexed.append(whole)

    def _is_row(self, part: cst.BaseSlice) -> bool:
        """`:`, or a whole number that is known while tracing."""
        if isinstance(part, cst.Slice):
            return part.lower is None and part.upper is None and part.step is None
        value = part.value if isinstance(part, cst.Index) else None
        if isinstance(value, cst.Name):
            return _counts_turns(self._module, value)
        return value is not None and isinstance(number(value), int)

    def _are_bounds(self, call: cst.Call) -> bool:
        """One bound, or two that both are this number: torch takes no tensor beside a number."""
        bounds = [each for each in call.args if each.keyword is not None]
        if len(call.args) + len(bounds) <= 2 or (len(call.args) <= 2 and len(bounds) == 1):
            return True
        method = isinstance(call.func, cst.Attribute) and is_tensor(self._subject, call.func.value)
        given = call.args if method else call.args[1:]
        return len(given) == 2 and all(self._is_this_number(each.value) for each in given)

    def _is_this_number(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            node = node.expression
        return isinstance(node, cst.Name) and node.value in self._names

    def _tensor(self, target: cst.CSTNode, above: cst.CSTNode) -> None:
        if is_tensor(self._subject, target) is False or self._is_number(target):
            self._refuse(above)

    def _is_number(self, node: cst.CSTNode) -> bool:
        """A Python number, as far as can be seen."""
        if is_static(self._subject, node) or read_from(self._module, node) is not None:
            return True
        if isinstance(node, cst.Attribute):
            return self._is_number_attribute(node)
        if isinstance(node, cst.BinaryOperation):
            return self._is_number(node.left) and self._is_number(node.right)
        if not isinstance(node, cst.Name) or facts_of(self._subject, node):
            return False
        if node.value in self._names:
            return True
        given = [
            each.value
            for each in self._module.walk(self._subject.function.body)
            if isinstance(each, cst.Assign)
            and any(isinstance(t, cst.Name) and t.value == node.value for t in targets(each))
        ]
        return any(
            isinstance(value, (cst.Integer, cst.Float))
            or read_from(self._module, value) is not None
            for value in given
        )

    def _is_number_attribute(self, node: cst.Attribute) -> bool:
        """`self.mean`, where the file sets it to a number; raises where that cannot be told."""
        if facts_of(self._subject, node) or is_buffer(self._module, node):
            return False
        given = [
            each.value
            for each in self._module.walk()
            if isinstance(each, cst.Assign)
            and any(self._module.code(t) == self._module.code(node) for t in targets(each))
        ]
        if any(isinstance(value, (cst.Integer, cst.Float)) for value in given):
            return True
        if any(is_tensor(self._subject, value) or _makes_parameter(value) for value in given):
            return False
        shown = short(self._module, node)
        raise NeedsRun(f"the source does not show whether `{shown}` is a tensor or a number")

    def _refuse(self, above: cst.CSTNode | None) -> None:
        shown = f" in `{short(self._module, above)}`" if above is not None else ""
        raise Refused(f"a Python number is needed{shown}")


_IN_PLACE = kinds(lambda: (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign))
_OPERATORS = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power))


def _counts_turns(module: SourceModule, name: cst.Name) -> bool:
    """Is it `b` of a loop over `enumerate(...)` or `range(...)`?"""
    for above in module.ancestors(name):
        loops = [above] if isinstance(above, (cst.For, cst.CompFor)) else []
        if isinstance(above, (cst.ListComp, cst.GeneratorExp)):
            loops = [above.for_in]
        for loop in loops:
            target: cst.CSTNode = loop.target
            if isinstance(target, cst.Tuple) and module.calls(loop.iter, "builtins.enumerate"):
                target = target.elements[0].value
            elif not module.calls(loop.iter, "builtins.range"):
                continue
            if isinstance(target, cst.Name) and target.value == name.value:
                return True
    return False


def _gathered(module: SourceModule, node: cst.Subscript) -> str:
    """The same row, by an index that is a tensor of no dimensions: Dynamo reads the number of such
    a tensor, and gathers by one that has a dimension."""
    before = [module.code(each.slice) for each in node.slice[:-1]]
    last = node.slice[-1].slice
    assert isinstance(last, cst.Index)
    left = [":" for each in node.slice[:-1] if isinstance(each.slice, cst.Slice)]
    parts = ", ".join([*before, f"{module.code(last.value)}.view(1)"])
    return f"{module.code(node.value)}[{parts}][{', '.join([*left, '0'])}]"


def write_gathered(subject: Subject, edit: Edit, uses: Uses) -> None:
    """Raises `Refused` where it shows that a gathered row is a copy, and a picked one is not."""
    module = subject.module
    for node in uses.indexed:
        check_unchanged(module, subject.function, module.statement_of(node), [node])
        edit.replace(node, edit.expression(_gathered(module, node)))


def _makes_parameter(node: cst.CSTNode) -> bool:
    func = node.func if isinstance(node, cst.Call) else None
    last = func.attr if isinstance(func, cst.Attribute) else func
    return isinstance(last, cst.Name) and last.value in ("Parameter", "Buffer")


def _is_nonzero(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.evaluated_value) != 0.0


# Every call of a helper whose result would become something else.
#
# A function may be called from anywhere it is known. So all of the program's own files are searched
# for its name, and whoever does more than call it makes the change impossible.


def _calls_of_helper(subject: Subject) -> list[tuple[Subject, cst.Call]]:
    """Each call of the function around a finding, and the finding looked at from there. Raises
    `Refused` where not all calls can be known, or one has not been watched."""
    module, helper = subject.module, subject.function
    name = helper.name.value
    _check_plain(module, helper)
    found = [
        (subject.at(each, each.statement_of(call)), call)
        for each in own_modules(subject.program)
        for call in calls_in(each, name, helper if each.path == module.path else None)
    ]
    if not found:
        raise Refused(f"it is unknown who calls `{name}`")
    for there, _ in found:
        if not subject.program.facts.reached(there.file, there.line):
            raise NeedsRun(f"no run shows what is done with `{name}()` on line {there.line}")
    return found


def _check_plain(module: SourceModule, helper: cst.FunctionDef) -> None:
    """Raises `Refused` unless it is a function of the file or a method, which one `return` ends."""
    name = helper.name.value
    returned = [each for each in module.walk(helper) if isinstance(each, cst.Return)]
    last = statements_of(helper)[-1]
    at_end = isinstance(last, cst.SimpleStatementLine) and last.body[-1] in returned
    if len(returned) != 1 or not at_end:
        raise Refused(f"`{name}` returns in several places")
    if helper.decorators or helper.asynchronous is not None:
        raise Refused(f"`{name}` has a decorator or is async")
    made = module.class_of(helper)
    if module.around(helper, cst.FunctionDef) is not None:
        raise Refused(f"`{name}` is a function within another one")
    if made is None:
        return
    if name == "forward" or name.startswith("__"):
        raise Refused(f"`{name}` is called by a library, too")
    for base in made.bases:
        if not module.meaning(base.value) & _PLAIN_BASES:
            raise Refused(f"it is unknown whether `{module.code(base.value)}` calls `{name}`")


def calls_in(module: SourceModule, name: str, helper: cst.FunctionDef | None) -> Iterator[cst.Call]:
    """Raises `Refused` for any other mention of the name."""
    for node in module.walk():
        if isinstance(node, cst.FunctionDef) and node.name.value == name and node is not helper:
            raise Refused(f"there are several functions called `{name}`")
        if isinstance(node, cst.Call) and module.calls(node, "builtins.getattr"):
            texts = [each.value for each in node.args if isinstance(each.value, cst.SimpleString)]
            if any(each.evaluated_value == name for each in texts):
                raise Refused(f"`{module.code(node)}` gives the function itself")
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        above = module.parent(node)
        if isinstance(above, cst.FunctionDef) and above.name is node:
            continue
        if isinstance(above, cst.ImportAlias) and above.asname is None:
            continue
        callee: cst.CSTNode = node
        if isinstance(above, cst.Attribute) and above.attr is node:
            callee, above = above, module.parent(above)
        if not isinstance(above, cst.Call) or above.func is not callee:
            raise Refused(f"`{name}` is passed on, and may be called elsewhere")
        yield above
