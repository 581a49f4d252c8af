"""`max(tensors, key=...)` by a number of each tensor: a loop that keeps the best so far.

Python goes through them in order and takes another one only if its key is greater, so of equal ones
the first stays, and one whose key is NaN is never taken, nor left. `torch.where` with the same
comparison decides the same.
"""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import torch_name
from compilescope.change.fixes.branches.predication import BENT, ZEROS
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import read_from
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.tensors import bare, facts_of, is_one_number, is_tensor
from compilescope.knowledge.source.flow.aliasing import (
    changes_in_place,
    is_shared,
    runs_without_grad,
)
from compilescope.knowledge.source.flow.liveness import names_set, only_value, reads, targets
from compilescope.knowledge.source.flow.purity import first, operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_BY_HAND = (
    "Stack the keys and use `argmax`, if NaN keys and equal ones need not be treated as Python "
    "treats them."
)
_SIGNS = {"builtins.max": ">", "builtins.min": "<"}
_OFTEN_OR_NEVER = kinds(
    lambda: (cst.BaseComp, cst.CompFor, cst.Lambda, cst.IfExp, cst.BooleanOperation)
)
_INDEXED = ("builtins.list", "builtins.tuple")


def _propose(subject: Subject) -> Patch:
    module = subject.module
    call, key = _best_of(subject)
    sign = next(sign for name, sign in _SIGNS.items() if module.calls(call, name))
    given = _name_given(subject, call)
    name = given or module.fresh_name("best")
    things = call.args[0].value
    _check_things(subject, things)
    each = key.params.params[0].name.value
    held = set(names_set(module, subject.function.body)) | {name}
    if name in module.names_in(call) or each in held:
        raise Refused(f"`{name}` or `{each}` is used for something else")
    number = _number_of(subject, key)
    states = _check_key(subject, number, things, each)
    if not _is_made_here(subject, things, call, given):
        _check_kept(subject, given)
    edit = Edit(module)
    torch = torch_name(subject, edit)
    loop = _loop(subject, (number, each), things, name, sign, torch)
    if given:
        edit.replace_statement(subject.statement, loop)
    else:
        edit.put_before(call, loop)
        edit.replace(call, cst.Name(name))
    if isinstance(things, cst.List) and things.elements:
        return Patch(edit.files(), states=states)
    empty = f"If `{short(module, things)}` is empty, it raises IndexError, not ValueError."
    return Patch(
        edit.files(),
        states=f"{empty} {states}".strip(),
        allows=frozenset({"exception-type"}),
    )


def _loop(
    subject: Subject,
    key: tuple[cst.BaseExpression, str],
    things: cst.BaseExpression,
    name: str,
    sign: str,
    torch: str,
) -> str:
    """`key`: what is compared, and the name that it has for a tensor."""
    module, (number, each) = subject.module, key
    code, found = module.code(things), module.code(bare(number))
    start = f"{name} = {code}[0]\n"
    turns = f"for {each} in {code}[1:]:\n"
    if found == each:
        return f"{start}{turns}    {name} = {torch}.where({each} {sign} {name}, {each}, {name})"
    kept, now, taken = (module.fresh_name(word) for word in (f"{name}_key", "this_key", "taken"))
    # The keys are kept too: one of a copy that is laid out differently may be rounded differently.
    return (
        f"{start}"
        f"{kept} = {module.code(_with_name(subject, number, each, name))}\n"
        f"{turns}"
        f"    {now} = {found}\n"
        f"    {taken} = {now} {sign} {kept}\n"
        f"    {name} = {torch}.where({taken}, {each}, {name})\n"
        f"    {kept} = {torch}.where({taken}, {now}, {kept})"
    )


def _best_of(subject: Subject) -> tuple[cst.Call, cst.Lambda]:
    module, call = subject.module, subject.node
    if not isinstance(call, cst.Call) or not module.calls(call, *_SIGNS):
        raise NotMeant("it is not the largest or smallest of several")
    keys = [arg.value for arg in call.args if arg.keyword and arg.keyword.value == "key"]
    if len(call.args) != 2 or len(keys) != 1 or call.args[0].star or call.args[0].keyword:
        raise Refused("it has no `key`, or more than one sequence", instead=_BY_HAND)
    if not isinstance(keys[0], cst.Lambda) or len(keys[0].params.params) != 1:
        raise Refused(f"`{short(module, keys[0])}` is no lambda of one tensor", instead=_BY_HAND)
    return call, keys[0]


def _name_given(subject: Subject, call: cst.Call) -> str:
    """`best` of `best = max(...)`; none where the result is returned or computed with at once, in a
    statement that does nothing before."""
    module, line = subject.module, subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Refused("the result has no name", instead=_BY_HAND)
    above = module.parent(call)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if isinstance(target, cst.Name) and len(above.targets) == 1:  # type: ignore[union-attr]
        return target.value
    module.block_of(line)
    for around in module.ancestors(call):
        if around is line:
            break
        if isinstance(around, _OFTEN_OR_NEVER):
            raise Refused("the result has no name", instead=_BY_HAND)
    found = first(module, [line], "effect", "random")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the statement"), instead=_BY_HAND)
    return ""


def _is_made_here(subject: Subject, things: cst.BaseExpression, call: cst.Call, name: str) -> bool:
    """Does the function compute all of them, change none, and nobody else get them? Then one of
    them and a copy of it are the same to everybody."""
    module = subject.module
    if any(changed == name for _, changed in changes_in_place(module, subject.function.body)):
        return False
    written = _written(subject, things)
    if isinstance(written, cst.ListComp):
        values = [written.elt]
    elif isinstance(written, cst.List):
        values = [element.value for element in written.elements]
    else:
        return False
    if not all(isinstance(value, (cst.Call, cst.BinaryOperation)) for value in values):
        return False
    if not isinstance(things, cst.Name):
        return True
    within = set(module.walk(call))
    return all(
        read in within or _is_joined(module, read)
        for read in reads(module, subject.function.body)
        if read.value == things.value
    )


def _is_joined(module: SourceModule, read: cst.Name) -> bool:
    """Are the tensors of a list only joined or added up there?"""
    above = module.parent(read)
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    return operator_of(module, call) in ("stack", "cat") or module.calls(
        call, "builtins.sum", "builtins.len"
    )


def _check_things(subject: Subject, things: cst.BaseExpression) -> None:
    shown = short(subject.module, things)
    seen = facts_of(subject, things)
    if not seen and isinstance(_written(subject, things), cst.List):
        return
    if not seen and not subject.program.facts.seen:
        raise NeedsRun(f"only a run can show what is in `{shown}`")
    if not seen or any(fact.type not in _INDEXED for fact in seen):
        raise Refused(f"it is unknown whether `{shown}` is a list", instead=_BY_HAND)


def _written(subject: Subject, things: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the list is set to, where that is one thing."""
    if isinstance(things, cst.Name):
        return only_value(subject.module, subject.function, things.value)
    return things


def _number_of(subject: Subject, key: cst.Lambda) -> cst.BaseExpression:
    """The tensor that the key is, or is read from: Python's floats compare as the tensor's own
    numbers do, and so do its ints. Whole numbers read as floats may be rounded together."""
    module, body = subject.module, bare(key.body)
    tensor = read_from(module, body)
    if tensor is None:
        return key.body
    exact = isinstance(body, cst.Call) and isinstance(body.func, cst.Attribute)
    if not exact and (
        module.calls(body, "builtins.int") or "float" not in (kind_of(subject, tensor).dtype or "")
    ):
        raise Refused(f"`{short(module, body)}` may round keys together", instead=_BY_HAND)
    return tensor


def _check_key(
    subject: Subject, key: cst.BaseExpression, things: cst.BaseExpression, each: str
) -> str:
    """Of tensors that could take each other's place, one number each. What to tell the user: what
    is not taken gets a gradient of zeros, which only shows where nothing else gives it one."""
    module = subject.module
    shown = short(module, key)
    found = first(module, [key], "effect", "unknown", "random", "raises", "by-value")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the key"), instead=_BY_HAND)
    if not is_tensor(subject, key) or not is_one_number(subject, key):
        raise Refused(f"it is unknown whether `{shown}` is one number", instead=_BY_HAND)
    _check_alike(subject, things, each)
    if runs_without_grad(module, subject.statement):
        return ""
    seen = subject.facts(each)
    if not seen:
        raise NeedsRun("only a run can show whether the tensors require a gradient")
    if not any(fact.requires_grad for fact in seen):
        return ""
    if not _is_computed(subject, things):
        raise Refused("those that are not taken would get a gradient of zeros", instead=_BY_HAND)
    return f"{BENT} {ZEROS}"


def _is_computed(subject: Subject, things: cst.BaseExpression) -> bool:
    """Is no item a weight by itself? A weight that is not taken has no gradient."""
    written = _written(subject, things)
    return isinstance(written, cst.ListComp) and isinstance(
        written.elt, (cst.Call, cst.BinaryOperation)
    )


def _check_alike(subject: Subject, things: cst.BaseExpression, each: str) -> None:
    """By what the run has shown to the key, or by how the list is written."""
    seen = subject.facts(each)
    written = _written(subject, things)
    if seen:
        tensors = all(fact.kind in ("tensor", "parameter") for fact in seen)
        kinds = {(fact.dtype, fact.shape, fact.device) for fact in seen}
    elif isinstance(written, cst.List):
        values = [element.value for element in written.elements]
        tensors = all(is_tensor(subject, value) for value in values)
        of = [kind_of(subject, value) for value in values]
        kinds = {(kind.dtype or str(n), kind.shape, "") for n, kind in enumerate(of)}
    else:
        tensors, kinds = False, set()
    if not tensors:
        raise Refused("it is unknown whether all of them are tensors", instead=_BY_HAND)
    if len(kinds) != 1:
        raise Refused("the tensors differ in dtype, shape or device", instead=_BY_HAND)


def _check_kept(subject: Subject, name: str) -> None:
    """The best is a tensor of its own then, and not one of the list."""
    module, function = subject.module, subject.function
    if not name:
        raise Refused("the result has no name", instead=_BY_HAND)
    given = [t for each in module.walk(function) for t in targets(each)]
    if sum(isinstance(each, cst.Name) and each.value == name for each in given) != 1:
        raise Refused(f"`{name}` is set in several places", instead=_BY_HAND)
    returned = any(
        isinstance(module.parent(read), (cst.Return, cst.Element, cst.AugAssign))
        for read in reads(module, function.body)
        if read.value == name
    )
    if returned or is_shared(module, function, name):
        raise Refused(f"`{name}` would be a copy of the tensor in the list", instead=_BY_HAND)


def _with_name(
    subject: Subject, key: cst.BaseExpression, each: str, name: str
) -> cst.BaseExpression:
    """The key of another tensor."""
    found = [
        node
        for node in subject.module.walk(key)
        if isinstance(node, cst.Name) and node.value == each and subject.module.names_in(node)
    ]
    made = replaced(key, {node: cst.Name(name) for node in found})
    shown = bare(made)
    assert isinstance(shown, cst.BaseExpression)
    return shown


FIX = Fix(
    id="running-best",
    title="keep the best so far with torch.where",
    rules=frozenset({"GB0193", "GB5687"}),
    order=104,
    kind="source",
    why="Python's `max` and `min` go through the tensors in order and take another one only if its "
    "key is greater (smaller). A loop with the same comparison in `torch.where` gives the same "
    "tensor, for equal and for NaN keys too.",
    propose=_propose,
)
