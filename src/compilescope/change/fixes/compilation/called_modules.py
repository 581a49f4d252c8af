"""The modules that a compiled function calls, and where each of them is made: what can be compiled
in place of the function itself.

A call is followed into functions and methods of the same file. What is called on a line that must
stay outside is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from compilescope.change.fixes.arguments.calls import argument_for
from compilescope.change.fixes.compilation.regions import Region
from compilescope.knowledge.source.syntax.bindings import definitions_of, parameters_of, receiver_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_DEEPEST = 3
"""Functions within functions that are followed. Chosen: a step calls a loss, which calls a model;
deeper ones are mostly a library's."""
_FORWARD = ("forward", "__call__")
_CONTAINERS = ("Sequential", "ModuleList", "Transformer")
"""How the names of torch's modules begin that hold others: one layer alone is no graph worth its
call, and all that are compiled by their own forward share one limit (torch 2.13)."""
_USED = ("parameters(", "state_dict(", "train(", "eval(", "named_parameters(", "zero_grad(")
"""What is called on a module, and on little else."""
_LOOPS = kinds(lambda: (cst.For, cst.CompFor))


class CalledModule(msgspec.Struct, frozen=True):
    """A module that a function calls."""

    module: SourceModule
    made: cst.CSTNode
    """The statement that binds what it is reached by."""
    path: str
    """How it is spelled there: `model`, `self.net`, `model.backbone`."""
    value: cst.BaseExpression | None = None
    """What it was made by, where that is known."""
    items: bool = False
    """It is each module in there."""

    @property
    def is_torchs(self) -> bool:
        """Is its forward torch's own? Dynamo skips such a frame, and what it calls
        (torch 2.13): `Module.compile()` would compile nothing."""
        found = [self.value] if self.value is not None else []
        if self.items:
            found = [each for value in found for each in _items(value)]
        return any(_is_torchs(self.source or self.module, each) for each in found)

    source: SourceModule | None = None
    """The file of `value`, where it is another one."""

    def attribute(
        self, name: str, value: cst.BaseExpression | None = None, source: SourceModule | None = None
    ) -> CalledModule:
        """What it holds."""
        path = f"{self.path}.{name}"
        return msgspec.structs.replace(self, path=path, value=value, source=source)


Known = Mapping[str, "CalledModule | None"]
"""By the names that a function has for them: modules, and None for what is none."""


class ModuleCalls:
    """Looks for the modules that one compiled function calls."""

    def __init__(self, region: Region, lost: Mapping[cst.FunctionDef, set[int]]) -> None:
        """`lost`: by function, the lines on which something must stay outside."""
        self._region = region
        self._lost = lost

    def of(self, module: SourceModule, function: cst.FunctionDef) -> list[CalledModule]:
        """Of the function that is compiled, each once, in the order of their calls."""
        receiver = self._receiver(module, function)
        found = self._in(module, function, receiver, None, 0)
        return list({(each.module.path, each.path): each for each in found}.values())

    def _receiver(self, module: SourceModule, function: cst.FunctionDef) -> CalledModule | None:
        """The object that a method is compiled for, where the application names it."""
        region, name = self._region, function.name.value
        if not receiver_of(module, function) or region.form == "decorator":
            return None
        target = region.target
        if isinstance(target, cst.Attribute) and target.attr.value == name:
            return CalledModule(region.module, region.node, region.module.code(target.value))
        if is_path(target):
            assert target is not None
            return CalledModule(region.module, region.node, region.module.code(target))
        names = [each for each in region.names if each.replace(".", "_").isidentifier()]
        return CalledModule(region.module, region.node, names[0]) if len(names) == 1 else None

    def _in(
        self,
        module: SourceModule,
        function: cst.FunctionDef,
        receiver: CalledModule | None,
        known: Known | None,
        depth: int,
    ) -> Iterator[CalledModule]:
        lost = self._lost.get(function, set())
        for node in _calls(module, function):
            is_lost = bool(_lines(module, node) & lost)
            inner = self._function(module, function, node)
            if inner is not None:
                if depth < _DEEPEST and (not is_lost or inner in self._lost):
                    given = self._given(module, function, inner, node, receiver, known)
                    same = receiver if receiver_of(module, inner) else None
                    yield from self._in(module, inner, same, given, depth + 1)
                continue
            called = self._module(module, function, node.func, receiver, known)
            if called is None or called.path.rpartition(".")[2] in _FORWARD:
                continue
            if not is_lost:
                yield called
            elif depth < _DEEPEST and not called.items:
                ways = [f for f in self._lost if f is not function and f.name.value in _FORWARD]
                for each in ways[:1]:
                    yield from self._in(module, each, called, None, depth + 1)

    def _function(
        self, module: SourceModule, function: cst.FunctionDef, call: cst.Call
    ) -> cst.FunctionDef | None:
        """Of the same file, where the call is one of a function or of an own method."""
        func = call.func
        if isinstance(func, cst.Name):
            defined = definitions_of(module, func)
            only = defined[0] if len(defined) == 1 else None
            return only if isinstance(only, cst.FunctionDef) else None
        owner = module.class_of(function)
        receiver = receiver_of(module, function)
        if owner is None or not isinstance(func, cst.Attribute):
            return None
        if not (isinstance(func.value, cst.Name) and func.value.value == receiver):
            return None
        return method_of(owner, func.attr.value)

    def _given(
        self,
        module: SourceModule,
        function: cst.FunctionDef,
        inner: cst.FunctionDef,
        call: cst.Call,
        receiver: CalledModule | None,
        known: Known | None,
    ) -> Known:
        """What the parameters of a function are, where one call of it says."""
        found: dict[str, CalledModule | None] = {}
        for name in parameters_of(inner):
            value = argument_for(module, inner, call, name)
            path = value if is_path(value) else None
            found[name] = (
                self._module(module, function, path, receiver, known) if path is not None else None
            )
        return found

    def _module(
        self,
        module: SourceModule,
        function: cst.FunctionDef,
        node: cst.CSTNode,
        receiver: CalledModule | None,
        known: Known | None,
    ) -> CalledModule | None:
        """What a name or an attribute of a function stands for; None where it is no module."""
        if isinstance(node, cst.Attribute):
            return self._attribute(module, function, node, receiver, known)
        if not isinstance(node, cst.Name):
            return None
        if node.value == receiver_of(module, function):
            return receiver
        if known is not None and node.value in known:
            return known[node.value]
        defined = definitions_of(module, node)
        over = [_looped_over(module, each) for each in defined]
        if over and all(is_path(each) for each in over):
            codes = {module.code(each) for each in over if each is not None}
            listed = over[0] if len(codes) == 1 else None
            if listed is None:
                return None
            found = self._module(module, function, listed, receiver, known)
            return msgspec.structs.replace(found, items=True) if found is not None else None
        alias = _value(module, defined[0]) if len(defined) == 1 else None
        if is_path(alias):
            assert alias is not None
            return self._module(module, function, alias, receiver, known)
        return bound_module(module, function, node, self._region, 0)

    def _attribute(
        self,
        module: SourceModule,
        function: cst.FunctionDef,
        node: cst.Attribute,
        receiver: CalledModule | None,
        known: Known | None,
    ) -> CalledModule | None:
        """`self.head`, where the class gives itself one."""
        name = node.attr.value
        if not isinstance(node.value, cst.Name) or node.value.value != receiver_of(
            module, function
        ):
            return None
        owner = module.class_of(function)
        made = attributes_made(module, owner, name) if owner is not None else []
        used = any(f"{name}.{each}" in module.text for each in _USED)
        if not any(
            _is_module(module, each.value) or (used and is_path(each.value)) for each in made
        ):
            return None
        value = made[-1].value
        if receiver is not None:
            return receiver.attribute(name, value, module)
        return CalledModule(module, made[-1], module.code(made[-1].targets[0].target), value)


def bound_module(
    module: SourceModule, function: cst.FunctionDef, name: cst.Name, region: Region, depth: int
) -> CalledModule | None:
    """Where a name gets the module that a function calls by it: of a parameter, what all calls of
    the function give for it."""
    defined = definitions_of(module, name)
    if any(isinstance(each, cst.Param) for each in defined) or name.value in parameters_of(
        function
    ):
        return _handed_in(module, function, name.value, region, depth)
    bound = [_assignment(module, each) for each in defined]
    made = [each for each in bound if each is not None]
    if not made or len(made) < len(defined):
        return None
    used = any(f"{name.value}.{each}" in module.text for each in _USED)
    likely = any(_is_module(module, each.value) for each in made)
    if not (likely or (used and any(isinstance(each.value, cst.Call) for each in made))):
        return None
    last = max(made, key=module.line)
    return CalledModule(module, _after_all(module, made, last), name.value, last.value)


def _handed_in(
    module: SourceModule, function: cst.FunctionDef, name: str, region: Region, depth: int
) -> CalledModule | None:
    if depth >= _DEEPEST:
        return None
    called = {function.name.value, *(region.names if depth == 0 else ())}
    found: dict[tuple[str, str], CalledModule] = {}
    for node in module.walk():
        if not isinstance(node, cst.Call) or module.code(node.func) not in called:
            continue
        value = argument_for(module, function, node, name)
        outer = module.function_of(node)
        if not isinstance(value, cst.Name):
            return None
        made = (
            bound_module(module, outer, value, region, depth + 1)
            if outer is not None
            else bound_module(module, function, value, region, _DEEPEST)
        )
        if made is None:
            return None
        found[made.module.path, made.path] = made
    return next(iter(found.values())) if len(found) == 1 else None


def _after_all(module: SourceModule, made: list[cst.Assign], last: cst.Assign) -> cst.CSTNode:
    """The last statement that binds it; where some do in branches, what is around all branches."""
    lines = [module.statement_of(each) for each in made]
    if len({id(module.block_of(each)) for each in lines}) == 1:
        return last
    blocks = [module.block_of(each) for each in lines]
    outermost = min(blocks, key=lambda block: sum(1 for _ in module.ancestors(block)))
    for above in (module.statement_of(last), *module.ancestors(last)):
        if isinstance(above, cst.BaseStatement) and module.parent(above) in (
            outermost,
            *module.ancestors(outermost),
        ):
            return above
    return last


def attributes_made(module: SourceModule, owner: cst.ClassDef, name: str) -> list[cst.Assign]:
    """`self.head = ...` in the methods of a class."""
    found = []
    for node in module.walk(owner.body):
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            function = module.function_of(node)
            if (
                isinstance(target, cst.Attribute)
                and target.attr.value == name
                and isinstance(target.value, cst.Name)
                and function is not None
                and target.value.value == receiver_of(module, function)
            ):
                found.append(node)
    return found


def method_of(owner: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    for each in owner.body.body:
        if isinstance(each, cst.FunctionDef) and each.name.value == name:
            return each
    return None


def is_path(node: cst.CSTNode | None) -> bool:
    """`model`, `self.net.head`."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _is_module(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Is it made of a class, `Net()`, `nn.Conv2d(3, 3).to(device)`, that computes enough? Or is it
    used as a module?"""
    if not isinstance(value, cst.Call):
        return False
    func = _maker(value)
    made = func.attr.value if isinstance(func, cst.Attribute) else module.code(func)
    own = [each for each in module.tree.body if isinstance(each, cst.ClassDef)]
    named = {each.name.value: each for each in own}
    if made in named:
        return method_of(named[made], "forward") is not None or not _is_plain(named[made])
    if any(each.startswith("torch.") for each in module.meaning(func)):
        return _is_torchs(module, value) and made.startswith(_CONTAINERS)
    return made[:1].isupper()  # A class of another file.


def _maker(value: cst.Call) -> cst.BaseExpression:
    """`Net` of `Net().to(device)`."""
    func = value.func
    while isinstance(func, cst.Attribute) and isinstance(func.value, cst.Call):
        func = func.value.func
    return func


def _is_torchs(module: SourceModule, value: cst.BaseExpression) -> bool:
    """`nn.Sequential(...)`."""
    if not isinstance(value, cst.Call):
        return False
    names = [each.split(".") for each in module.meaning(_maker(value))]
    return any(each[:2] == ["torch", "nn"] and each[-1][:1].isupper() for each in names)


def _items(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`Block()` of `nn.ModuleList([Block() for _ in range(4)])`."""
    for arg in value.args if isinstance(value, cst.Call) else ():
        if isinstance(arg.value, (cst.List, cst.Tuple)):
            yield from (each.value for each in arg.value.elements)
        else:
            yield arg.value.elt if isinstance(arg.value, cst.BaseSimpleComp) else arg.value


def _is_plain(owner: cst.ClassDef) -> bool:
    """A class of nothing else: no module that inherits its `forward`."""
    return not owner.bases


def _calls(module: SourceModule, function: cst.FunctionDef) -> list[cst.Call]:
    """Of what has a plain name, in the order in which they run."""
    found = [
        node
        for node in module.walk(function.body)
        if isinstance(node, cst.Call) and is_path(node.func)
    ]

    def end(call: cst.Call) -> tuple[int, int]:
        place = module.position(call).end
        return place.line, place.column

    return sorted(found, key=end)


def _lines(module: SourceModule, node: cst.CSTNode) -> set[int]:
    place = module.position(node)
    return set(range(place.start.line, place.end.line + 1))


def _looped_over(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    """`self.blocks` of `for block in self.blocks`, or of `for n, block in enumerate(...)`."""
    above = module.parent(node)
    if isinstance(above, _LOOPS) and above.target is node:
        return above.iter
    pair = module.parent(above) if isinstance(above, cst.Element) else None
    loop = module.parent(pair) if isinstance(pair, cst.Tuple) else None
    if not isinstance(pair, cst.Tuple) or not isinstance(loop, _LOOPS) or len(pair.elements) < 2:
        return None
    over = loop.iter
    if not isinstance(over, cst.Call) or module.code(over.func) != "enumerate" or not over.args:
        return None
    return over.args[0].value if pair.elements[1] is above else None


def _assignment(module: SourceModule, node: cst.CSTNode) -> cst.Assign | None:
    found = module.around(node, cst.Assign)
    if found is None or len(found.targets) != 1 or found.targets[0].target is not node:
        return None
    return found


def _value(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    found = _assignment(module, node)
    return found.value if found is not None else None
