"""`if torch.rand(()) < p` with a `p` of 0: testing `p > 0` first means the draw is not read."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_DRAWS = ("torch.rand", "random.random")


def _propose(subject: Subject) -> Patch:
    module, test = subject.module, subject.statement
    if not isinstance(test, cst.If):
        raise NotMeant("it is not the condition of an `if`")
    found = [(node, *_sides(node)) for node in module.walk(test.test) if _is_below(node)]
    found = [each for each in found if _is_drawn(subject, each[1])]
    if len(found) != 1:
        raise NotMeant("no random number is compared with a threshold")
    node, drawn, threshold = found[0]
    name = module.code(threshold)
    seen = subject.facts(name)
    if any(each.kind != "number" or float(each.value or "nan") > 0 for each in seen):
        raise Refused(f"`{name}` is above zero, so the branch is sometimes taken")
    if not isinstance(threshold, (cst.Name, cst.Attribute)):
        raise Refused("the threshold is not a plain name")
    edit = Edit(module)
    if isinstance(drawn, cst.Name) and _is_asked_once(subject, drawn):
        # The test stays as it is: it compares two plain numbers where nothing can be below.
        module.block_of(test)
        above = module.parent(test)
        if isinstance(above, cst.If) and above.orelse is test:
            raise Refused("it is the condition of an `elif`")
        edit.put_before(test, f"if {name} <= 0:\n    {drawn.value} = 1.0")
    else:
        both = f"{name} > 0 and {module.code(node)}"
        inner = isinstance(module.parent(node), (cst.UnaryOperation, cst.Comparison))
        edit.replace(node, edit.expression(f"({both})" if inner else both))
    return Patch(edit.files())


def _is_asked_once(subject: Subject, drawn: cst.Name) -> bool:
    """Nothing but the test reads the number."""
    module = subject.module
    uses = [
        each
        for each in module.walk(subject.function)
        if isinstance(each, cst.Name)
        and each.value == drawn.value
        and not isinstance(module.parent(each), (cst.AssignTarget, cst.Attribute, cst.Arg))
    ]
    return uses == [drawn]


def _is_below(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    return isinstance(node.comparisons[0].operator, (cst.LessThan, cst.GreaterThan))


def _sides(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """(the smaller one, the larger one)."""
    assert isinstance(node, cst.Comparison)
    left, right = node.left, node.comparisons[0].comparator
    below = isinstance(node.comparisons[0].operator, cst.LessThan)
    return (left, right) if below else (right, left)


def _is_drawn(subject: Subject, node: cst.BaseExpression) -> bool:
    """A draw from [0, 1), or a name that the function binds to nothing else."""
    module = subject.module
    if not isinstance(node, cst.Name):
        return _is_draw(module, node)
    values = [
        each.value
        for each in module.walk(subject.function)
        if isinstance(each, cst.Assign)
        and any(module.code(target.target) == node.value for target in each.targets)
    ]
    return bool(values) and all(_is_draw(module, value) for value in values)


def _is_draw(module: SourceModule, node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value not in ("item", "squeeze", "cpu"):
            break
        node = node.func.value
    return isinstance(node, cst.Call) and module.calls(node, *_DRAWS)


FIX = Fix(
    id="threshold-first",
    title="check the threshold first",
    rules=frozenset({"tensor-if", "tensor-truth", "category/data-dependent-branch"}),
    order=40,
    kind="source",
    why="`torch.rand` draws from [0, 1), so no draw is below a threshold of zero. The number "
    "is still drawn, so all later ones stay the same. Only the tensor is not read.",
    propose=_propose,
)
