"""A progress bar around a loop that stays for eager runs."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_STATES = "No progress bar is shown here while the code runs compiled."


def _propose(subject: Subject) -> Patch:
    module = subject.module
    found = [each for each in module.walk(_head(subject)) if _is_bar(module, each)]
    if len(found) != 1:
        raise NotMeant("no progress bar is created here")
    call = found[0]
    assert isinstance(call, cst.Call)
    above = module.parent(call)
    if not (isinstance(above, (cst.For, cst.CompFor)) and above.iter is call):
        raise Refused("the bar is stored, not just looped over")
    edit = Edit(module)
    torch = edit.module_name("torch")
    plain = _plain(module, call)
    text = f"{plain} if {torch}.compiler.is_compiling() else {module.code(call)}"
    edit.replace(call, edit.expression(text if isinstance(above, cst.For) else f"({text})"))
    return Patch(edit.files(), states=_STATES, allows=frozenset({"drops-output"}))


def _head(subject: Subject) -> cst.CSTNode:
    """Of a loop, what it is over; else all of the statement."""
    line = subject.statement
    return line.iter if isinstance(line, cst.For) else line


def _is_bar(module: SourceModule, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    return any(
        name.startswith("tqdm.") and name.rsplit(".", 1)[-1] in ("tqdm", "trange")
        for name in module.meaning(node.func)
    )


def _plain(module: SourceModule, call: cst.Call) -> str:
    """What the bar is around."""
    given = [arg for arg in call.args if arg.keyword is None]
    if any(arg.star for arg in call.args):
        raise Refused("it is unclear what the bar wraps")
    if any(name.endswith("trange") for name in module.meaning(call.func)):
        return f"range({', '.join(module.code(arg.value) for arg in given)})"
    named = [arg for arg in call.args if arg.keyword and arg.keyword.value == "iterable"]
    if not given and not named:
        raise Refused("the bar wraps nothing")
    return module.code((given + named)[0].value)


FIX = Fix(
    id="bar-while-eager",
    title="show the progress bar in eager mode only",
    rules=frozenset({"logging-call", "GB0007", "GB0008"}),
    order=57,
    kind="source",
    why="`torch.compiler.is_compiling()` is true while Dynamo traces. The loop then runs over "
    "the same items without the bar.",
    propose=_propose,
    observable=True,
)
