"""Pieces of a function that are nothing but functions of torch over what they are given."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.bindings import local_names, parameters_of
from compilescope.fixes.source.constants import is_pure
from compilescope.fixes.subject import Subject

_FORBIDDEN = (
    cst.With,
    cst.Try,
    cst.While,
    cst.Yield,
    cst.Await,
    cst.Global,
    cst.Nonlocal,
    cst.Raise,
)
_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        "len",
        "int",
        "float",
        "bool",
        "range",
        "sum",
        "max",
        "min",
        "abs",
        "zip",
        "tuple",
        "list",
    )
)
_NOT_PURE = ("torch.save", "torch.load", "torch.manual_seed", "torch.set_", "torch.distributed")
_RANDOM = ("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "dropout")


def check_pure(subject: Subject, statement: cst.BaseStatement) -> None:
    """Raises `Refused` for whatever a graph could not stand for: an effect, a random number, a
    change of what it is given."""
    module = subject.module
    for node in module.walk(statement):
        if isinstance(node, _FORBIDDEN):
            raise Refused("the code does more than compute")
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)) and not isinstance(
            node.target, (cst.Name, cst.Tuple)
        ):
            raise Refused("the code changes its inputs")
        if (
            isinstance(node, cst.AugAssign)
            and isinstance(node.target, cst.Name)
            and node.target.value in parameters_of(subject.function)
        ):
            raise Refused("the code changes its inputs")
        if isinstance(node, cst.Call):
            _check_call(subject, node)


def _check_call(subject: Subject, call: cst.Call) -> None:
    module = subject.module
    shown = module.code(call.func)
    meanings = module.meaning(call.func)
    word = shown.split(".")[-1]
    if word in _RANDOM or (word.endswith("_") and not word.endswith("__")):
        raise Refused(f"`{shown}` draws random numbers or changes a tensor in place")
    if any(name.startswith(_NOT_PURE) for name in meanings):
        raise Refused(f"`{shown}` may do more than compute")
    if meanings & _BUILTINS or is_pure(module, call):
        return
    if any(name.startswith(("torch.", "math.")) for name in meanings):
        return
    root: cst.BaseExpression = call.func
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, (cst.BinaryOperation, cst.UnaryOperation)):
        return
    local = local_names(subject.function) - {"self", "cls"}
    known = isinstance(root, cst.Name) and root.value in local
    if isinstance(call.func, cst.Attribute) and known:
        return
    raise Refused(f"`{shown}` may do more than compute")
