"""The `if` that a finding is about, the number that it asks for, named before it or not, and
putting something else in its place.

Of `peak = x.max().item()`, `if peak > 3:`, Dynamo stops where the number is read. The name holds
the tensor instead, and each test reads the number from it: so the fixes of branches see the tests
that they know, `if peak.item() > 3:`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from compilescope.change.fixes.branches.condition import Truth, check_free, read_test
from compilescope.change.fixes.branches.gathered_truths import GatheredTruth, gathered_truth
from compilescope.change.fixes.branches.named_truths import (
    NamedTruth,
    named_truth,
    outermost,
    place_of,
    without_bool,
)
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import (
    as_tensor,
    extraction_at,
    is_of_symbol,
    read_from,
)
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.scalars import Uses
from compilescope.change.fixes.values.tensors import is_static, is_tensor
from compilescope.knowledge.source.flow.aliasing import check_unchanged
from compilescope.knowledge.source.flow.liveness import reads
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

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


_ASKING = kinds(lambda: (cst.If, cst.IfExp, cst.Assert))


def asked_by_name(
    propose: Callable[[Subject], Patch], *, inside: bool = False
) -> Callable[[Subject], Patch]:
    """The same fix for a test of a name that the number or the truth was given before. `inside`:
    it leaves Python to run all of the `if`, so that its sides read the number too."""

    def proposed(subject: Subject) -> Patch:
        number = _named(subject, inside)
        truth = None if number is not None else named_truth(subject) or gathered_truth(subject)
        if number is not None:
            tests, subject = number.tests, _held_as_tensor(subject, number)
        elif truth is not None:
            tests, subject = truth.tests, _held_unasked(subject, truth)
        else:
            return propose(subject)
        made: list[Patch] = []
        # The last test first: what stands above it keeps its lines, by which facts are kept.
        for line, column in sorted(tests, reverse=True):
            made.append(propose(moved(subject, line, column)))
            files = {**subject.program.files, **made[-1].files}
            subject = with_files(subject, files, subject.program.facts)
        states = dict.fromkeys(patch.states for patch in reversed(made) if patch.states)
        allows = frozenset().union(*(patch.allows for patch in made))
        return msgspec.structs.replace(made[-1], states=" ".join(states), allows=allows)

    return proposed


@dataclass(frozen=True)
class _NamedNumber:
    name: str
    call: cst.Call
    """All of `float(x.max().item())`."""
    tensor: cst.BaseExpression
    """`x.max()`."""
    read: tuple[cst.Name, ...]
    """The name, where the number is read from it: in tests."""
    owners: tuple[cst.CSTNode, ...]
    """What has the tests: each `if` with its sides."""
    tests: tuple[tuple[int, int | None], ...]
    """Where a fix looks for them: line, and the column of one that is part of a line."""


def _named(subject: Subject, inside: bool) -> _NamedNumber | None:
    """None where no name gets the number, or none is tested."""
    module, line = subject.module, subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    given = line.body[0]
    if not isinstance(given, cst.Assign) or len(given.targets) != 1:
        return None
    target, call = given.targets[0].target, given.value
    tensor = _read(module, call)
    if not isinstance(target, cst.Name) or tensor is None or is_of_symbol(subject):
        return None
    if not is_tensor(subject, tensor):
        return None
    assert isinstance(call, cst.Call)
    asked = [
        (read, test)
        for read in reads(module, subject.function.body)
        if read.value == target.value and (test := _test_of(module, read)) is not None
    ]
    if not asked:
        return None
    owners = {outermost(module, test): None for _, test in asked}
    places = tuple(dict.fromkeys(place_of(module, each) for each in owners))
    read = tuple(each for each, _ in asked)
    if inside:
        held = {id(node) for owner in owners for node in module.walk(owner)}
        every = (each for each in reads(module, subject.function.body) if id(each) in held)
        read = tuple(each for each in every if each.value == target.value)
    return _NamedNumber(target.value, call, tensor, read, tuple(owners), places)


def _read(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The tensor below `bool(...)`, `float(...)` and `.item()`."""
    found: cst.BaseExpression | None = None
    while True:
        inner = read_from(module, node)
        if inner is None and isinstance(node, cst.Call) and module.calls(node, "builtins.bool"):
            inner = node.args[0].value if len(node.args) == 1 else None
        if inner is None:
            return found
        found = node = inner


def _test_of(module: SourceModule, read: cst.Name) -> cst.CSTNode | None:
    below: cst.CSTNode = read
    for above in module.ancestors(read):
        if isinstance(above, _ASKING) and above.test is below:
            return above
        if isinstance(above, (cst.BaseStatement, cst.Lambda, cst.BaseComp)):
            return None
        below = above
    return None


def _held_as_tensor(subject: Subject, number: _NamedNumber) -> Subject:
    """The program with the tensor by that name. Raises `Refused` where more than tests needs the
    number."""
    module = subject.module
    # `if peak < 1e-3: peak = 1.0` is for the fix of the branch.
    uses = Uses(subject, leaving=set(number.read), tensor=number.tensor, set_again=number.owners)
    uses.follow(number.call)
    if uses.is_returned:
        raise Refused(f"`{number.name}` is returned")
    if uses.is_used:
        # Python's numbers and tensors are one in arithmetic: not those that are rounded by `int`.
        extraction_at(subject, number.call)
    elif read_from(module, number.call) is not None and module.calls(number.call, "builtins.int"):
        extraction_at(subject, number.call)
    edit = Edit(module)
    held = as_tensor(subject, number.tensor, only_compared=not uses.is_used)
    edit.replace(number.call, edit.expression(held))
    for each in number.read:
        edit.replace(each, edit.expression(f"{number.name}.item()"))
    files = edit.files()
    text = files[module.path]
    if text.count("\n") != module.text.count("\n"):
        raise Refused(f"`{number.name}` is read on several lines")
    kind = kind_of(subject, number.tensor)
    facts = facts_of_tensors(subject, {number.name: kind.dtype or ""})
    return with_files(subject, {**subject.program.files, **files}, facts)


def _held_unasked(subject: Subject, named: NamedTruth | GatheredTruth) -> Subject:
    """The program with the truth by that name as a tensor, or as what is no tensor decides."""
    module = subject.module
    edit = Edit(module)
    if isinstance(named, GatheredTruth):
        named.write(subject, edit)
    else:
        truth = read_test(subject, without_bool(module, named.value))
        edit.replace(named.value, edit.expression(truth.text))
    files = edit.files()
    if files[module.path].count("\n") != module.text.count("\n"):
        raise Refused(f"`{named.name}` is computed on several lines")
    return with_files(
        subject,
        {**subject.program.files, **files},
        facts_of_tensors(subject, {named.name: "bool"}),
    )


def facts_of_tensors(subject: Subject, held: dict[str, str]) -> ValueFacts:
    """What was seen, but for these names, which hold tensors of no dimensions; by name, their
    dtype, or nothing where that follows from the type of the number."""
    facts = subject.program.facts
    known = {**facts.held.get(subject.file, {}), **held}
    return msgspec.structs.replace(facts, held={**facts.held, subject.file: known})


def with_files(subject: Subject, files: dict[str, str], facts: ValueFacts) -> Subject:
    """The same finding in another text of the program."""
    program = replace(subject.program, files=files, facts=facts, _modules={}, _own=[])
    return replace(subject, program=program)


def moved(subject: Subject, line: int, column: int | None = None) -> Subject:
    """The same finding at another place of its file."""
    finding = msgspec.structs.replace(
        subject.finding, line=line, column=column, end_column=None, end_line=None
    )
    return replace(subject, finding=finding)
