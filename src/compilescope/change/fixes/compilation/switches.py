"""What decides whether a line runs: flags, and tests for what the first call will have made.

`if self.config.use_cache:`, `if output_attentions:`, `if self.cache is None:`.

Flags are sought from the line outwards, along the calls that led to it, in whosever code it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.base.patterns import late
from compilescope.change.fixes.compilation.objects import MAKERS
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak

_DEEPEST = 12
"""Innermost frames of a stack. Chosen: a flag that decides farther out decides about much else."""


FIRST_CALL_CATEGORIES = frozenset(
    f"category/{each}"
    for each in (
        "data-dependent-branch",
        "data-dependent-operator",
        "dynamic-shape-operator",
        "scalar-extraction",
        "skipped-function",
        "logging",
        "exception",
        "unsupported-builtin",
        "context-manager",
        "generator",
        "class-construction",
        "extension",
        "mutation",
        "autograd",
        "rng-device-state",
        "reconstruction",
    )
)
"""What a library may do while it sets something up, and Dynamo cannot trace."""


class Switch(msgspec.Struct, frozen=True):
    """A flag, and the value with which the line is not reached."""

    name: str
    value: bool
    of_config: bool
    """A field of a config object; else a parameter of the function."""
    file: str
    function: str = ""
    """The one whose parameter it is."""
    by_default: bool = False
    """A parameter that is None unless it is given: the library takes it from its config then."""

    @property
    def is_nature(self) -> bool:
        """`is_encoder_decoder` says what a model is: with another value it is another model."""
        return self.name.startswith(("is_", "has_"))


def stack_places(subject: Subject) -> list[tuple[str, int]]:
    """(file, line) on the stacks of the break, innermost first."""
    found = [(subject.file, subject.line)]
    events = subject.program.run.events_with(subject.finding.because)
    stacks = dict.fromkeys(e.stack for e in events if isinstance(e.body, GraphBreak))
    for whole in stacks:
        stack = [each for each in whole if each.origin in ("user", "library")]
        found += [(each.file, each.line) for each in reversed(stack[-_DEEPEST:])]
    return list(dict.fromkeys(found))


def switches_of(subject: Subject) -> Iterator[Switch]:
    """The nearest first."""
    for file, line in stack_places(subject):
        try:
            module = subject.program.module(file)
        except Refused:
            continue
        statement = module.statement_at(line)
        if statement is not None:
            yield from _around(module, statement)


def _around(module: SourceModule, statement: cst.BaseStatement) -> Iterator[Switch]:
    current: cst.CSTNode = statement
    function = module.function_of(statement)
    if isinstance(statement, cst.If):
        # The test itself is what breaks: what stands before it in an `and` may keep it away.
        yield from _keeping(module, function, statement.test, False)
    for above in module.ancestors(statement):
        if isinstance(above, cst.If):
            yield from _keeping(module, function, above.test, above.body is not current)
        elif isinstance(above, cst.IndentedBlock):
            for earlier in above.body:
                if earlier is current:
                    break
                if isinstance(earlier, cst.If) and leaves(earlier):
                    yield from _keeping(module, function, earlier.test, True)
        elif isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return
        current = above


def leaves(test: cst.If) -> bool:
    """Its body ends with `return`."""
    body = test.body.body
    last = body[-1] if body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Return)


def _keeping(
    module: SourceModule, function: cst.FunctionDef | None, test: cst.BaseExpression, wanted: bool
) -> Iterator[Switch]:
    """Flags one of which makes the test as wanted, whatever else it asks."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _keeping(module, function, test.expression, not wanted)
    elif isinstance(test, cst.BooleanOperation):
        # One false part is enough for a false `and`, one true part for a true `or`.
        if isinstance(test.operator, cst.Or) == wanted:
            yield from _keeping(module, function, test.left, wanted)
            yield from _keeping(module, function, test.right, wanted)
    elif isinstance(test, cst.Attribute):
        owner = module.code(test.value)
        if owner.split(".")[-1].endswith("config"):
            yield Switch(test.attr.value, wanted, True, module.path)
    elif isinstance(test, cst.Name) and function is not None:
        default = _default_of(function, test.value)
        if default in ("True", "False", "None"):
            named, none = function.name.value, default == "None"
            yield Switch(test.value, wanted, False, module.path, named, by_default=none)


def _default_of(function: cst.FunctionDef, name: str) -> str:
    """What a parameter is if it is not given, as it is written; empty if that is no name."""
    params = function.params
    for each in (*params.posonly_params, *params.params, *params.kwonly_params):
        if each.name.value == name and isinstance(each.default, cst.Name):
            return each.default.value
    return ""


_WORDS = late(
    r"(?:^|_)(?:init|initiali[sz]ed|installed|built|ready|first|once|warned|cached|prepared|set_?up|"
    r"loaded|seen|done|started|registered|called|logged|printed)(?:_|$)"
)


def runs_once(subject: Subject) -> str:
    """The test that stands before it somewhere on the way from the user's call, as code.
    Raises `Refused` where nothing says that it happens in the first call only."""
    for file, line in stack_places(subject):
        try:
            module = subject.program.module(file)
        except Refused:
            continue
        found = _test_before(module, line)
        if found is not None:
            return module.code(found)
    raise NotMeant("nothing shows that it happens in the first call only")


def _test_before(module: SourceModule, line: int) -> cst.BaseExpression | None:
    """Of the `if` around a line, or of an earlier one that returns."""
    statement = module.statement_at(line)
    if statement is None:
        return None
    current: cst.CSTNode = statement
    for above in (statement, *module.ancestors(statement)):
        if isinstance(above, cst.If) and above is not statement and _is_for_once(module, above):
            return above.test
        if isinstance(above, cst.IndentedBlock):
            tests: list[cst.BaseExpression] = []
            for earlier in above.body:
                if earlier is current:
                    break
                if isinstance(earlier, cst.If) and leaves(earlier):
                    tests.append(earlier.test)
            lazy = [test for test in tests if _is_lazy(module, test)]
            if lazy:
                return lazy[0]
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return None
        current = above
    return None


def _is_for_once(module: SourceModule, branch: cst.If) -> bool:
    return _is_lazy(module, branch.test) or _turns_itself_off(module, branch)


def _turns_itself_off(module: SourceModule, branch: cst.If) -> bool:
    """`if not self.hooked:`, whose body sets `self.hooked = True`."""
    test, wanted = branch.test, "False"
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, wanted = test.expression, "True" if wanted == "False" else "False"
    asked = module.code(test.with_changes(lpar=(), rpar=()))
    if _is_set_back(module, asked.rpartition(".")[2], wanted):
        return False
    return any(
        isinstance(each, cst.Assign)
        and module.code(each.value) == wanted
        and any(module.code(target) == asked for target in targets(each))
        for line in branch.body.body
        for each in (line.body if isinstance(line, cst.SimpleStatementLine) else ())
    )


def _is_set_back(module: SourceModule, name: str, wanted: str) -> bool:
    """Does the file set it to something else later on: in a loop, or in a function that makes no
    object?"""
    for node in module.walk():
        if not isinstance(node, cst.Assign) or module.code(node.value) == wanted:
            continue
        if all(module.code(target).rpartition(".")[2] != name for target in targets(node)):
            continue
        function = module.function_of(node)
        if function is not None and function.name.value not in MAKERS:
            return True
        if module.around(node, cst.For, cst.While) is not None:
            return True
    return False


def _is_lazy(module: SourceModule, test: cst.BaseExpression) -> bool:
    for node in module.walk(test):
        if isinstance(node, cst.Call) and module.calls(
            node, "builtins.hasattr", "builtins.getattr"
        ):
            return True
        if isinstance(node, cst.ComparisonTarget):
            if isinstance(node.operator, (cst.In, cst.NotIn)):
                return True
            if isinstance(node.operator, (cst.Is, cst.IsNot)) and _is_attribute_test(module, node):
                return True
        name = node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")
        if isinstance(node, (cst.Attribute, cst.Name)) and _WORDS.search(str(name)):
            return True
    return False


def _is_attribute_test(module: SourceModule, target: cst.ComparisonTarget) -> bool:
    """`self.cache is None`; an argument that may be None is another matter."""
    above = module.parent(target)
    return (
        isinstance(above, cst.Comparison)
        and isinstance(above.left, cst.Attribute)
        and module.code(target.comparator) == "None"
    )
