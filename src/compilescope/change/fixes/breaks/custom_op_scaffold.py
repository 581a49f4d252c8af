"""A call into C, wrapped in a custom operator whose fake implementation a person must complete."""

from __future__ import annotations

import re
from pathlib import Path

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import known_tensor
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_of_module, is_receiver
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.toplevel import top_statement
from compilescope.knowledge.source.trees import cst

_ASK = (
    "Does the operator's fake return the same shape, dtype and device as the call? Does the "
    "call leave its arguments unchanged and return new memory? Does it need a backward?"
)
_NUMBERS = {"builtins.int": "int", "builtins.float": "float", "builtins.bool": "bool"}


def _propose(subject: Subject) -> Patch:
    module, node = subject.module, subject.node
    call = node if isinstance(node, cst.Call) else module.around(node, cst.Call)
    if not isinstance(call, cst.Call):
        raise NotMeant("nothing is called here")
    root = call.func
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name) or not is_of_module(module, root):
        raise NotMeant("what is called is not a module-level name")
    if any(name.startswith(("torch.", "builtins.")) for name in module.meaning(call.func)):
        raise NotMeant("it is a torch or Python function")
    names = _arguments(subject, call)
    kinds = {name: _kind(subject, name) for name in names}
    tensors = [name for name, kind in kinds.items() if kind == "Tensor"]
    if not tensors:
        raise NotMeant("the call takes no tensor, so an operator would have nothing to depend on")
    edit = Edit(module)
    torch = edit.module_name("torch")
    word = call.func.attr.value if isinstance(call.func, cst.Attribute) else root.value
    name = module.fresh_name(f"{word.strip('_')}_op")
    stem = re.sub(r"\W", "_", Path(module.path).stem)
    typed = ", ".join(
        f"{each}: {f'{torch}.Tensor' if kind == 'Tensor' else kind}" for each, kind in kinds.items()
    )
    text = f"""
        @{torch}.library.custom_op("{stem}::{name}", mutates_args=())
        def {name}({typed}) -> {torch}.Tensor:
            return {module.code(call)}


        @{name}.register_fake
        def _({", ".join(names)}):
            return {torch}.empty_like({tensors[0]})
    """
    edit.put_definition_before(top_statement(module, subject.function), text)
    edit.replace(call, edit.expression(f"{name}({', '.join(names)})"))
    return Patch(edit.files(), needs_human=_ASK)


def _arguments(subject: Subject, call: cst.Call) -> list[str]:
    """Names of the function's variables; constants stay in the call."""
    found: list[str] = []
    for arg in call.args:
        if arg.star:
            raise Refused("its arguments cannot be determined")
        for node in subject.module.walk(arg.value):
            if isinstance(node, cst.Name) and node.value in subject.module.names_in(node):
                if is_of_module(subject.module, node):
                    continue
                if is_receiver(subject.module, node):
                    raise Refused(
                        "it is called with the module itself, which cannot be passed to an operator"
                    )
                if node.value not in found:
                    found.append(node.value)
    return found


def _kind(subject: Subject, name: str) -> str:
    seen = subject.facts(name)
    if seen and all(fact.kind == "number" for fact in seen):
        kinds = {_NUMBERS.get(fact.type, "") for fact in seen}
        if len(kinds) == 1 and "" not in kinds:
            return kinds.pop()
    if known_tensor(subject, cst.Name(name)):
        return "Tensor"
    raise Refused(f"the type of `{name}` is unknown")


FIX = Fix(
    id="custom-op-scaffold",
    title="wrap the call in a custom operator, to be finished by hand",
    rules=frozenset({"outside-call"}),
    order=220,
    kind="scaffold",
    why="A custom operator is an opaque node in the graph. Only its author knows what shape it "
    "returns, whether it changes its arguments, and what its gradient is.",
    propose=_propose,
)
