"""The device as an argument of what makes tensors, instead of a `with torch.device(...)`."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.cuts import is_light_value
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_receiver, local_names
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_MAKING = frozenset(
    f"torch.{name}"
    for name in (
        *("tensor", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm"),
        *("arange", "linspace", "logspace", "eye", "tril_indices", "triu_indices"),
    )
)
_PLAIN = ("torch.", "math.", "builtins.len", "builtins.int", "builtins.float", "builtins.range")


def _propose(subject: Subject) -> Patch:
    from compilescope.knowledge.source.syntax.transformers import WithArgument

    module, entered = subject.module, subject.statement
    if not isinstance(entered, cst.With) or len(entered.items) != 1:
        raise NotMeant("no device is entered by itself here")
    item = entered.items[0]
    if not module.calls(item.item, "torch.device") and not _is_device(subject, item.item):
        raise NotMeant("what is entered is not a torch.device")
    if item.asname is not None or not isinstance(entered.body, cst.IndentedBlock):
        raise Refused("the `with` statement is on one line or binds a name")
    assert isinstance(item.item, (cst.Call, cst.Name, cst.Attribute))
    if isinstance(item.item, cst.Call) and not all(
        is_light_value(module, arg.value) for arg in item.item.args
    ):
        raise Refused("the device is computed here")
    making = []
    for call in [each for each in module.walk(entered.body) if isinstance(each, cst.Call)]:
        if module.meaning(call.func) & _MAKING:
            if not any(
                arg.keyword is not None and arg.keyword.value == "device" for arg in call.args
            ):
                making.append(call)
        elif not _is_plain(subject, call):
            raise Refused(f"`{module.code(call.func)}` may create tensors of its own")
    if not making:
        raise NotMeant("no tensor is created inside")
    edit = Edit(module)
    device = edit.expression(f"f(device={module.code(item.item)})")
    assert isinstance(device, cst.Call)
    given = WithArgument(making, device.args[0])
    body = [each.visit(given) for each in entered.body.body]
    edit.replace_statement(entered, body)  # type: ignore[arg-type]
    return Patch(edit.files())


def _is_device(subject: Subject, node: cst.BaseExpression) -> bool:
    return any(fact.type == "torch.device" for fact in subject.facts(subject.module.code(node)))


def _is_plain(subject: Subject, call: cst.Call) -> bool:
    """A function of torch, or a method of a variable of the function."""
    if any(name.startswith(_PLAIN) for name in subject.module.meaning(call.func)):
        return not any(
            name.startswith("torch.nn.") and name.split(".")[-1][0].isupper()
            for name in subject.module.meaning(call.func)
        )
    root: cst.BaseExpression = call.func
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, cst.BinaryOperation):
        return True
    return (
        isinstance(call.func, cst.Attribute)
        and isinstance(root, cst.Name)
        and root.value in local_names(subject.function)
        and not is_receiver(subject.module, root)
    )


FIX = Fix(
    id="device-given",
    title="pass device= instead of with torch.device",
    rules=frozenset({"context-manager"}),
    order=35,
    kind="source",
    why="The context only sets the device of tensors created without one. Passing it to each "
    "of them does the same.",
    propose=_propose,
)
