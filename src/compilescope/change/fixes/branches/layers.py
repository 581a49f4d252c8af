"""What calling a layer does besides computing, by how the program makes it.

`layer(x)` of `for layer in self.layers:` is whatever `self.layers = nn.ModuleList(...)` holds:
layers of torch that only compute, or the program's own classes whose `forward` only calls such.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.flow.purity import remarks, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import is_receiver, statements_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_COMPUTING = frozenset(
    {"Identity", "Linear", "Bilinear", "LayerNorm", "GroupNorm", "RMSNorm", "LocalResponseNorm"}
    | {f"Conv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)}
    | {
        f"{kind}Pool{n}d"
        for kind in ("Avg", "AdaptiveAvg", "Max", "AdaptiveMax")
        for n in (1, 2, 3)
    }
    | {"ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "GLU"}
    | {"Sigmoid", "Tanh", "Tanhshrink", "Softplus", "Softshrink", "Softsign", "LogSigmoid"}
    | {"Softmax", "Softmin", "LogSoftmax", "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink"}
    | {"Flatten", "Unflatten", "Upsample", "PixelShuffle", "PixelUnshuffle", "Threshold"}
    | {"ZeroPad1d", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d"}
    | {"GRUCell", "LSTMCell", "RNNCell"}
)
"""Layers of torch that draw nothing, keep nothing and raise for no value; in training too."""
_HOLDING = ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict")
_ATTACHED = ("hook", "spectral_norm", "weight_norm", "parametrization", "prune")
"""In names of functions that make a layer do more than its class says. `parametrize` alone is also
pytest's, and whoever uses that of torch calls `register_parametrization`."""
_PUTTING = ("append", "insert", "extend", "pop", "add_module", "update", "__setitem__")
_MOST_STEPS = 5
"""From a layer into those that it is made of. Chosen: beyond, nobody can tell."""


def calls_of_layers(subject: Subject, node: cst.CSTNode) -> list[cst.Call]:
    """Calls in it of layers that only compute. Raises `Refused` for one that may do more."""
    module, found = subject.module, []
    for each in module.walk(node):
        if isinstance(each, cst.Call) and _is_layer(subject, each):
            _check_computes(subject, each)
            found.append(each)
    return found


def holds_layers(subject: Subject, node: cst.BaseExpression) -> bool:
    """`self.layers`, which the class sets to a list of layers: Dynamo knows how many there are."""
    module = subject.module
    made = set_by_class(module, node, node) if isinstance(node, cst.Attribute) else []
    return bool(made) and all(module.calls(each, *_HOLDING) for each in made)


def _is_layer(subject: Subject, call: cst.Call) -> bool:
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return False
    seen = subject.facts(subject.module.code(call.func))
    if seen:
        return all(fact.kind == "module" for fact in seen)
    return bool(_made(subject.module, call))


def check_unhooked(subject: Subject, call: cst.Call) -> None:
    """Raises `Refused` where the program may have made layers do more than their classes say."""
    shown = short(subject.module, call)
    for each in own_modules(subject.program):
        names = {node.value for node in each.walk() if isinstance(node, cst.Name)}
        if any(word in name for name in names for word in _ATTACHED):
            raise Refused(f"the branch calls `{shown}`, and the program attaches code to layers")


def makers_of(
    subject: Subject, module: SourceModule, call: cst.Call, *, seen: bool
) -> list[tuple[SourceModule, cst.BaseExpression]]:
    """The expressions that make the layer which is called: `expert` of a loop over
    `self.experts`, `self.experts[i]`, also by a name of its own. `seen`: a run has come by, and
    must have seen none but those."""
    func: cst.BaseExpression | None = call.func
    made = _made(module, call)
    if not made:
        function = module.function_of(call)
        if isinstance(func, cst.Name) and function is not None:
            func = only_value(module, function, func.value)
        if isinstance(func, cst.Subscript):
            func = func.value
        if isinstance(func, cst.Attribute):
            made = [(module, each) for each in set_by_class(module, call, func)]
    return made if made and (not seen or _are_seen(subject, call, made)) else []


def _check_computes(subject: Subject, call: cst.Call) -> None:
    module = subject.module
    shown = short(module, call)
    check_unhooked(subject, call)
    made = _made(module, call)
    if not made or not _are_seen(subject, call, made):
        raise Refused(f"the branch calls `{shown}`, and it is unknown what layer that is")
    for home, expression in made:
        reason = _reason(subject, home, expression, _MOST_STEPS)
        if reason:
            raise Refused(f"the branch calls `{shown}`, {reason}")


def _are_seen(
    subject: Subject, call: cst.Call, made: list[tuple[SourceModule, cst.BaseExpression]]
) -> bool:
    """Is what a run showed among what the class makes, and not put there by somebody else?"""
    seen = subject.facts(subject.module.code(call.func))
    nodes = [each for home, one in made for each in home.walk(one)]
    named = {each.value for each in nodes if isinstance(each, cst.Name)}
    return all(fact.type.rpartition(".")[2] in named for fact in seen)


def _made(module: SourceModule, call: cst.Call) -> list[tuple[SourceModule, cst.BaseExpression]]:
    """The expressions that make the layer which is called, by `self.head` or a loop's variable."""
    func = call.func
    if isinstance(func, cst.Attribute):
        return [(module, each) for each in set_by_class(module, call, func)]
    loop = module.around(call, cst.For)
    while loop is not None and isinstance(func, cst.Name):
        held = dict(_gone_through(module, loop.target, loop.iter)).get(func.value)
        if held is not None:
            return [(module, each) for each in set_by_class(module, call, held)]
        loop = module.around(loop, cst.For)
    return []


def _gone_through(
    module: SourceModule, target: cst.CSTNode, iterated: cst.BaseExpression
) -> Iterator[tuple[str, cst.Attribute]]:
    """Of `for i, (a, b) in enumerate(zip(self.xs, self.ys))`, `a` goes through `self.xs`."""
    if isinstance(target, cst.Name) and isinstance(iterated, cst.Attribute):
        yield target.value, iterated
    if not isinstance(iterated, cst.Call):
        return
    held = [arg.value for arg in iterated.args if arg.keyword is None and not arg.star]
    parts = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else []
    if module.calls(iterated, "builtins.enumerate") and len(parts) == 2 and held:
        yield from _gone_through(module, parts[1], held[0])
    elif module.calls(iterated, "builtins.zip") and len(parts) == len(held):
        for part, each in zip(parts, held, strict=True):
            yield from _gone_through(module, part, each)
    elif module.calls(iterated, "builtins.reversed", "builtins.list") and len(held) == 1:
        yield from _gone_through(module, target, held[0])


def set_by_class(
    module: SourceModule, node: cst.CSTNode, attribute: cst.Attribute
) -> list[cst.BaseExpression]:
    """All that the class sets `self.x` to; nothing where another than `self` has it, or where the
    file sets an attribute of that name elsewhere too."""
    if not is_receiver(module, attribute.value):
        return []
    function = module.function_of(node)
    home = module.class_of(function) if function is not None else None
    found = []
    for each in module.walk():
        if isinstance(each, cst.Attribute) and each.attr.value == attribute.attr.value:
            added = _added(module, each)
            found += [added] if added is not None else []
            if added is None and _is_changed(module, each):
                return []
        if not isinstance(each, cst.Assign):
            continue
        for named in (target.target for target in each.targets):
            if isinstance(named, cst.Attribute) and named.attr.value == attribute.attr.value:
                inside = module.function_of(each)
                if inside is not None and home is not None and module.class_of(inside) is home:
                    found.append(each.value)
                elif not is_receiver(module, named.value):
                    return []
    return found


def _added(module: SourceModule, held: cst.Attribute) -> cst.BaseExpression | None:
    """`Block(dim)` of `self.blocks.append(Block(dim))`."""
    method = module.parent(held)
    if not isinstance(method, cst.Attribute) or method.attr.value != "append":
        return None
    call = module.parent(method)
    own = isinstance(call, cst.Call) and is_receiver(module, held.value) and len(call.args) == 1
    return call.args[0].value if own else None  # type: ignore[union-attr]


def _is_changed(module: SourceModule, held: cst.Attribute) -> bool:
    """`net.blocks[1] = ...`, `net.blocks.insert(0, ...)`: an item is put in, by whom ever."""
    above = module.parent(held)
    if isinstance(above, cst.Subscript) and above.value is held:
        return isinstance(module.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del))
    return isinstance(above, cst.Attribute) and above.attr.value in _PUTTING


def _reason(subject: Subject, module: SourceModule, made: cst.BaseExpression, depth: int) -> str:
    """Why calling what the expression makes may show; empty where it only computes."""
    if depth == 0:
        return "which is made of too many others to tell what it does"
    if isinstance(made, (cst.List, cst.Tuple)):
        parts = [element.value for element in made.elements]
        return next(filter(None, (_reason(subject, module, e, depth) for e in parts)), "")
    if isinstance(made, (cst.ListComp, cst.GeneratorExp)):
        return _reason(subject, module, made.elt, depth)
    if not isinstance(made, cst.Call):
        return f"and it is unknown what `{short(module, made)}` is"
    if module.calls(made, *_HOLDING):
        held = (_reason(subject, module, arg.value, depth) for arg in made.args)
        return next(filter(None, held), "")
    for meaning in module.meaning(made.func):
        package, _, name = meaning.rpartition(".")
        if package == "torch.nn":
            return _reason_of_torch(module, made, name)
    return _reason_of_class(subject, module, made, depth)


def _reason_of_torch(module: SourceModule, made: cst.Call, name: str) -> str:
    in_place = any(arg.keyword is not None and arg.keyword.value == "inplace" for arg in made.args)
    if name in _COMPUTING and not in_place:
        return ""
    zero = made.args and isinstance(made.args[0].value, (cst.Integer, cst.Float))
    if name == "Dropout" and zero and float(made.args[0].value.evaluated_value) == 0:  # type: ignore[attr-defined]
        return ""
    return f"a layer with `{short(module, made)}`, which does more than compute"


def class_of_layer(
    subject: Subject, module: SourceModule, made: cst.Call
) -> tuple[SourceModule, cst.FunctionDef] | None:
    """The `forward` of the program's own class that is called to make a layer, or of one in the
    same file of a library, and that file. None where calling the layer may be another thing."""
    name = made.func.value if isinstance(made.func, cst.Name) else ""
    homes = {home.path: home for home in (*own_modules(subject.program), module)}
    found = [
        (home, each)
        for home in homes.values()
        for each in home.walk()
        if isinstance(each, cst.ClassDef) and each.name.value == name
    ]
    if len(found) != 1:
        return None
    home, owner = found[0]
    methods = {e.name.value: e for e in owner.body.body if isinstance(e, cst.FunctionDef)}
    plain = len(owner.bases) == 1 and home.means(owner.bases[0].value, "torch.nn.Module")
    if not plain or "forward" not in methods or "__call__" in methods or owner.decorators:
        return None
    return (home, methods["forward"]) if not methods["forward"].decorators else None


def _reason_of_class(subject: Subject, module: SourceModule, made: cst.Call, depth: int) -> str:
    found = class_of_layer(subject, module, made)
    if found is None:
        return f"and it is unknown what `{short(module, made.func)}` does"
    home, forward = found
    for statement in statements_of(forward):
        reason = _reason_of_statement(subject, home, statement, depth)
        if reason:
            return reason
    return ""


def _reason_of_statement(
    subject: Subject, module: SourceModule, statement: cst.CSTNode, depth: int
) -> str:
    """Of a class's own `forward`: it sets local names, and gives back what it computes."""
    shown = f"whose class does more than compute: `{short(module, statement)}`"
    for part in getattr(statement, "body", ()) if _is_line(statement) else (None,):
        value = getattr(part, "value", None)
        local = isinstance(part, cst.Assign) and all(
            isinstance(target.target, cst.Name) for target in part.targets
        )
        if isinstance(part, cst.Expr) and isinstance(value, cst.SimpleString):
            continue
        if not local and not isinstance(part, cst.Return):
            return shown
        layers = []
        for call in module.walk(value) if value is not None else ():
            if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
                continue
            made = set_by_class(module, call, call.func)
            if made:
                reasons = (_reason(subject, module, each, depth - 1) for each in made)
                if reason := next(filter(None, reasons), ""):
                    return reason
                layers.append(call)
        if not isinstance(value, cst.CSTNode):
            continue
        for remark in remarks(module, value):
            known = remark.call is not None and any(remark.call is each for each in layers)
            if not known and remark.concern not in ("steep", "costly"):
                return shown
    return ""


def _is_line(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine)
