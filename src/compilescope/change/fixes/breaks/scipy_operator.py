"""A function of SciPy's whose sizes are known before its numbers are, made an operator of a graph.

It runs where it stood, on the same numbers. What an operator needs besides is the size and dtype of
what comes back: the table has the functions for which the sizes that go in decide that.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.aliasing import runs_without_grad
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_of_module
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


class Host(msgspec.Struct, frozen=True):
    """A function that computes with float64 whatever it is given, and returns new arrays, all of
    one size and dtype."""

    inputs: tuple[str, ...]
    results: tuple[str, ...]
    size: str
    """An expression of the inputs."""
    dtype: str


HOSTS = {
    "scipy.optimize.linear_sum_assignment": Host(
        ("cost_matrix",), ("rows", "columns"), "min(cost_matrix.shape)", "int64"
    ),
}
"""By qualified name, with no other arguments. Only what is compiled C: Dynamo follows SciPy's Python,
and stops inside. A test compares each with what SciPy returns."""
_HARMLESS = ("maximize",)
"""Further arguments, of any of them, that leave sizes and dtypes as they are."""
_NO_ERROR = "A tensor that requires a gradient raises no error here any more: it is detached."


def _propose(subject: Subject) -> Patch:
    module = subject.module
    found = [call for call in module.walk(subject.statement) if module.calls(call, *HOSTS)]
    if not found:
        raise NotMeant("no function of SciPy whose sizes are known is called here")
    if len(found) > 1:
        raise Refused("several functions of SciPy are called in one statement")
    call = found[0]
    assert isinstance(call, cst.Call)
    host = next(HOSTS[name] for name in module.meaning(call.func) if name in HOSTS)
    _check_arguments(module, call, len(host.inputs))
    _check_no_error(subject, call)
    edit = Edit(module)
    name = module.code(call.func).rsplit(".", 1)[-1]
    operator = module.fresh_name(f"{name}_operator")
    outer = module.fresh_name(f"{name}_in_graph")
    stem = re.sub(r"\W", "_", Path(module.path).stem)
    kept, constants = call.args[: len(host.inputs)], call.args[len(host.inputs) :]
    inner = call.with_changes(
        args=[*(cst.Arg(edit.expression(f"{each}.numpy()")) for each in host.inputs), *constants]
    )
    text = _written(host, module.code(inner), edit.module_name("torch"), f"{stem}::{outer}")
    text = text.replace("OPERATOR", operator).replace("OUTER", outer)
    top = next(each for each in module.ancestors(call) if module.parent(each) is module.tree)
    assert isinstance(top, cst.BaseStatement)
    edit.put_definition_before(top, text)
    last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    edit.replace(call, call.with_changes(func=cst.Name(outer), args=[*kept[:-1], last]))
    return Patch(edit.files(), states="" if runs_without_grad(module, call) else _NO_ERROR)


def _check_arguments(module: SourceModule, call: cst.Call, inputs: int) -> None:
    """Raises `Refused` where more than arrays and constants is passed, or the function is not the
    module's to name."""
    root: cst.BaseExpression = call.func
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name) or not is_of_module(module, root):
        raise Refused(f"`{module.code(call.func)}` is imported inside the function")
    given, rest = call.args[:inputs], call.args[inputs:]
    if len(given) < inputs or any(arg.star or arg.keyword is not None for arg in given):
        raise Refused(f"the arrays of `{short(module, call)}` are not passed by position")
    for arg in rest:
        if arg.keyword is None or arg.keyword.value not in _HARMLESS:
            raise Refused(f"`{short(module, call)}` takes more than arrays, and may return more")
        if module.code(arg.value) not in ("True", "False"):
            raise Refused(f"`{short(module, arg.value)}` is no constant")


def _check_no_error(subject: Subject, call: cst.Call) -> None:
    """Raises `Refused` where the run came by with a tensor that SciPy raises for."""
    module = subject.module
    if runs_without_grad(module, call):
        return
    for arg in call.args:
        code = module.code(arg.value)
        if any(fact.requires_grad for fact in subject.facts(code)):
            raise Refused(f"SciPy raises where `{code}` requires a gradient; an operator would not")


def _written(host: Host, call: str, torch: str, qualified: str) -> str:
    inputs, results = ", ".join(host.inputs), ", ".join(host.results)
    params = ", ".join(f"{each}: {torch}.Tensor" for each in host.inputs)
    kinds = ", ".join([f"{torch}.Tensor"] * len(host.results))
    first, *others = host.results
    made = f"{host.inputs[0]}.new_empty({host.size}, dtype={torch}.{host.dtype})"
    doubles = "\n            ".join(
        f"{each} = {torch}.as_tensor({each}, dtype={torch}.float64).detach()"
        for each in host.inputs
    )
    return f"""
        @{torch}.library.custom_op("{qualified}", mutates_args=())
        def OPERATOR({params}) -> {f"tuple[{kinds}]" if len(host.results) > 1 else kinds}:
            {results} = {call}
            return {", ".join(f"{torch}.from_numpy({each})" for each in host.results)}


        @OPERATOR.register_fake
        def OPERATOR_fake({inputs}):
            {first} = {made}
            return {", ".join([first, *(f"{torch}.empty_like({first})" for _ in others)])}


        def OUTER({inputs}):
            {doubles}
            {results} = OPERATOR({inputs})
            return {", ".join(f"{each}.numpy()" for each in host.results)}
    """


FIX = Fix(
    id="scipy-operator",
    title="make the call of SciPy an operator of the graph",
    rules=frozenset({"outside-call", "GB8335"}),
    order=76,
    kind="source",
    why="The function runs as before, on the same numbers as float64, which is what it computes "
    "with. The sizes that go in decide the sizes that come back, so the graph knows what follows.",
    propose=_propose,
)
