"""An optimizer's learning rate becomes a tensor, which a schedule changes in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compilescope.change.fixes.arguments.guarded import cause_of
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.regions import is_compiled
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_SETTING = re.compile(r"\.param_groups\[\d+\]\['(\w+)'\]")
_NAME = "lr"
"""The one setting that torch's optimizers take as a tensor (torch 2.13)."""
_PLACE = 1
"""Where they take it, if it is not given by name."""
_EXACT = kinds(lambda: (cst.MultiplyAssign, cst.DivideAssign, cst.AddAssign, cst.SubtractAssign))
"""Of float64, the same in Python and in torch, to the last digit."""


def _propose(subject: Subject) -> Patch:
    match = _SETTING.search(cause_of(subject).subject)
    if match is None:
        raise NotMeant("it is not a setting of an optimizer")
    if match[1] != _NAME:
        raise Refused(f"torch's optimizers do not take a tensor for `{match[1]}`")
    modules = own_modules(subject.program)
    module, call = _optimizer(modules)
    _check_one_group(modules)
    _check_not_replaced(modules, _names(module, call))
    _check_known(subject, modules)
    arg = _argument(call)
    if arg is None:
        raise Refused(f"the optimizer does not get its `{_NAME}` by name")
    if "tensor(" in module.code(arg.value):
        raise NotMeant("it is already a tensor")
    others = [each.keyword.value for each in call.args if each.keyword is not None]
    if {"foreach", "fused"} & set(others):
        raise Refused("foreach and fused optimizers do not accept a tensor for it everywhere")
    if not subject.program.facts.seen and any("get_last_lr" in each.text for each in modules):
        raise NeedsRun("the program reads the learning rate itself, which would be a tensor")
    edits = {module.path: (edit := Edit(module))}
    torch = edit.module_name("torch")
    text = f"{torch}.tensor({module.code(arg.value)}, dtype={torch}.float64)"
    edit.replace(arg.value, edit.expression(text))
    for each in modules:
        for node in _uses(each):
            _rewrite(subject, edits.setdefault(each.path, Edit(each)), node)
    files = {
        path: changed.text()
        for path, changed in edits.items()
        if changed.text() != changed.module.text
    }
    return Patch(files, states=f"The optimizer's `{_NAME}` is a tensor.")


def _optimizer(modules: list[SourceModule]) -> tuple[SourceModule, cst.Call]:
    made = [
        (module, call)
        for module in modules
        for call in module.walk()
        if isinstance(call, cst.Call) and _is_optimizer(module, call)
    ]
    if len(made) != 1:
        raise Refused("it is unclear which of the program's optimizers it belongs to")
    return made[0]


def _check_one_group(modules: list[SourceModule]) -> None:
    """All groups without a rate of their own would hold one tensor: halved for each, it would be
    halved twice for all (torch 2.13)."""
    for module in modules:
        for node in module.walk():
            if _makes_group(module, node):
                raise Refused("several groups of parameters would share the tensor")


def _makes_group(module: SourceModule, node: cst.CSTNode) -> bool:
    """`{"params": ...}`, `dict(params=...)`, `add_param_group`."""
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value == "params"
    if isinstance(node, cst.Attribute):
        return node.attr.value == "add_param_group"
    if not isinstance(node, cst.Call) or not module.calls(node, "builtins.dict"):
        return False
    return any(each.keyword is not None and each.keyword.value == "params" for each in node.args)


def _names(module: SourceModule, call: cst.Call) -> set[str]:
    """What the optimizer is called: `opt`, of an attribute its last name."""
    line = module.around(call, cst.Assign, cst.AnnAssign)
    return {module.code(each).split(".")[-1] for each in targets(line)} if line else set()


def _check_not_replaced(modules: list[SourceModule], names: set[str]) -> None:
    """What is loaded or updated is a number again."""
    for module in modules:
        for node in module.walk():
            if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
                continue
            owner, method = node.func.value, node.func.attr.value
            last = module.code(owner).split(".")[-1]
            loads = method == "load_state_dict" and (last in names or "opt" in last)
            if loads or (method in ("update", "setdefault") and _is_group(module, owner)):
                raise Refused(f"`{short(module, node)}` replaces the learning rate")


def _check_known(subject: Subject, modules: list[SourceModule]) -> None:
    """What may be a group, under a name that is not followed, would get a number or give a
    tensor."""
    for module in modules:
        rates = set(_uses(module))
        for node in module.walk():
            if not isinstance(node, cst.Subscript) or not _is_key(node) or node in rates:
                continue
            if _is_own_dict(module, node.value):
                continue
            line = module.around(node, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del)
            words = f"it is unclear whether `{short(module, node)}` is the optimizer's"
            if line is not None and node in targets(line):
                raise Refused(words)
            if not subject.program.facts.seen:
                raise NeedsRun(words)


def _is_own_dict(module: SourceModule, node: cst.BaseExpression) -> bool:
    """`settings = {"lr": 0.1}`."""
    return _is_bound(module, node, lambda value: isinstance(value, cst.Dict))


def _is_bound(
    module: SourceModule, node: cst.CSTNode, fits: Callable[[cst.BaseExpression], bool]
) -> bool:
    """A name that is only assigned what fits."""
    scope = module.scope(node) if isinstance(node, cst.Name) else None
    if scope is None or not isinstance(node, cst.Name):
        return False
    bound = [getattr(each, "node", None) for each in scope[node.value]]
    lines = [module.around(each, cst.Assign) if each is not None else None for each in bound]
    return bool(lines) and all(
        line is not None and bound[at] is line.targets[0].target and fits(line.value)
        for at, line in enumerate(lines)
    )


def _uses(module: SourceModule, within: cst.CSTNode | None = None) -> Iterator[cst.Subscript]:
    """`group["lr"]`, wherever it stands."""
    for node in module.walk(within) if within is not None else module.walk():
        if isinstance(node, cst.Subscript) and _is_key(node) and _is_group(module, node.value):
            yield node


def _is_key(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    value = index.value if isinstance(index, cst.Index) else None
    return isinstance(value, cst.SimpleString) and value.evaluated_value == _NAME


def _is_group(module: SourceModule, node: cst.BaseExpression) -> bool:
    """`optimizer.param_groups[0]`, or a name for one of them."""
    if isinstance(node, cst.Subscript):
        return _is_groups(module, node.value)
    if not isinstance(node, cst.Name):
        return False
    scope = module.scope(node)
    bound = [getattr(each, "node", None) for each in scope[node.value]] if scope else []
    return bool(bound) and all(each is not None and _binds_group(module, each) for each in bound)


def _is_groups(module: SourceModule, node: cst.CSTNode) -> bool:
    """`optimizer.param_groups`, or a name for it."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "param_groups"
    return _is_bound(
        module,
        node,
        lambda value: isinstance(value, cst.Attribute) and value.attr.value == "param_groups",
    )


def _binds_group(module: SourceModule, name: cst.CSTNode) -> bool:
    """`for group in optimizer.param_groups`, with or without `enumerate`; `group = ..[0]`."""
    where = module.around(name, cst.For, cst.CompFor, cst.Assign)
    if isinstance(where, cst.Assign):
        return isinstance(where.value, cst.Subscript) and _is_groups(module, where.value.value)
    if not isinstance(where, (cst.For, cst.CompFor)):
        return False
    over = where.iter
    if isinstance(over, cst.Call) and module.calls(over, "builtins.enumerate") and over.args:
        over = over.args[0].value
    return _is_groups(module, over)


def _rewrite(subject: Subject, edit: Edit, node: cst.Subscript) -> None:
    """What is assigned is written into the tensor; what is read is a number, as it was."""
    module = edit.module
    line = module.around(node, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del)
    stores = line is not None and node in targets(line)
    if is_compiled(subject, module, node):
        if stores:
            raise Refused("compiled code sets the learning rate, which would stay a tensor")
        if not subject.program.facts.seen:
            # Of float32 without dimensions, or of whole numbers, it would make float64.
            raise NeedsRun("compiled code of the program itself computes with the learning rate")
        return  # A tensor is what the graph is to read.
    if not stores:
        if not _is_within_store(module, node):
            edit.replace(node, _item(edit, node))
    elif isinstance(line, cst.AugAssign):
        if not isinstance(line.operator, _EXACT):
            raise Refused(f"`{short(module, line)}` may round differently for a tensor")
    elif isinstance(line, cst.Assign) and len(line.targets) == 1 and line.targets[0].target is node:
        reads: dict[cst.CSTNode, cst.BaseExpression] = {
            each: _item(edit, each) for each in _uses(module, line.value)
        }
        fill = edit.expression(f"{module.code(node)}.fill_")
        edit.replace(line, cst.Expr(cst.Call(fill, [cst.Arg(replaced(line.value, reads))])))
    else:
        raise Refused(f"`{short(module, line or node)}` sets more than the learning rate")


def _item(edit: Edit, node: cst.Subscript) -> cst.BaseExpression:
    return edit.expression(f"{edit.module.code(node)}.item()")


def _is_within_store(module: SourceModule, node: cst.Subscript) -> bool:
    """It is part of what is assigned to a rate, which is rewritten as a whole."""
    line = module.around(node, cst.Assign)
    if line is None:
        return False
    rates = set(_uses(module, line))
    return any(each in rates for each in targets(line))


def _is_optimizer(module: SourceModule, call: cst.Call) -> bool:
    return any(
        name.startswith("torch.optim.") and ".lr_scheduler" not in name
        for name in module.meaning(call.func)
    )


def _argument(call: cst.Call) -> cst.Arg | None:
    for number, each in enumerate(call.args):
        if each.keyword is not None and each.keyword.value == _NAME:
            return each
        if each.keyword is None and not each.star and number == _PLACE:
            return each
    return None


FIX = Fix(
    id="tensor-learning-rate",
    title="make the learning rate a tensor",
    rules=frozenset({"recompile/optimizer-setting", "recompile/number-needed"}),
    order=145,
    kind="source",
    why="torch's optimizers accept a tensor for `lr`, and schedulers change it in place, so "
    "its value is not part of the graph. Where the program sets it, `fill_` writes into the same "
    "tensor. It is float64, like the Python float.",
    propose=_propose,
)
