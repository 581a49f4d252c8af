"""A `while` whose condition is a tensor, as torch's operator `while_loop`."""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import RULES, torch_name
from compilescope.change.fixes.branches.closures import Closures, local_function, with_blank_lines
from compilescope.change.fixes.branches.condition import boolean
from compilescope.change.fixes.branches.loop_numbers import numbers_as_tensors
from compilescope.change.fixes.branches.named_truths import operands
from compilescope.change.fixes.branches.numbers import counters_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import is_tensor, needs_grad
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.aliasing import runs_without_grad
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_STEEP = "Where the derivative of a turn is not finite, a gradient may be NaN that was not before."


def _propose(subject: Subject) -> Patch:
    module, loop = subject.module, _loop(subject)
    body = list(loop.body.body)
    counters = counters_of(subject, loop)
    closures = Closures(subject, subject.function, loop, counters)
    closures.check(body)
    carried = closures.carried(body)
    inner = [name for name in liveness.names_set(module, loop.body) if name not in carried]
    for name in inner:
        if liveness.is_read_later(module, subject.function, loop, name):
            raise Refused(f"`{name}` has no value if the loop never runs")
    if not carried:
        raise Refused("the loop carries nothing to the next iteration")
    edit = Edit(module)
    torch = torch_name(subject, edit)
    goes_on, step = module.fresh_name("goes_on"), module.fresh_name("step")
    made_test = edit.statements(f"return {_test(subject, loop, carried, counters)}")[0]
    out = closures.handed_out(body, carried)
    out = f"({out},)" if len(carried) == 1 else out
    made_body = edit.statements(f"return {out}")[0]
    given = ", ".join(f"{torch}.tensor({n})" if n in counters else n for n in carried)
    left = ", ".join(carried)
    if len(carried) == 1:
        left, given = f"({left},)", f"{given},"
    call = f"{left} = {torch}.while_loop({goes_on}, {step}, ({given}))"
    new = with_blank_lines(
        local_function(goes_on, carried, [], made_test),
        local_function(step, carried, body, made_body),
        *edit.statements(call),
    )
    module.block_of(loop)
    edit.replace_statement(loop, with_comments(module, loop, new))
    return Patch(edit.files(), states=_STEEP if _is_steep(subject, loop) else "")


def _is_steep(subject: Subject, loop: cst.While) -> bool:
    """torch 2.13 takes the derivative of a turn also where the loop runs none."""
    steep = first(subject.module, [loop.body], "steep") is not None
    if not steep or runs_without_grad(subject.module, loop):
        return False
    return needs_grad(subject, [loop.body])


def _loop(subject: Subject) -> cst.While:
    below: cst.CSTNode = subject.node
    for each in [subject.node, *subject.module.ancestors(subject.node)]:
        if isinstance(each, cst.While):
            if below is not subject.node and below is not each.test:
                break
            if each.orelse is not None:
                raise Refused("the loop has an `else`")
            return each
        if isinstance(each, cst.BaseStatement):
            break
        below = each
    raise NotMeant("it is not the condition of a `while`")


def _test(subject: Subject, loop: cst.While, carried: list[str], counters: set[str]) -> str:
    module, made = subject.module, []
    for part in operands(loop.test, cst.And):
        inside = module.names_in(part) & set(carried)
        if not inside:
            raise Refused(
                f"`{short(module, part)}` in the condition is the same in every iteration"
            )
        counts = inside <= counters and not is_tensor(subject, part)
        made.append((module.code(part), False) if counts else boolean(subject, part))
    if len(made) == 1:
        return made[0][0]
    return " & ".join(text if atomic else f"({text})" for text, atomic in made)


FIX = Fix(
    id="while-loop",
    title="use the while_loop operator instead of while",
    rules=RULES | {"tensor-while"},
    order=65,
    kind="source",
    why="`while_loop` is an operator that runs its body as long as its condition holds, "
    "forward and backward. It only accepts a body that changes nothing and keeps shapes "
    "and dtypes.",
    propose=numbers_as_tensors(_propose),
)
