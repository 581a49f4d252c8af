"""Whether an expression of a function may be evaluated when the function begins."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.bindings import bound_names, local_names
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject

_SOMETIMES = (
    cst.If,
    cst.IfExp,
    cst.BooleanOperation,
    cst.For,
    cst.While,
    cst.Try,
    cst.With,
    cst.Lambda,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.Match,
    cst.Assert,
)
_READING = frozenset(
    {
        "torch.is_inference_mode_enabled",
        "torch.get_num_threads",
        "torch.get_default_dtype",
        "os.getcwd",
        "os.getpid",
        "os.cpu_count",
        "os.path.exists",
        "os.path.isfile",
        "os.path.isdir",
        "threading.get_ident",
        "threading.current_thread",
        "socket.gethostname",
        "sys.getsizeof",
        "inspect.getsource",
        "platform.node",
        "platform.system",
    }
)
_QUIET_TYPES = (
    "torch.",
    "math.",
    "builtins.len",
    "builtins.int",
    "builtins.float",
    "builtins.range",
)


def check_early(
    subject: Subject, value: cst.BaseExpression, before: Sequence[cst.BaseStatement]
) -> None:
    """Raises `Refused` where `value` could be another one, or have another effect, if it were
    evaluated ahead of these statements."""
    module, function = subject.module, subject.function
    for above in module.ancestors(value):
        if above is function.body:
            break
        if isinstance(above, _SOMETIMES):
            raise Refused("it is only evaluated on some paths through the function")
    names = module.names_in(value)
    changed = bound_names(before)
    for name in sorted(names & changed & local_names(function)):
        raise Refused(f"it needs `{name}`, which the function computes first")
    if _is_reading(module, value) and not _stores(module, before):
        return
    for each in before:
        for node in module.walk(each):
            if isinstance(node, cst.Call) and not _is_quiet(subject, node):
                raise Refused(f"`{module.code(node)}` runs first and could affect it")
    if _stores(module, before):
        raise Refused("the function stores something first, which could affect it")


def _is_reading(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Does it only look something up?"""
    if isinstance(value, cst.Attribute):
        return True
    if not isinstance(value, cst.Call):
        return False
    if module.meaning(value.func) & _READING:
        return True
    func = value.func
    return isinstance(func, cst.Attribute) and func.attr.value in ("get", "is_inference")


def _stores(module: SourceModule, before: Sequence[cst.BaseStatement]) -> bool:
    """Is an attribute or an element set?"""
    for each in before:
        for node in module.walk(each):
            if isinstance(
                node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)
            ) and not isinstance(node.target, (cst.Name, cst.Tuple)):
                return True
    return False


def _is_quiet(subject: Subject, call: cst.Call) -> bool:
    """A function of torch, or a method of a local tensor that changes nothing."""
    meanings = subject.module.meaning(call.func)
    if any(name.startswith(_QUIET_TYPES) for name in meanings):
        return not _ends_in_place(call)
    func = call.func
    if not isinstance(func, cst.Attribute) or _ends_in_place(call):
        return False
    root = func.value
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, (cst.BinaryOperation, cst.UnaryOperation)):
        return True
    return isinstance(root, cst.Name) and root.value in local_names(subject.function) - {"self"}


def _ends_in_place(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name.endswith("_") and not name.endswith("__")
