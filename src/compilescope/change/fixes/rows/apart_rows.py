"""Work on rows that treats each of them alone while nothing trains, by how it is written.

One more row then changes nothing of the others. Batch normalisation with its running statistics and
dropout are such work in evaluation; a mean, a maximum or a softmax over the rows never is.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.branches.layers import makers_of
from compilescope.change.fixes.rows.empty_work import LAYERS_BY_ROW
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensor_sizes import helper_of
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_LAYERS = LAYERS_BY_ROW | frozenset(
    {f"{kind}{n}d" for kind in ("Conv", "ConvTranspose", "BatchNorm") for n in (1, 2, 3)}
    | {f"{kind}Pool{n}d" for kind in ("Avg", "Max", "AdaptiveAvg") for n in (1, 2, 3)}
    | {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "GroupNorm", "Embedding"}
)
"""Layers of torch that compute row by row while they do not train."""
_HOLDING = ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict")
_MIXING = operators.REDUCTIONS - {"numel"} | operators.named(
    "softmax log_softmax softmin cumsum cumprod cummax cummin sort argsort topk kthvalue mode "
    "unique flip roll matmul mm cat stack outer einsum cdist std_mean var_mean batch_norm "
    "multi_head_attention_forward scaled_dot_product_attention cosine_similarity nonzero bincount"
)
"""Across rows, unless a dimension other than the first is named."""
_HARMLESS = frozenset({"len", "int", "float", "range", "tuple", "list", "isinstance", "getattr"})
_HOOKS = ("forward_hook", "forward_pre_hook")
_MOST_STEPS = 5
"""From a layer into those that it is made of. Chosen: beyond, nobody can tell."""


def check_apart(subject: Subject, work: Sequence[cst.CSTNode]) -> None:
    """Raises `Refused` where rows may be seen together."""
    for statement in work:
        _check(subject, subject.module, statement, _MOST_STEPS)


def _check(subject: Subject, module: SourceModule, node: cst.CSTNode, depth: int) -> None:
    for each in module.walk(node):
        if isinstance(each, cst.BinaryOperation) and isinstance(each.operator, cst.MatrixMultiply):
            raise Refused(f"`{short(module, each)}` may see several rows")
        if isinstance(each, cst.Call):
            _check_call(subject, module, each, depth)


def _check_call(subject: Subject, module: SourceModule, call: cst.Call, depth: int) -> None:
    name = operator_of(module, call)
    if name is not None:
        if name in _MIXING and not _names_other_dimension(module, call):
            raise Refused(f"`{short(module, call)}` may see several rows")
        return
    func = call.func
    if isinstance(func, cst.Name) and func.value in _HARMLESS:
        return
    if isinstance(func, cst.Attribute) and func.attr.value in ("size", "dim", "item", "new_zeros"):
        return
    shown = f"it is unknown what `{short(module, call)}` does"
    if not depth:
        raise Refused(shown)
    helper = helper_of(module, call)
    if helper is not None:
        _check(subject, module, helper.body, depth - 1)
        return
    _check_unhooked(subject, module, call)
    made = makers_of(subject, module, call, seen=False)
    if not made:
        raise Refused(shown)
    for home, expression in made:
        _check_made(subject, home, expression, depth)


def _check_unhooked(subject: Subject, module: SourceModule, call: cst.Call) -> None:
    """Raises `Refused` where the file of the layer or the script hooks code into layers: it would
    see one more row. What hooks from elsewhere do shows when the program runs."""
    homes = [module]
    if subject.program.main:
        homes.append(subject.program.module(subject.program.main))
    for home in homes:
        names = {each.value for each in home.walk() if isinstance(each, cst.Name)}
        if any(word in name for name in names for word in _HOOKS):
            shown = short(module, call)
            raise Refused(f"it calls `{shown}`, and the program hooks code into layers")


def _names_other_dimension(module: SourceModule, call: cst.Call) -> bool:
    """`x.mean(1)`, `x.softmax(dim=-1)`, `torch.cat([a, b], dim=-1)`."""
    function = any(each.startswith("torch.") for each in module.meaning(call.func))
    given: list[cst.BaseExpression] = []
    for place, arg in enumerate(call.args):
        if arg.keyword is not None:
            given += [arg.value] if arg.keyword.value in ("dim", "axis") else []
        elif place == int(function):
            given.append(arg.value)
    if len(given) != 1:
        return False
    parts = [e.value for e in given[0].elements] if isinstance(given[0], cst.Tuple) else given
    numbers = [number(each) for each in parts]
    return all(isinstance(each, int) and each != 0 for each in numbers)


def _check_made(
    subject: Subject, module: SourceModule, made: cst.BaseExpression, depth: int
) -> None:
    """What an expression makes that is called with rows."""
    if isinstance(made, (cst.List, cst.Tuple)):
        for element in made.elements:
            _check_made(subject, module, element.value, depth)
    elif isinstance(made, (cst.ListComp, cst.GeneratorExp)):
        _check_made(subject, module, made.elt, depth)
    elif isinstance(made, cst.IfExp):
        _check_made(subject, module, made.body, depth)
        _check_made(subject, module, made.orelse, depth)
    elif isinstance(made, cst.Call) and module.calls(made, *_HOLDING):
        for arg in made.args:
            _check_made(subject, module, arg.value, depth)
    elif isinstance(made, cst.Call):
        _check_layer(subject, module, made, depth)
    else:
        raise Refused(f"it is unknown what `{short(module, made)}` is")


def _check_layer(subject: Subject, module: SourceModule, made: cst.Call, depth: int) -> None:
    shown = short(module, made)
    for meaning in module.meaning(made.func):
        package, _, name = meaning.rpartition(".")
        if package == "torch.nn":
            named = {arg.keyword.value for arg in made.args if arg.keyword is not None}
            if name in _LAYERS and "track_running_stats" not in named:
                return
            raise Refused(f"a layer with `{shown}` may see several rows")
    name = made.func.value if isinstance(made.func, cst.Name) else ""
    classes = [
        each for each in module.walk() if isinstance(each, cst.ClassDef) and each.name.value == name
    ]
    forward = [
        each
        for owner in classes
        for each in owner.body.body
        if isinstance(each, cst.FunctionDef) and each.name.value == "forward"
    ]
    if len(forward) != 1 or not depth:
        raise Refused(f"it is unknown what `{shown}` does with rows")
    _check(subject, module, forward[0].body, depth - 1)
