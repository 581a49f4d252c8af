"""A list instead of an iterator that is handed to a compiled function, or kept by it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from compilescope.base.patterns import late
from compilescope.change.fixes.arguments.calls import argument_for, calls_of, place_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.flow.purity import first, remarks, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, parameters_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_LAZY = (
    "builtins.zip",
    "builtins.map",
    "builtins.filter",
    "builtins.reversed",
    "builtins.enumerate",
    "itertools.accumulate",
    "itertools.chain",
    "itertools.chain.from_iterable",
    "itertools.combinations",
    "itertools.islice",
    "itertools.pairwise",
    "itertools.permutations",
    "itertools.product",
    "itertools.starmap",
    "itertools.zip_longest",
)
_CALLED = "GB0156"
"""A method without a rule: torch 2.11 and 2.12 say so of `__iter__`."""
_ITERATING = late(r"`__(?:iter|next)__`")
_BESIDE = ("builtins.zip", "builtins.enumerate")
"""What goes through its arguments as it is gone through itself."""
_ENDLESS = ("itertools.count", "itertools.cycle", "itertools.repeat")
_CONSUMING = ("builtins.sum", "builtins.list", "builtins.tuple", "builtins.max", "builtins.min")


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    told = subject.finding.explanation if isinstance(subject.finding, BreakFinding) else ""
    if _CALLED in subject.keys and not _ITERATING.search(told):
        raise NotMeant("no iterator is the cause")
    names = _iterated(subject)
    name = next((each for each in names if each in parameters_of(function)), None)
    if name is None:
        raise NotMeant(f"`{names[0]}` is not a parameter of the function")
    stops_early = _check_uses(module, function, name)
    edit = Edit(module)
    found = False
    for given in _all_given(subject, function, name):
        if stops_early:
            _check_may_all_run(module, given)
        if isinstance(given, cst.GeneratorExp):
            new: cst.BaseExpression = cst.ListComp(given.elt, given.for_in)
        elif isinstance(given, cst.Call) and module.calls(given, "builtins.iter"):
            new = given.args[0].value
            if len(given.args) != 1 or not isinstance(new, (cst.List, cst.ListComp, cst.Tuple)):
                raise Refused(f"other code may hold what `{short(module, given)}` goes through")
        elif module.calls(given, *_LAZY):
            new = edit.expression(f"list({module.code(given)})")
        elif (generator := _generator(module, given)) is not None:
            _check_generator(subject, generator, name)
            new = edit.expression(f"list({module.code(given)})")
        elif isinstance(given, (cst.Name, cst.Attribute)):
            raise Refused(f"`{module.code(given)}` is an iterator that other code may hold too")
        else:
            continue
        edit.replace(given, new)
        found = True
    if not found:
        raise NotMeant(f"no call in this file creates the iterator passed as `{name}`")
    return Patch(edit.files())


def _all_given(
    subject: Subject, function: cst.FunctionDef, name: str
) -> Iterator[cst.BaseExpression]:
    """What the calls pass for it, each once; of `f(*inputs())`, what `inputs` returns there."""
    known: list[cst.BaseExpression] = []
    for call in calls_of(subject, function):
        given = argument_for(subject.module, function, call, name)
        if given is not None:
            given = _made_for(subject.module, call, given)
        for each in [given] if given is not None else _unpacked(subject, function, call, name):
            if each not in known:
                known.append(each)
                yield each


def _made_for(
    module: SourceModule, call: cst.Call, given: cst.BaseExpression
) -> cst.BaseExpression:
    """What a variable is set to, as often as the call is made, that is for this call alone."""
    around, statement = module.function_of(call), module.statement_of(call)
    turns = (cst.BaseComp, cst.Lambda, cst.While)
    for above in module.ancestors(call):
        if isinstance(above, turns):
            return given  # The call may be made again with what the first one left.
        if above is statement:
            break
    made = _as_set(module, around, given) if around is not None else given
    places = [module.block_of(module.statement_of(each)) for each in (made, call)]
    return made if places[0] is places[1] else given


def _unpacked(
    subject: Subject, function: cst.FunctionDef, call: cst.Call, name: str
) -> list[cst.BaseExpression]:
    """For a parameter that gets its value from `*inputs()`: what each `return` of that function
    has in its place. Nothing where another function makes the arguments, or more than one."""
    place = place_of(subject.module, function, name)
    before = list(itertools.takewhile(lambda arg: not arg.star, call.args))
    starred = call.args[len(before)] if len(before) < len(call.args) else None
    if place is None or starred is None or starred.star != "*" or place < len(before):
        return []
    maker = _maker(subject.module, starred.value)
    if maker is None:
        return []
    _check_only_unpacked(subject, function, maker)
    found: list[cst.BaseExpression] = []
    for each in _returned(subject.module, maker):
        items = each.elements if isinstance(each, cst.Tuple) else ()
        wanted = place - len(before)
        if len(items) <= wanted or any(item.__class__ is not cst.Element for item in items):
            raise Refused(f"`{maker.name.value}` does not return one tuple that is written out")
        found.append(_as_set(subject.module, maker, items[wanted].value))
    return found


def _maker(module: SourceModule, given: cst.BaseExpression) -> cst.FunctionDef | None:
    """The function of this file whose call is unpacked."""
    func = given.func if isinstance(given, cst.Call) else None
    known = definitions_of(module, func) if isinstance(func, cst.Name) else []
    only = known[0] if len(known) == 1 else None
    return only if isinstance(only, cst.FunctionDef) and not only.decorators else None


def _returned(module: SourceModule, maker: cst.FunctionDef) -> list[cst.BaseExpression | None]:
    return [
        each.value
        for each in module.walk(maker.body)
        if isinstance(each, cst.Return) and module.function_of(each) is maker
    ]


def _check_only_unpacked(
    subject: Subject, function: cst.FunctionDef, maker: cst.FunctionDef
) -> None:
    """Raises `Refused` where somebody else has what it returns: a list is no iterator to them."""
    module = subject.module
    ours = {
        arg.value.func
        for call in calls_of(subject, function)
        for arg in call.args
        if arg.star == "*" and isinstance(arg.value, cst.Call)
    }
    for each in module.walk():
        named = isinstance(each, cst.Name) and each.value == maker.name.value
        if named and each is not maker.name and each not in ours:
            raise Refused(f"`{maker.name.value}` is also used elsewhere")


def _as_set(
    module: SourceModule, maker: cst.FunctionDef, value: cst.BaseExpression
) -> cst.BaseExpression:
    """What a variable is set to that is read once."""
    if not isinstance(value, cst.Name):
        return value
    made = only_value(module, maker, value.value)
    reads = sum(1 for _ in _uses(module, maker, value.value))
    return made if made is not None and reads == 2 else value


def _generator(module: SourceModule, given: cst.BaseExpression) -> cst.FunctionDef | None:
    """The function of this file whose call makes the iterator."""
    func = given.func if isinstance(given, cst.Call) else None
    if not isinstance(func, cst.Name):
        return None
    for found in definitions_of(module, func):
        if isinstance(found, cst.FunctionDef) and any(
            isinstance(each, cst.Yield) and module.function_of(each) is found
            for each in module.walk(found.body)
        ):
            return found
    return None


def _check_generator(subject: Subject, generator: cst.FunctionDef, name: str) -> None:
    """Raises `Refused` where it shows that all of it runs before the function does, and not turn
    by turn with it."""
    module, function = subject.module, subject.function
    for each in module.walk(function.body):
        if isinstance(each, (cst.Break, cst.Return)) and _is_in_loop(module, each, name):
            raise Refused(f"the loop over `{name}` may end before the iterator does")
    made = generator.name.value
    if any(isinstance(each, cst.While) for each in module.walk(generator.body)):
        raise Refused(f"`{made}` may never end")
    for found in remarks(module, generator.body):
        if found.concern in ("effect", "random", "unknown") and "`yield" not in found.words:
            raise Refused(f"`{made}` does more than compute, in turn with the function")
    if any(True for _ in changes_in_place(module, function.body)):
        raise Refused("the function changes tensors in place, which the iterator may read")


def _is_in_loop(module: SourceModule, node: cst.CSTNode, name: str) -> bool:
    return any(
        isinstance(above, cst.For) and name in module.names_in(above.iter)
        for above in module.ancestors(node)
    )


def _iterated(subject: Subject) -> list[str]:
    """The names of what is iterated over where Dynamo stops."""
    module, statement = subject.module, subject.statement
    through = [statement.iter] if isinstance(statement, cst.For) else []
    for node in module.walk(subject.node):
        if isinstance(node, cst.CompFor):
            through.append(node.iter)
        elif isinstance(node, cst.Call) and module.calls(node, *_CONSUMING) and node.args:
            through.append(node.args[0].value)
    for each in through:
        beside = isinstance(each, cst.Call) and module.calls(each, *_BESIDE)
        parts = (
            [arg.value for arg in each.args] if isinstance(each, cst.Call) and beside else [each]
        )
        names = [part.value for part in parts if isinstance(part, cst.Name)]
        if names:
            return names
    raise NotMeant("what is iterated over here has no name")


def _check_may_all_run(module: SourceModule, given: cst.BaseExpression) -> None:
    """Raises `Refused` where a list would take more than what goes through it: `zip` ends with the
    shortest of its arguments."""
    calls = (each for each in module.walk(given) if isinstance(each, cst.Call))
    if any(module.calls(each, *_ENDLESS) for each in calls):
        raise Refused(f"`{short(module, given)}` never ends")
    if not isinstance(given, cst.GeneratorExp):
        raise Refused(
            f"what is gone through beside it may end before `{short(module, given)}` does"
        )
    parts: list[cst.CSTNode] = [given.elt]
    loop: cst.CompFor | None = given.for_in
    while loop is not None:
        parts += [loop.iter, *(each.test for each in loop.ifs)]
        loop = loop.inner_for_in
    if found := first(module, parts, "effect", "random", "unknown"):
        raise Refused(found.words.replace("the branch", "the iterator"))


def _check_uses(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Raises `Refused` unless it is gone through once: a list can be gone through again. Tells
    whether others beside it may end first."""
    uses = list(_uses(module, function, name))
    if len(uses) != 1:
        raise Refused(
            f"`{name}` is used more than once: a list would not be exhausted by the first use"
        )
    use: cst.CSTNode = uses[0]
    above = module.parent(use)
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    beside = isinstance(call, cst.Call) and module.calls(call, *_BESIDE)
    if beside and call is not None:
        use, above = call, module.parent(call)
    if isinstance(above, (cst.For, cst.CompFor)) and above.iter is use:
        if module.around(above, cst.For, cst.While) is not None:
            raise Refused(f"`{name}` is iterated over inside a loop")
        return beside
    if isinstance(above, cst.Arg) and module.calls(module.parent(above) or above, *_CONSUMING):
        return beside
    raise Refused(f"`{name}` is used as an iterator")


def _uses(module: SourceModule, function: cst.FunctionDef, name: str) -> Iterator[cst.Name]:
    for node in module.walk(function.body):
        if isinstance(node, cst.Name) and node.value == name and name in module.names_in(node):
            yield node


FIX = Fix(
    id="list-for-iterator",
    title="use a list instead of an iterator",
    rules=frozenset({"GB0811", "GB4347", "GB1752", "GB9493", _CALLED}),
    order=30,
    kind="caller",
    why="The iterator is created for this call only and consumed once, so a list of its items "
    "is the same. Dynamo can guard on a list.",
    propose=_propose,
)
