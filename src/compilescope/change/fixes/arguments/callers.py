"""Which of the user's functions a call may run, and which calls may run a function: by their names
alone, and rather too many than too few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any

from compilescope.change.fixes.arguments.calls import argument_for, place_of
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, parameters_of, receiver_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

MODULE_CALLS = ("forward", "__call__")
"""What a call of an object runs."""
_AS_BEFORE = ("staticmethod", "classmethod", "torch.no_grad", "torch.inference_mode")
"""Decorators under which a function is still called by its name, with the same arguments."""
_HOLDERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "DataParallel"})
_Function = tuple[SourceModule, "cst.FunctionDef"]
_Call = tuple[SourceModule, "cst.Call"]


class Callers:
    """The calls and functions of the user's own files."""

    def __init__(self, modules: Sequence[SourceModule]) -> None:
        self._modules = modules
        self.is_handed_on = cache(self._is_handed_on)

    def every(self, kind: Any) -> Iterator[tuple[SourceModule, Any]]:
        for module in self._modules:
            name = f"every {kind.__name__}"
            if name not in module.kept:
                module.kept[name] = [each for each in module.walk() if isinstance(each, kind)]
            for node in module.kept[name]:
                yield module, node

    def functions(self, name: str) -> list[_Function]:
        found = self.every(cst.FunctionDef)
        return [(module, each) for module, each in found if each.name.value == name]

    def calls_by_name(self, name: str) -> list[_Call]:
        found = self.every(cst.Call)
        return [(module, call) for module, call in found if last_name(call.func) == name]

    def called(self, module: SourceModule, call: cst.Call) -> list[_Function]:
        """What it may run of the user's; empty where that is a library's, or unknown."""
        name = last_name(call.func)
        made = [
            (where, each)
            for where, each in self.functions("__init__")
            if (kind := where.class_of(each)) is not None and kind.name.value == name
        ]
        named = self.functions(name) if name else []
        if named or made or self.fields_of(name):
            return named or made
        if not self._is_object(module, call.func):
            return []
        known = self._made_of(module, call.func, set())
        return self._of_names(known) if known else self._of_objects()

    def callers(self, module: SourceModule, function: cst.FunctionDef) -> Iterator[_Call]:
        name, by_name = function.name.value, _called_as(module, function)
        yield from self.calls_by_name(by_name)
        if name in MODULE_CALLS or self.is_handed_on(name):
            for where, call in self.every(cst.Call):
                if last_name(call.func) == by_name or not _binds(module, function, call):
                    continue
                if any(each is function for _, each in self.called(where, call)):
                    yield where, call

    def fields_of(self, name: str) -> list[str]:
        """Of a class of the user's with annotated fields, in order."""
        for _, kind in self.every(cst.ClassDef):
            if kind.name.value == name:
                return fields_of(kind)
        return []

    def _of_names(self, names: set[str]) -> list[_Function]:
        """Functions by these names, and what calls of instances of these classes run."""
        found = [each for name in sorted(names) for each in self.functions(name)]
        for name in MODULE_CALLS:
            for where, each in self.functions(name):
                kind = where.class_of(each)
                if kind is not None and kind.name.value in names:
                    found.append((where, each))
        return found

    def _made_of(
        self, module: SourceModule, node: cst.BaseExpression, seen: set[cst.CSTNode]
    ) -> set[str]:
        """The user's classes, with their bases, and functions that the value of a name may be made
        of: `Net` after `net = Net()` and `step = torch.compile(net)`. Empty: unknown."""
        found: set[str] = set()
        for where, value in self._values_of(module, node):
            if value not in seen:
                seen.add(value)
                found |= self._names_in(where, value, seen)
        return found

    def _names_in(
        self, module: SourceModule, value: cst.BaseExpression, seen: set[cst.CSTNode]
    ) -> set[str]:
        made = last_name(value.func) if isinstance(value, cst.Call) else ""
        if made in self._classes:
            return self._classes[made]  # What it is given is another object.
        found: set[str] = set()
        for each in module.walk(value):
            above = module.parent(each)
            if not isinstance(each, (cst.Name, cst.Attribute)):
                continue
            if isinstance(above, cst.Attribute) and above.attr is each:
                continue
            name = last_name(each)
            if name in self._classes:
                found |= self._classes[name]
            elif isinstance(above, cst.Call) and above.func is each:
                for where, function in self.functions(name):
                    for line in where.walk(function.body):
                        if isinstance(line, cst.Return) and line.value and line not in seen:
                            seen.add(line)
                            found |= self._names_in(where, line.value, seen)
            elif isinstance(each, cst.Name) and self.functions(name):
                found.add(name)
            else:
                found |= self._made_of(module, each, seen)
        return found

    @cached_property
    def _classes(self) -> dict[str, set[str]]:
        """Each of the user's by name, with its bases."""
        found: dict[str, set[str]] = {}
        kinds = {kind.name.value: kind for _, kind in self.every(cst.ClassDef)}
        for name in kinds:
            left, known = [name], {name}
            while left:
                bases = {last_name(base.value) for base in kinds[left.pop()].bases}
                left += sorted((bases & kinds.keys()) - known)
                known |= bases & kinds.keys()
            found[name] = known
        return found

    def _values_of(
        self, module: SourceModule, node: cst.BaseExpression
    ) -> Iterator[tuple[SourceModule, cst.BaseExpression]]:
        """What is assigned to the name or attribute, what a loop gives it, what calls pass for
        it."""
        name = last_name(node.value if isinstance(node, cst.Subscript) else node)
        for where, each in self.every(cst.Assign):
            if any(last_name(target.target) == name for target in each.targets):
                yield where, each.value
        if not isinstance(node, cst.Name):
            return
        for where, each in self.every(cst.For):
            if name in {getattr(one, "value", None) for one in targets(each)}:
                yield where, each.iter
        function = module.function_of(node)
        if function is not None and name in parameters_of(function):
            for where, call in self.calls_by_name(_called_as(module, function)):
                given = argument_for(where, function, call, name)
                if given is not None:
                    yield where, given

    def _of_objects(self) -> list[_Function]:
        """A module's forward, or a function that is named where it is not called."""
        found = [each for name in MODULE_CALLS for each in self.functions(name)]
        every = self.every(cst.FunctionDef)
        return found + [each for each in every if self.is_handed_on(each[1].name.value)]

    def _is_object(self, module: SourceModule, func: cst.BaseExpression) -> bool:
        """Something that the program made: no function of a library, no method of one's object,
        no layer of torch's."""
        if isinstance(func, cst.Name):
            known = definitions_of(module, func)
            imports = (cst.Import, cst.ImportFrom, cst.ImportAlias)
            if not known or any(isinstance(each, imports) for each in known):
                return False
        elif not isinstance(func, cst.Attribute):
            return True
        name, kind = last_name(func), type(func)
        values = [
            (where, each.value)
            for where, each in self.every(cst.Assign)
            for target in each.targets
            if isinstance(target.target, kind) and last_name(target.target) == name
        ]
        if not values:
            return isinstance(func, cst.Name)
        return not all(_is_layer(where, value) for where, value in values)

    def _is_handed_on(self, name: str) -> bool:
        """Is a function of this name decorated, passed to something, or kept by another name?"""
        for module, each in self.every(cst.FunctionDef):
            for decorator in each.decorators if each.name.value == name else ():
                code = module.code(decorator.decorator).partition("(")[0]
                if code not in _AS_BEFORE:
                    return True
        for module, each in self.every(cst.Name):
            if each.value == name:
                above = module.parent(each)
                named = isinstance(above, cst.Attribute) and above.attr is each
                whole = above if named else each
                over = module.parent(whole) if whole is not None else None
                if isinstance(over, (cst.Arg, cst.Assign)) and over.value is whole:
                    return True
        return False


def _is_layer(module: SourceModule, node: cst.BaseExpression) -> bool:
    """`nn.Linear(4, 4)`; what holds other modules may be one of the user's."""
    meaning = module.meaning(node.func) if isinstance(node, cst.Call) else frozenset()
    of_torch = {name.rpartition(".")[2] for name in meaning if name.startswith("torch.nn.")}
    if of_torch & _HOLDERS and isinstance(node, cst.Call):
        return bool(node.args) and all(_is_layer(module, arg.value) for arg in node.args)
    return bool(of_torch)


def _called_as(module: SourceModule, function: cst.FunctionDef) -> str:
    """By its name, or for `__init__` by that of its class."""
    kind = module.class_of(function) if function.name.value == "__init__" else None
    return kind.name.value if kind is not None else function.name.value


def fields_of(kind: cst.ClassDef) -> list[str]:
    """The annotated names in the body of a class."""
    return [
        small.target.value
        for each in kind.body.body
        for small in (each.body if isinstance(each, cst.SimpleStatementLine) else ())
        if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name)
    ]


def last_name(node: cst.BaseExpression) -> str:
    """`update` of `cache.update`; empty for what is neither a name nor an attribute."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def parameter_for(
    module: SourceModule, function: cst.FunctionDef, call: cst.Call, arg: cst.Arg
) -> str | None:
    """The parameter that gets an argument; None where the function cannot be called so."""
    names = parameters_of(function)
    if arg.keyword is not None:
        return arg.keyword.value if arg.keyword.value in names else None
    before = call.args[: call.args.index(arg)]
    if any(each.star for each in before):
        raise Refused("it is passed after a `*` argument")
    place = len([each for each in before if each.keyword is None])
    found = (name for name in names if place_of(module, function, name) == place)
    return next(found, None) if _binds(module, function, call) else None


def argument_given(
    module: SourceModule, function: cst.FunctionDef, call: cst.Call, name: str
) -> cst.BaseExpression | None:
    """What a call passes for a parameter; None: its default."""
    if any(each.star for each in call.args):
        raise Refused("a call passes `*` or `**` arguments")
    return argument_for(module, function, call, name)


def field_given(call: cst.Call, name: str, place: int) -> cst.BaseExpression | None:
    """What a call of a class passes for one of its fields; None: its default."""
    if any(each.star for each in call.args):
        raise Refused("a call passes `*` or `**` arguments")
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    return plain[place] if place < len(plain) else None


def _binds(module: SourceModule, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Can the function be called with so many arguments, of these names?"""
    params = function.params
    every = [*params.posonly_params, *params.params]
    own = every[1:] if receiver_of(module, function) else every
    if any(each.star for each in call.args):
        return True
    names = {each.keyword.value for each in call.args if each.keyword is not None}
    count = len([each for each in call.args if each.keyword is None])
    needed = [each for each in own if each.default is None]
    missing = [each for each in needed[count:] if each.name.value not in names]
    known = {each.name.value for each in (*own, *params.kwonly_params)}
    fits = count <= len(own) or isinstance(params.star_arg, cst.Param)
    return fits and not missing and (names <= known or params.star_kwarg is not None)
