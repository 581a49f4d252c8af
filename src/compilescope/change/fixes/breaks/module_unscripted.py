"""A module compiled by TorchScript, used as it is: Dynamo cannot look into a scripted one."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import only_value
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_SCRIPTS = ("torch.jit.script", "torch.jit.freeze", "torch.jit.optimize_for_inference")
_STATES = "The module is no longer a TorchScript module."


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    func = _used(subject)
    value = only_value(subject, func)
    plain = value
    while isinstance(plain, cst.Call) and module.calls(plain, *_SCRIPTS):
        if len(plain.args) != 1 or plain.args[0].keyword is not None:
            raise Refused("TorchScript is called with arguments of its own")
        plain = plain.args[0].value
    if plain is value:
        raise NotMeant(f"`{module.code(func)}` is not scripted in this file")
    _check_uses(module, func)
    edit.replace(value, plain)
    return Patch(edit.files(), states=_STATES)


def _used(subject: Subject) -> cst.BaseExpression:
    """The module, by the name that it is called or read by."""
    node = subject.node
    if isinstance(node, (cst.Name, cst.Attribute)):
        return node
    call = next((each for each in subject.module.walk(node) if isinstance(each, cst.Call)), None)
    if call is None:
        raise NotMeant("no module is called here")
    return call.func


def _check_uses(module: SourceModule, func: cst.BaseExpression) -> None:
    """Raises `Refused` where more is done with it than calling it."""
    shown = module.code(func)
    for node in module.walk():
        if isinstance(node, (cst.Name, cst.Attribute)) and module.code(node) == shown:
            above = module.parent(node)
            if (
                isinstance(above, cst.Attribute)
                and above.value is node
                and above.attr.value not in ("eval", "train", "parameters", "to", "state_dict")
            ):
                raise Refused(f"`{module.code(above)}` is used, which a plain module may not have")
            if isinstance(above, cst.Arg) and not isinstance(node, cst.Attribute):
                call = module.parent(above)
                if isinstance(call, cst.Call) and not module.calls(call, "torch.compile"):
                    raise Refused(
                        f"`{shown}` is passed to `{module.code(call.func)}`, which may need "
                        "TorchScript"
                    )


FIX = Fix(
    id="module-unscripted",
    title="use the plain module instead of its TorchScript version",
    rules=frozenset({"GB4695", "GB0357"}),
    order=115,
    kind="source",
    why="`torch.jit.script` compiles a module that does the same without it. `torch.compile` "
    "does that job better, and needs the plain module.",
    propose=_propose,
)
