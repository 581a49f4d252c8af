"""The `if` that a finding is about, and putting something else in its place."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.fixes.branches.condition import Truth, check_free
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.extraction import is_of_symbol
from compilescope.fixes.values.tensors import is_static
from compilescope.source.flow.aliasing import check_unchanged
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.comments import with_comments
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst

RULES = frozenset(
    {"tensor-if", "tensor-truth", "scalar-extraction", "category/data-dependent-branch", "GB0033"}
)
"""A test may be broken at `t.item()` or `bool(t)` as well, or at an operator that gives no tensor:
`torch.allclose(a, b)`."""

_ADDRESSES = "GB5976"


def torch_name(subject: Subject, edit: Edit) -> str:
    """What torch is called where the change is made."""
    name = edit.module_name("torch")
    check_free(subject, name)
    return name


def branch_of(subject: Subject) -> cst.If:
    """The `if` whose test Dynamo stopped at. Raises `Refused` where it is another thing."""
    module, node = subject.module, subject.node
    below: cst.CSTNode = node
    _check_tensor(subject)
    for each in [node, *module.ancestors(node)]:
        if isinstance(each, cst.If):
            if below is not node and below is not each.test:
                break
            return _first(subject, each)
        if isinstance(each, (cst.IfExp, cst.FunctionDef, cst.Lambda, cst.BaseCompoundStatement)):
            break
        below = each
    raise NotMeant("it is not the condition of an `if`")


def _check_tensor(subject: Subject) -> None:
    if is_of_symbol(subject):
        raise Refused("the condition is a number, which is a symbol in the graph")
    if _ADDRESSES in subject.keys:
        raise Refused("the condition compares addresses, which are numbers, not tensors")


def _first(subject: Subject, branch: cst.If) -> cst.If:
    """An `elif` goes with the first test before it that is a tensor's."""
    module, found = subject.module, branch
    above = module.parent(branch)
    while isinstance(above, cst.If) and above.orelse is branch:
        found = found if is_static(subject, above.test) else above
        branch, above = above, module.parent(above)
    return found


def conditional_of(subject: Subject) -> cst.IfExp:
    """The outermost one that has the test Dynamo stopped at, as a test or as another side."""
    module, below = subject.module, subject.node
    found: cst.IfExp | None = None
    _check_tensor(subject)
    for each in module.ancestors(subject.node):
        if isinstance(each, cst.IfExp):
            if found is None and each.test is not below:
                break
            if found is not None and (each.test is below or is_static(subject, each.test)):
                break
            found = each
        elif found is not None or isinstance(each, (cst.BaseStatement, cst.Lambda)):
            break
        below = each
    if found is None:
        raise NotMeant("it is not the condition of a conditional expression")
    function = module.function_of(found)
    if function is not None:
        above = module.parent(found)
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        names = [target.value] if isinstance(target, cst.Name) else []
        sides = (found.body, found.orelse)
        check_unchanged(module, function, module.statement_of(found), sides, names)
    return found


def replace_branch(edit: Edit, branch: cst.If, new: Sequence[cst.BaseStatement]) -> None:
    """What stands in the branch's place, in the block or after `else:`."""
    module = edit.module
    above = module.parent(branch)
    made = with_comments(module, branch, new)
    if isinstance(above, cst.If) and above.orelse is branch:
        block = cst.IndentedBlock(body=made)
        edit.replace(branch, cst.Else(body=block, leading_lines=branch.leading_lines))
    else:
        module.block_of(branch)
        edit.replace_statement(branch, made)


def under(
    edit: Edit,
    truth: Truth,
    inside: Sequence[cst.BaseStatement],
    branch: cst.If,
    elsewise: Sequence[cst.BaseStatement],
) -> list[cst.BaseStatement]:
    """`inside` where the part of the test that is no tensor leaves it open; else what the branch
    does anyway: its own body after a static `or`, `elsewise` after a static `and`."""
    if not truth.static:
        return list(inside)
    test = edit.expression(truth.static)
    block = cst.IndentedBlock(body=list(inside))
    if truth.joined_by == "or":
        return [cst.If(test=test, body=branch.body, orelse=cst.Else(body=block))]
    if not elsewise:
        return [cst.If(test=test, body=block)]
    other = cst.Else(body=cst.IndentedBlock(body=list(elsewise)))
    if isinstance(branch.orelse, cst.Else):
        other = branch.orelse
    return [cst.If(test=test, body=block, orelse=other)]
