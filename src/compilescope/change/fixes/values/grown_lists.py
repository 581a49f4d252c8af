"""Lists of tensors that only grow and are only joined, under all the names that they go by.

Where nobody counts, indexes or iterates over what a list holds, one tensor with all of it does as
well. The list itself stays the same object, so it does not matter who shares it; what matters is
that each place that can see it is known. A list is followed from name to name: assignments,
arguments of the user's own functions, loops, and lists or dicts that hold it. Attributes and string
keys are followed by their name alone, whatever object they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from compilescope.change.fixes.arguments.callers import (
    Callers,
    argument_given,
    field_given,
    fields_of,
    last_name,
    parameter_for,
)
from compilescope.change.fixes.compilation.own_files import related_to
from compilescope.change.fixes.values.list_uses import (
    JOINS,
    Growth,
    Join,
    check_index,
    dim_of,
    growth_of,
    is_asked,
    is_without,
    key_of,
    looks_at_all_items,
)
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, local_names
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_OPEN = ("vars", "asdict", "astuple", "__dict__", "locals")
_BY_WORD = ("getattr", "setattr", "hasattr", "delattr")
"""What reads attributes by other ways than their name."""
_MOST = 400
"""Names. Chosen: a cache has some ten; what has so many is no cache."""
_Slot: TypeAlias = "tuple[Any, ...]"


class GrownList(NamedTuple):
    """One list, or several that the code does not tell apart."""

    growths: tuple[Growth, ...]
    joins: tuple[Join, ...]
    names: frozenset[str]
    """The last words of its names: `ks`, `past`."""

    @property
    def dim(self) -> int:
        return self.joins[0].dim


def grown_list(modules: Sequence[SourceModule], first: Growth) -> GrownList:
    """The list that a statement adds to. Raises `Refused` where the program may do more with it
    than add to it, join it in one dimension, empty it and ask whether it is empty."""
    trail = _ListTrail(related_to(first.module, modules))
    trail.follow(first.module, first.held)
    trail.look()
    if not trail.joins:
        raise Refused(f"`{short(first.module, first.held)}` is not joined by `torch.cat`")
    dims = sorted({each.dim for each in trail.joins})
    if len(dims) > 1:
        raise Refused(f"it is joined in dimension {dims[0]} and in dimension {dims[1]}")
    return GrownList(tuple(trail.growths), tuple(trail.joins), frozenset(trail.names))


class _ListTrail:
    """The places that may see one list. A depth of 1 is a list or dict of such lists."""

    def __init__(self, modules: Sequence[SourceModule]) -> None:
        self._modules = modules
        self._callers = Callers(modules)
        self._depths: dict[_Slot, int] = {}
        self._waiting: list[tuple[_Slot, int]] = []
        self._sources: set[tuple[cst.CSTNode, int]] = set()
        self.growths: list[Growth] = []
        self.joins: list[Join] = []
        self.names: set[str] = set()

    def follow(self, module: SourceModule, node: cst.BaseExpression, depth: int = 0) -> None:
        """What is kept under this name is such a list."""
        if isinstance(node, cst.Subscript):
            key = key_of(node)
            if key is None:
                check_index(module, node)
                self.follow(module, node.value, depth + 1)
                return
            slot: _Slot = ("key", key)
            self.names.add(key)
        elif isinstance(node, cst.Attribute):
            slot = ("attribute", node.attr.value)
            self.names.add(node.attr.value)
        elif isinstance(node, cst.Name):
            slot = _slot_of_name(module, node)
            self.names.add(node.value)
        else:
            raise Refused(f"`{short(module, node)}` may be that list, or another")
        self._add(slot, depth, node, module)

    def _add(self, slot: _Slot, depth: int, node: cst.CSTNode, module: SourceModule) -> None:
        known = self._depths.setdefault(slot, depth)
        if known != depth:
            raise Refused(f"`{short(module, node)}` is a list and a list of lists")
        if (slot, depth) not in self._waiting:
            self._waiting.append((slot, depth))
        if len(self._waiting) > _MOST:
            raise Refused("the list goes by too many names")

    def look(self) -> None:
        for slot, depth in self._waiting:  # It grows while it is walked.
            if slot[0] == "name":
                self._look_at_name(slot, depth)
            elif slot[0] == "attribute":
                self._look_at_attribute(slot[1], depth)
            else:
                self._look_at_key(slot[1], depth)

    # Where a name stands

    def _look_at_name(self, slot: _Slot, depth: int) -> None:
        _, module, owner, name = slot
        if owner is None and any(_imports(each, name) for each in self._modules):
            raise Refused(f"`{name}` is imported by another file")
        for node in module.walk(owner):
            if not isinstance(node, cst.Name) or node.value != name:
                continue
            above = module.parent(node)
            attribute = isinstance(above, cst.Attribute) and above.attr is node
            keyword = isinstance(above, cst.Arg) and above.keyword is node
            if attribute or keyword or isinstance(above, cst.NameItem):
                continue
            if _slot_of_name(module, node) != slot:
                continue
            if isinstance(above, cst.Param) and above.name is node:
                self._given(module, owner, above, depth)
            else:
                self._check(module, node, depth)

    def _look_at_attribute(self, name: str, depth: int) -> None:
        for module in self._modules:
            for node in module.walk():
                if isinstance(node, cst.Attribute) and node.attr.value == name:
                    above = module.parent(node)
                    # No list can be called: `state.keys()` is about something else.
                    if not (isinstance(above, cst.Call) and above.func is node):
                        self._check(module, node, depth)
                elif isinstance(node, cst.SimpleString) and node.evaluated_value == name:
                    raise Refused(f"`{short(module, node)}` may name the attribute")
                elif isinstance(node, (cst.Name, cst.Attribute)):
                    _check_is_closed(module, node)
                elif isinstance(node, cst.ClassDef):
                    self._look_at_fields(module, node, name, depth)

    def _look_at_fields(
        self, module: SourceModule, kind: cst.ClassDef, name: str, depth: int
    ) -> None:
        """`ks: list = field(default_factory=list)`, and what a call of the class gives it."""
        fields = fields_of(kind)
        for each in kind.body.body:
            small = each.body[0] if isinstance(each, cst.SimpleStatementLine) else None
            bound = [small.target] if isinstance(small, cst.AnnAssign) else []
            bound += [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
            if any(isinstance(each, cst.Name) and each.value == name for each in bound):
                assert isinstance(small, (cst.AnnAssign, cst.Assign))
                if small.value is not None:
                    self._source(module, small.value, depth)
        if name not in fields:
            return
        for where, call in self._callers.calls_by_name(kind.name.value):
            given = field_given(call, name, fields.index(name))
            if given is not None:
                self._source(where, given, depth)

    def _look_at_key(self, key: str, depth: int) -> None:
        for module in self._modules:
            for node in module.walk():
                if isinstance(node, cst.Subscript) and key_of(node) == key:
                    self._check(module, node, depth)
                elif isinstance(node, cst.SimpleString) and node.evaluated_value == key:
                    above = module.parent(node)
                    if isinstance(above, cst.DictElement) and above.key is node:
                        self._source(module, above.value, depth)
                    elif not isinstance(above, cst.Index):
                        raise Refused(f"`{short(module, above or node)}` may be about the list")
                elif isinstance(node, cst.Call) and module.calls(node, "builtins.dict"):
                    for arg in node.args:
                        if arg.keyword is not None and arg.keyword.value == key:
                            self._source(module, arg.value, depth)
                elif (
                    isinstance(node, cst.Call)
                    and looks_at_all_items(node)
                    and not self._is_other_dict(node.func, key)
                ):
                    raise Refused(f"`{short(module, node)}` may see the list")

    def _is_other_dict(self, func: cst.BaseExpression, key: str) -> bool:
        """`config.items()`, where `config` is only ever a dict that is written out, without it."""
        name = last_name(func.value) if isinstance(func, cst.Attribute) else ""
        bound = [each.name.value for _, each in self._callers.every(cst.Param)]
        values = [
            each.value
            for _, each in self._callers.every(cst.Assign)
            if any(last_name(target.target) == name for target in each.targets)
        ]
        return (
            bool(values)
            and name not in bound
            and all(isinstance(each, cst.Dict) and is_without(each, key) for each in values)
        )

    # What is done with it

    def _check(self, module: SourceModule, node: cst.BaseExpression, depth: int) -> None:
        """Raises `Refused` where more is done there than with a list that is only joined."""
        above = module.parent(node)
        if isinstance(above, cst.Attribute) and above.value is node:
            self._check_method(module, above, depth)
        elif isinstance(above, cst.Arg) and above.value is node:
            self._check_argument(module, above, depth)
        elif isinstance(above, cst.AssignTarget):
            self._check_assigned(module, module.parent(above), depth)
        elif isinstance(above, cst.AnnAssign) and above.target is node:
            self._check_assigned(module, above, depth)
        elif isinstance(above, cst.Assign):
            for target in above.targets:
                self._bind(module, target.target, depth)
        elif isinstance(above, cst.AnnAssign) and above.value is node:
            self.follow(module, above.target, depth)
        elif isinstance(above, cst.AugAssign) and above.target is node:
            growth = growth_of(module, module.statement_of(above))
            if growth is not None and not depth:
                self.growths.append(growth)
            else:
                self._refuse(module, above)
        elif isinstance(above, cst.Subscript) and above.value is node and depth:
            # An item of string keys is followed by its key as well; of one dict it is this.
            check_index(module, above)
            self._check(module, above, depth - 1)
        elif isinstance(above, (cst.Element, cst.DictElement)) and above.value is node:
            self._check_held(module, above, depth)
        elif isinstance(above, cst.For) and above.iter is node and depth:
            self._bind(module, above.target, depth - 1)
        elif isinstance(above, cst.For) and above.target is node:
            self._source(module, above.iter, depth + 1)
        elif isinstance(above, cst.Return):
            self._check_returned(module, above, depth)
        elif isinstance(above, cst.Del):
            pass  # The name goes, the list does not change.
        elif not is_asked(module, node):
            self._refuse(module, above or node)

    def _refuse(self, module: SourceModule, node: cst.CSTNode) -> None:
        raise Refused(f"`{short(module, node)}` does more with the list than join it")

    def _check_method(self, module: SourceModule, method: cst.Attribute, depth: int) -> None:
        call = module.parent(method)
        if not isinstance(call, cst.Call) or call.func is not method:
            self._refuse(module, method)
        assert isinstance(call, cst.Call)
        name, line = method.attr.value, module.statement_of(call)
        alone = isinstance(module.parent(call), cst.Expr)
        if name == "clear" and alone:
            return
        growth = growth_of(module, line) if name == "append" and alone else None
        if growth is None:
            self._refuse(module, call)
        elif depth:
            self._source(module, growth.value, depth - 1)
        else:
            self.growths.append(growth)

    def _check_argument(self, module: SourceModule, arg: cst.Arg, depth: int) -> None:
        call = module.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            self._refuse(module, call or arg)
        assert isinstance(call, cst.Call)
        if not depth and module.calls(call, *JOINS):
            self.joins.append(Join(module, call, dim_of(module, call)))
        elif depth and module.calls(call, "builtins.len"):
            return
        elif depth and module.calls(call, "builtins.enumerate", "builtins.zip"):
            loop = module.parent(call)
            if not isinstance(loop, cst.For) or loop.iter is not call:
                self._refuse(module, call)
            assert isinstance(loop, cst.For)
            place = call.args.index(arg) + module.calls(call, "builtins.enumerate")
            target = loop.target
            parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            if len(parts) <= place:
                self._refuse(module, call)
            self._bind(module, parts[place].value, depth - 1)
        else:
            self._check_passed(module, call, arg, depth)

    def _check_passed(self, module: SourceModule, call: cst.Call, arg: cst.Arg, depth: int) -> None:
        """To a function of the user's: what it calls its parameter is the list too."""
        found = False
        for where, function in self._callers.called(module, call):
            param = parameter_for(where, function, call, arg)
            if param is not None:
                found = True
                self._add(("name", where, function, param), depth, arg, module)
                self.names.add(param)
        if not found:
            fields = self._callers.fields_of(last_name(call.func))
            place = None if arg.keyword is not None else call.args.index(arg)
            named = arg.keyword.value if arg.keyword is not None else ""
            if place is not None and place < len(fields):
                named = fields[place]
            if named not in fields:
                self._refuse(module, call)
            self._add(("attribute", named), depth, arg, module)
            self.names.add(named)

    def _check_assigned(
        self, module: SourceModule, statement: cst.CSTNode | None, depth: int
    ) -> None:
        if isinstance(statement, (cst.Assign, cst.AnnAssign)) and statement.value is not None:
            self._source(module, statement.value, depth)
            if isinstance(statement, cst.Assign) and len(statement.targets) > 1:
                for target in statement.targets:  # `past = self.ks = []`
                    self._bind(module, target.target, depth)
        elif not isinstance(statement, cst.AnnAssign):
            raise Refused("the list comes from somewhere else")

    def _check_held(
        self, module: SourceModule, element: cst.Element | cst.DictElement, depth: int
    ) -> None:
        whole = module.parent(element)
        if not isinstance(whole, (cst.List, cst.Tuple, cst.Dict)):
            self._refuse(module, whole or element)
        assert isinstance(whole, (cst.List, cst.Tuple, cst.Dict))
        above = module.parent(whole)
        if isinstance(above, cst.AssignTarget) or (
            isinstance(above, (cst.For, cst.CompFor)) and above.target is whole
        ):
            # `ks, vs = cache[i]`: the loop or the right side is looked at from its own place.
            self._check_unpacked(module, whole, above, whole.elements.index(element), depth)
            return
        if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
            self.names.add(str(element.key.evaluated_value))
            self._add(("key", str(element.key.evaluated_value)), depth, element, module)
        elif isinstance(above, cst.Return) and isinstance(whole, cst.Tuple):
            self._check_returned(module, above, depth, whole.elements.index(element))
        else:
            self._check(module, whole, depth + 1)

    def _check_unpacked(
        self,
        module: SourceModule,
        whole: cst.CSTNode,
        above: cst.CSTNode,
        place: int,
        depth: int,
    ) -> None:
        if isinstance(above, cst.AssignTarget):
            statement = module.parent(above)
            assert isinstance(statement, cst.Assign)
            value = statement.value
            given = self._returned(module, value) if isinstance(value, cst.Call) else []
            if isinstance(value, cst.Tuple):
                given.append((module, value))
            for where, each in given:
                parts = each.elements if isinstance(each, cst.Tuple) else ()
                if len(parts) <= place:
                    self._refuse(where, each)
                self._source(where, parts[place].value, depth)
            if not given:
                self._source(module, value, depth + 1)
        elif isinstance(above, cst.For) and isinstance(above.iter, cst.Call):
            # `for layer, past in zip(layers, pasts)`
            call = above.iter
            place -= module.calls(call, "builtins.enumerate")
            plain = module.calls(call, "builtins.enumerate", "builtins.zip")
            if not plain or not 0 <= place < len(call.args) or any(e.star for e in call.args):
                self._refuse(module, call)
            self._source(module, call.args[place].value, depth + 1)
        elif isinstance(above, cst.For):
            self._source(module, above.iter, depth + 2)
        else:
            self._refuse(module, above)

    def _bind(self, module: SourceModule, target: cst.BaseExpression, depth: int) -> None:
        """What a loop calls it."""
        if isinstance(target, (cst.Tuple, cst.List)) and depth:
            for each in target.elements:
                self._bind(module, each.value, depth - 1)
        else:
            self.follow(module, target, depth)

    def _check_returned(
        self, module: SourceModule, line: cst.Return, depth: int, place: int | None = None
    ) -> None:
        """By its function, to all that may call it; `place` in a tuple."""
        function = module.function_of(line)
        calls = list(self._callers.callers(module, function)) if function is not None else []
        if function is None or not calls:
            raise Refused(f"`{short(module, line)}` hands the list to it is unknown whom")
        for where, call in calls:
            above = where.parent(call)
            if place is None:
                if not isinstance(above, cst.Expr):
                    self._check(where, call, depth)
                continue
            targets = (
                [each.target for each in above.targets] if isinstance(above, cst.Assign) else []
            )
            if not targets and not isinstance(above, cst.Expr):
                self._refuse(where, above or call)
            for target in targets:
                parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
                if len(parts) <= place or any(isinstance(e, cst.StarredElement) for e in parts):
                    self._refuse(where, above or call)
                self._bind(where, parts[place].value, depth)

    # Where it comes from

    def _source(self, module: SourceModule, node: cst.BaseExpression, depth: int) -> None:
        """Raises `Refused` where this may be something else than such lists."""
        if (node, depth) in self._sources:
            return
        self._sources.add((node, depth))
        if isinstance(node, cst.Name) and node.value == "None":
            return
        if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
            self.follow(module, node, depth)
        elif isinstance(node, cst.IfExp):
            self._source(module, node.body, depth)
            self._source(module, node.orelse, depth)
        elif isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
            self._source(module, node.left, depth)
            self._source(module, node.right, depth)
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            self._source(module, node.left, depth)
        elif isinstance(node, (cst.List, cst.Tuple, cst.Dict)):
            if not depth and not isinstance(node, cst.List):
                raise Refused(f"`{short(module, node)}` is no list")
            for each in node.elements:
                if not isinstance(each, (cst.Element, cst.DictElement)):
                    raise Refused(f"`{short(module, node)}` may hold anything")
                if depth:
                    self._source(module, each.value, depth - 1)
        elif isinstance(node, (cst.ListComp, cst.DictComp)) and depth:
            item = node.elt if isinstance(node, cst.ListComp) else node.value
            self._source(module, item, depth - 1)
        elif isinstance(node, cst.Call):
            self._source_call(module, node, depth)
        else:
            raise Refused(f"`{short(module, node)}` may be more than a list that begins empty")

    def _source_call(self, module: SourceModule, call: cst.Call, depth: int) -> None:
        if not call.args and module.calls(call, "builtins.list", "builtins.dict"):
            return
        if module.calls(call, "dataclasses.field"):
            made = next(
                (a.value for a in call.args if a.keyword and a.keyword.value == "default_factory"),
                None,
            )
            if isinstance(made, cst.Lambda):
                self._source(module, made.body, depth)
                return
            if made is not None and module.means(made, "builtins.list", "builtins.dict"):
                return
        elif isinstance(call.func, (cst.Name, cst.Attribute)):
            returned = self._returned(module, call)
            for where, value in returned:
                self._source(where, value, depth)
            if returned:
                return
        raise Refused(f"`{short(module, call)}` may be more than a list that begins empty")

    def _returned(
        self, module: SourceModule, call: cst.Call
    ) -> list[tuple[SourceModule, cst.BaseExpression]]:
        """What the functions return that a call may run."""
        return [
            (where, each.value)
            for where, function in self._callers.called(module, call)
            for each in where.walk(function.body)
            if isinstance(each, cst.Return)
            and each.value is not None
            and where.function_of(each) is function
        ]

    def _given(
        self, module: SourceModule, function: cst.FunctionDef | None, param: cst.Param, depth: int
    ) -> None:
        """By all that may call the function."""
        if function is None or param.star:
            raise Refused(f"`{param.name.value}` comes from somewhere else")
        if param.default is not None:
            self._source(module, param.default, depth)
        found = False
        for where, call in self._callers.callers(module, function):
            arg = argument_given(module, function, call, param.name.value)
            if arg is not None:
                found = True
                self._source(where, arg, depth)
        if not found and param.default is None:
            raise Refused(f"it is unknown what `{function.name.value}` is called with")


def _slot_of_name(module: SourceModule, node: cst.Name) -> _Slot:
    """The variable: its function, and its name. In the body of a class it is an attribute."""
    inner: cst.CSTNode = node
    for above in module.ancestors(node):
        if isinstance(above, (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)):
            bound = [each for each in module.walk(above) if isinstance(each, cst.CompFor)]
            if any(node.value in module.names_in(each.target) for each in bound):
                raise Refused(f"`{short(module, above)}` may do anything with the list")
        elif isinstance(above, cst.Lambda):
            if node.value in {each.name.value for each in above.params.params}:
                raise Refused(f"`{short(module, above)}` may do anything with the list")
        # Decorators and annotations are of the function around it.
        elif (
            isinstance(above, cst.FunctionDef)
            and _is_inside(inner, above)
            and node.value in local_names(above)
        ):
            return ("name", module, above, node.value)
        inner = above
    return ("name", module, None, node.value)


def _is_inside(part: cst.CSTNode, function: cst.FunctionDef) -> bool:
    return part is function.body or part is function.params


def _imports(module: SourceModule, name: str) -> bool:
    """From another file; what all of a file's names are imported from may have it too."""
    for node in module.walk():
        if isinstance(node, cst.ImportFrom):
            if isinstance(node.names, cst.ImportStar):
                return True
            if any(isinstance(a.name, cst.Name) and a.name.value == name for a in node.names):
                return True
        elif isinstance(node, cst.Attribute) and node.attr.value == name:
            known = definitions_of(module, node.value) if isinstance(node.value, cst.Name) else ()
            if any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in known):
                return True
    return False


def _check_is_closed(module: SourceModule, node: cst.Name | cst.Attribute) -> None:
    name, above = last_name(node), module.parent(node)
    by_word = isinstance(above, cst.Call) and name in _BY_WORD and len(above.args) > 1
    if by_word and isinstance(above.args[1].value, cst.SimpleString):  # type: ignore[union-attr]
        return
    if name in _OPEN or name in _BY_WORD:
        raise Refused(f"`{short(module, above or node)}` may see the list by another way")
