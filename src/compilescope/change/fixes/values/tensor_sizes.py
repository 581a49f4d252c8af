"""A tensor of one number that the program uses as a size, and the number in its place.

`most = counts.max()`, then `x.new_zeros(2, most)`, also in functions that it is handed to. Where
all uses are sizes, bounds of slices, arithmetic with sizes, comparisons and messages, a number does
the same there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import SIZING
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.scalars import calls_in
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.flow.aliasing import changes_in_place, is_fresh
from compilescope.knowledge.source.flow.liveness import only_value, reads, targets
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    declared_names,
    is_receiver,
    parameters_of,
    receiver_of,
)
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

TOLD = "Messages of exceptions show the number itself, `2` and not `tensor(2)`."
_WHOLE = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply))
_EQUAL = kinds(lambda: (cst.Equal, cst.NotEqual))
_TAKING = SIZING | {"linspace"}
_MOST_STEPS = 6
"""From a size to the tensor that it is: a name, an argument, a result. Chosen: a bound for a search
that calls could make go round."""


def sizes_at(subject: Subject) -> list[cst.Name]:
    """Names of tensors of one whole number that the operator of a finding takes for a size. Empty
    where it is about something else, and where no run shows what they are."""
    node = subject.node
    calls = [each for each in subject.module.walk(node) if isinstance(each, cst.Call)]
    return [
        name
        for call in calls
        if operator_of(subject.module, call) in SIZING
        for arg in call.args
        for name in subject.module.walk(arg.value)
        if isinstance(name, cst.Name) and _is_whole_number(subject, name)
    ]


def _is_whole_number(subject: Subject, name: cst.Name) -> bool:
    """Of 64 bits: arithmetic with fewer may overflow where Python's does not."""
    seen = subject.facts(name.value)
    return bool(seen) and all(
        fact.kind == "tensor" and fact.shape == () and fact.dtype == "int64" for fact in seen
    )


def origins_of(module: SourceModule, size: cst.Name) -> list[cst.BaseExpression]:
    """The expressions that make the tensor, in this file. Raises `Refused` where one cannot be
    found, or may share its memory with what changes later."""
    found = list(dict.fromkeys(_origins(module, size, _MOST_STEPS)))
    for each in found:
        if not is_fresh(module, each):
            raise Refused(f"`{short(module, each)}` may be changed through another tensor")
    return found


def _origins(module: SourceModule, name: cst.Name, depth: int) -> Iterator[cst.BaseExpression]:
    function = module.function_of(name)
    if function is None or not depth:
        raise Refused(f"it is unknown where `{name.value}` is computed")
    if name.value in parameters_of(function):
        if _times_set(module, function, name.value):
            raise Refused(f"`{name.value}` is set in several places")
        for given in given_for(module, function, name.value):
            yield from _origins_of_value(module, given, depth)
        return
    value = only_value(module, function, name.value)
    if value is not None:
        yield from _origins_of_value(module, value, depth)
        return
    call, place = _unpacked(module, function, name.value)
    for returned in _returned_by(module, call):
        if not isinstance(returned, cst.Tuple) or place >= len(returned.elements):
            raise Refused(f"it is unknown where `{name.value}` is computed")
        yield from _origins_of_value(module, returned.elements[place].value, depth)


def _origins_of_value(
    module: SourceModule, value: cst.BaseExpression, depth: int
) -> Iterator[cst.BaseExpression]:
    if isinstance(value, cst.Name):
        yield from _origins(module, value, depth - 1)
    elif isinstance(value, cst.Call) and helper_of(module, value) is not None:
        for returned in _returned_by(module, value):
            yield from _origins_of_value(module, returned, depth - 1)
    else:
        yield value


def _times_set(module: SourceModule, function: cst.FunctionDef, name: str) -> int:
    written = (target for each in module.walk(function.body) for target in targets(each))
    return sum(isinstance(each, cst.Name) and each.value == name for each in written)


def _unpacked(module: SourceModule, function: cst.FunctionDef, name: str) -> tuple[cst.Call, int]:
    """The call whose result is taken apart into the name, and which part it is."""
    if _times_set(module, function, name) == 1:
        for each in module.walk(function.body):
            target = each.targets[0].target if isinstance(each, cst.Assign) else None
            if not isinstance(target, cst.Tuple) or not isinstance(each.value, cst.Call):  # type: ignore[attr-defined]
                continue
            for place, part in enumerate(target.elements):
                if isinstance(part.value, cst.Name) and part.value.value == name:
                    return each.value, place  # type: ignore[attr-defined]
    raise Refused(f"it is unknown where `{name}` is computed")


def helper_of(module: SourceModule, call: cst.Call) -> cst.FunctionDef | None:
    """The function of this file that it calls: `f(x)`, `self.f(x)`."""
    func = call.func
    name = func.value if isinstance(func, cst.Name) else ""
    if isinstance(func, cst.Attribute) and is_receiver(module, func.value):
        name = func.attr.value
    found = [
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == name
    ]
    return found[0] if name and len(found) == 1 else None


def _returned_by(module: SourceModule, call: cst.Call) -> list[cst.BaseExpression]:
    helper = helper_of(module, call)
    if helper is None:
        raise Refused(f"it is unknown what `{short(module, call)}` returns")
    found = [
        each.value
        for each in module.walk(helper)
        if isinstance(each, cst.Return) and module.function_of(each) is helper
    ]
    if not found or None in found:
        raise Refused(f"`{helper.name.value}` does not always return something")
    return [each for each in found if each is not None]


def given_for(
    module: SourceModule, function: cst.FunctionDef, name: str
) -> list[cst.BaseExpression]:
    """What each call in this file hands over for a parameter."""
    calls = calls_of(module, function)
    return [argument_of(module, function, call, name) for call in calls]


def calls_of(module: SourceModule, function: cst.FunctionDef) -> list[cst.Call]:
    """Raises `Refused` where others may call it too."""
    name = function.name.value
    if name == "forward" or name.startswith("__") or function.asynchronous is not None:
        raise Refused(f"`{name}` is called by a library, too")
    if module.around(function, cst.FunctionDef) is not None:
        raise Refused(f"`{name}` is a function within another one")
    known = {"staticmethod", "classmethod"}
    if any(module.code(each.decorator) not in known for each in function.decorators):
        raise Refused(f"`{name}` has a decorator")
    found = list(calls_in(module, name, function))
    if not found:
        raise Refused(f"it is unknown who calls `{name}`")
    return found


def argument_of(
    module: SourceModule, function: cst.FunctionDef, call: cst.Call, name: str
) -> cst.BaseExpression:
    place = _parameters(module, function).index(name)
    if any(arg.star for arg in call.args):
        raise Refused(f"it is unknown what `{short(module, call)}` hands over")
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    if place < len(plain):
        return plain[place]
    raise Refused(f"`{name}` is not given in `{short(module, call)}`")


def _parameters(module: SourceModule, function: cst.FunctionDef) -> list[str]:
    """As a call gives them: without `self`."""
    names = parameters_of(function)
    return names[1:] if receiver_of(module, function) else names


def check_kept(
    module: SourceModule, function: cst.FunctionDef, name: str, depth: int = _MOST_STEPS
) -> None:
    """Raises `Refused` where the function, or one of this file that it hands the tensor to, changes
    it in place. What other code does to it shows when the program runs."""
    for where, changed in changes_in_place(module, function):
        if changed == name:
            raise Refused(f"`{short(module, where)}` changes the tensor")
    for read in reads(module, function.body):
        arg = module.parent(read)
        call = module.parent(arg) if isinstance(arg, cst.Arg) else None
        if read.value != name or not isinstance(call, cst.Call) or not depth:
            continue
        helper = helper_of(module, call)
        if helper is not None and helper is not function:
            for parameter in _parameters(module, helper):
                if _is_handed(module, helper, call, parameter, read):
                    check_kept(module, helper, parameter, depth - 1)


def _is_handed(
    module: SourceModule,
    helper: cst.FunctionDef,
    call: cst.Call,
    parameter: str,
    value: cst.CSTNode,
) -> bool:
    try:
        return argument_of(module, helper, call, parameter) is value
    except Refused:
        return False


def _is_half(node: cst.CSTNode) -> bool:
    """`0.5`, `1.5`: beside a size, no dtype rounds it."""
    return isinstance(node, cst.Float) and (2 * float(node.value)).is_integer()


def _is_counter(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Does it begin at a whole number, and is it only added to?"""
    setting = [
        each
        for each in module.walk(function.body)
        if any(isinstance(t, cst.Name) and t.value == name for t in targets(each))
    ]
    first = [each for each in setting if not isinstance(each, cst.AugAssign)]
    begins = first[0].value if len(first) == 1 and isinstance(first[0], cst.Assign) else None
    return isinstance(begins, cst.Integer) and name not in parameters_of(function)


class SizeUses:
    """Follows a tensor through the file; raises `Refused` at the first use for which its number is
    something else."""

    def __init__(self, subject: Subject, module: SourceModule) -> None:
        self._subject, self._module = subject, module
        self._done: set[tuple[cst.FunctionDef, str]] = set()
        self._known: set[tuple[cst.FunctionDef, str]] = set()
        self.is_told = False
        """Is it part of a message, which then shows the number?"""

    def follow(self, node: cst.CSTNode) -> None:
        module = self._module
        above = module.parent(node)
        match above:
            case cst.BinaryOperation():
                self._operation(above, above.right if above.left is node else above.left)
            case cst.AugAssign():
                self._counted(above)
            case cst.Arg():
                self._argument(above)
            case cst.Slice():
                return
            case cst.Assign() if len(above.targets) == 1:
                self._assigned(above.targets[0].target)
            case cst.Return():
                self._returned(above, None)
            case cst.Element():
                self._element(above)
            case cst.FormattedStringExpression():
                self._message(above)
            case _:
                self._refuse(above)

    def follow_names(self, function: cst.FunctionDef, names: Collection[str]) -> None:
        """Every read of names that hold such numbers."""
        self._known |= {(function, name) for name in names}
        for name in names:
            self._name(function, name)

    def _operation(self, above: cst.BinaryOperation, other: cst.CSTNode) -> None:
        if not isinstance(above.operator, _WHOLE):
            self._refuse(above)
        elif self._is_whole(other):
            self.follow(above)
        elif _is_half(other) and not isinstance(above.operator, cst.Multiply):
            # The tensor's sum has 32 bits, enough for any size; a product may need more.
            if not isinstance(self._module.parent(above), cst.Arg):
                self._refuse(above)
            self.follow(above)
        elif not self._absorbs(other):
            self._refuse(above)

    def _absorbs(self, other: cst.CSTNode) -> bool:
        """Is it a tensor whose dtype a whole number leaves as it is, whether it is a tensor or
        not?"""
        kind = kind_of(self._subject, other)
        if bool(kind.dims):
            return True
        while isinstance(other, cst.Subscript):  # What is picked from a tensor has its dtype.
            other = other.value
        return "float" in (kind.dtype or kind_of(self._subject, other).dtype or "")

    def _counted(self, above: cst.AugAssign) -> None:
        """`start += height * width`, which begins at a number."""
        target = above.target
        function = self._module.function_of(above)
        if (
            function is None
            or not isinstance(target, cst.Name)
            or not isinstance(above.operator, (cst.AddAssign, cst.SubtractAssign))
            or not _is_counter(self._module, function, target.value)
        ):
            return self._refuse(above)
        if (function, target.value) not in self._done:
            self._done.add((function, target.value))
            for read in reads(self._module, function.body):
                if read.value == target.value and read is not target:
                    self.follow(read)
        return None

    def _is_whole(self, node: cst.CSTNode) -> bool:
        """Another size, and no tensor: `x.size(-1) - most`, `most + 1`."""
        module = self._module
        if isinstance(node, cst.Integer):
            return True
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _WHOLE):
            return self._is_whole(node.left) and self._is_whole(node.right)
        function = module.function_of(node)
        if isinstance(node, cst.Name) and function is not None:
            known = self._done | self._known
            if (function, node.value) in known or _is_counter(module, function, node.value):
                return True
        there = self._subject.at(module, module.statement_of(node))
        return is_static(there, node) and not isinstance(node, (cst.Float, cst.SimpleString))

    def _argument(self, arg: cst.Arg, *, within: bool = False) -> None:
        """`within`: it is part of a list or tuple there."""
        module = self._module
        call = module.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            return self._refuse(call)
        if operator_of(module, call) in _TAKING:
            return None
        helper = helper_of(module, call)
        if helper is None or within:
            return self._refuse(call)
        names = _parameters(module, helper)
        given = [each for each in call.args if each.keyword is None]
        if arg.keyword is not None:
            name = arg.keyword.value
        else:
            place = next(i for i, each in enumerate(given) if each is arg)
            name = names[place] if place < len(names) else ""
        if name not in names:
            return self._refuse(call)
        return self._name(helper, name)

    def _assigned(self, target: cst.CSTNode) -> None:
        function = self._module.function_of(target)
        if not isinstance(target, cst.Name) or function is None:
            return self._refuse(target)
        return self._name(function, target.value)

    def _name(self, function: cst.FunctionDef, name: str) -> None:
        module = self._module
        if (function, name) in self._done:
            return
        self._done.add((function, name))
        times = _times_set(module, function, name)
        if times != (name not in parameters_of(function)) or name in declared_names(function):
            raise Refused(f"`{name}` is set in several places")
        for read in reads(module, function.body):
            if read.value == name:
                if module.function_of(read) is not function:
                    raise Refused(f"`{name}` is used in a nested function")
                self.follow(read)

    def _element(self, element: cst.Element) -> None:
        """Of a list or tuple: returned, compared with sizes, or shown in a message."""
        module = self._module
        display = module.parent(element)
        above = module.parent(display) if display is not None else None
        if isinstance(above, cst.Return) and isinstance(display, cst.Tuple):
            place = next(i for i, each in enumerate(display.elements) if each is element)
            return self._returned(above, place)
        if isinstance(above, cst.FormattedStringExpression):
            return self._message(above)
        if isinstance(above, cst.Arg):
            return self._argument(above, within=True)
        whole = module.parent(above) if isinstance(above, cst.ComparisonTarget) else above
        if isinstance(whole, cst.Comparison) and all(
            isinstance(each.operator, _EQUAL) for each in whole.comparisons
        ):
            return None
        return self._refuse(above)

    def _returned(self, above: cst.Return, place: int | None) -> None:
        """What each caller does with it."""
        module = self._module
        function = module.function_of(above)
        if function is None:
            return self._refuse(above)
        for call in calls_of(module, function):
            if place is None:
                self.follow(call)
                continue
            assign = module.parent(call)
            target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
            if not isinstance(target, cst.Tuple) or place >= len(target.elements):
                return self._refuse(assign)
            if any(isinstance(each, cst.StarredElement) for each in target.elements):
                return self._refuse(assign)
            self._assigned(target.elements[place].value)
        return None

    def _message(self, shown: cst.CSTNode) -> None:
        """Of an exception: it shows `2` in place of `tensor(2)`."""
        if self._module.around(shown, cst.Assert, cst.Raise) is None:
            self._refuse(shown)
        self.is_told = True

    def _refuse(self, above: cst.CSTNode | None) -> None:
        shown = f" in `{short(self._module, above)}`" if above is not None else ""
        raise NotMeant(f"a tensor is used as more than a size{shown}")


def write_numbers(subject: Subject, edit: Edit) -> bool:
    """Write `.item()` behind what makes each size. Is one of them part of a message?"""
    module, told = subject.module, False
    origins: dict[cst.BaseExpression, None] = {}
    for there in break_sites(subject):
        for size in sizes_at(there):
            origins.update(dict.fromkeys(origins_of(module, size)))
    if not origins:
        raise NotMeant("no tensor is used as a size here")
    for origin in origins:
        uses = SizeUses(subject, module)
        uses.follow(origin)
        told = told or uses.is_told
        plain = isinstance(origin, (cst.Call, cst.Subscript)) or origin.lpar
        code = module.code(origin)
        edit.replace(origin, edit.expression(f"{code}.item()" if plain else f"({code}).item()"))
    return told


def break_sites(subject: Subject) -> Iterator[Subject]:
    """Every graph break in the file."""
    for site in subject.program.digest.sites:
        if isinstance(site, BreakFinding) and site.file == subject.file:
            yield Subject(site, subject.program)
