"""`torch.func` transforms instead of those of `torch.autograd.functional`."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_NEW = {
    "torch.autograd.functional.jacobian": "jacrev",
    "torch.autograd.functional.hessian": "hessian",
}


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    call = next((each for each in module.walk(subject.node) if module.calls(each, *_NEW)), None)
    if not isinstance(call, cst.Call):
        raise NotMeant("no torch.autograd.functional function is called here")
    if len(call.args) != 2 or any(arg.keyword is not None or arg.star for arg in call.args):
        raise Refused("it is called with more than the function and its input")
    function, given = (arg.value for arg in call.args)
    if isinstance(given, (cst.Tuple, cst.List)):
        raise Refused("torch.func returns a different result for several inputs")
    if isinstance(given, cst.Name) and subject.is_tensor(given.value) is False:
        raise Refused("torch.func returns a different result for several inputs")
    (name,) = module.meaning(call.func) & set(_NEW)
    torch = edit.module_name("torch")
    shown, of = module.code(function), module.code(given)
    edit.replace(call, edit.expression(f"{torch}.func.{_NEW[name]}({shown})({of}.detach())"))
    return Patch(edit.files())


FIX = Fix(
    id="functional-for-autograd",
    title="use torch.func instead of torch.autograd.functional",
    rules=frozenset({"GB0055"}),
    order=60,
    kind="source",
    why="`torch.func.jacrev` and `hessian` compute the same derivatives, and Dynamo traces "
    "them. The old functions return a result without autograd history, so the input is "
    "detached.",
    propose=_propose,
)
