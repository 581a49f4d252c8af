"""An environment variable by which a library skips the code that breaks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from compilescope.change.fixes.compilation.settings import main_edit, put_setting
from compilescope.change.fixes.compilation.switches import leaves
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_READS = ("os.getenv", "os.environ.get")


class _Switch(msgspec.Struct, frozen=True):
    name: str
    value: str


def _propose(subject: Subject) -> Patch:
    switch = next(_switches(subject.module, subject.statement), None)
    if switch is None:
        raise NotMeant("no environment variable turns it off")
    if not subject.program.facts.seen and _raises(subject):
        raise NeedsRun(f"with {switch.name}={switch.value} a check would be skipped")
    edit = main_edit(subject)
    os = edit.module_name("os")
    put_setting(edit, f'{os}.environ["{switch.name}"] = "{switch.value}"', "os")
    function = subject.finding.function
    return Patch(
        edit.files(),
        states=f"{switch.name} is {switch.value}: `{function}` skips what it does there.",
    )


def _raises(subject: Subject) -> bool:
    """What is switched off raises, and the program catches what is raised."""
    module, function = subject.module, subject.function
    if not any(isinstance(each, (cst.Raise, cst.Assert)) for each in module.walk(function.body)):
        return False
    main = subject.program.main
    files = {module.path: module, **({main: subject.program.module(main)} if main else {})}
    return any(
        isinstance(each, (cst.Try, cst.TryStar)) and each.handlers
        for own in files.values()
        for each in own.walk()
    )


def _switches(module: SourceModule, statement: cst.BaseStatement) -> Iterator[_Switch]:
    """Values that keep the program from coming to the statement."""
    current: cst.CSTNode = statement
    for above in module.ancestors(statement):
        if isinstance(above, cst.IndentedBlock):
            for earlier in above.body:
                if earlier is current:
                    break
                if isinstance(earlier, cst.If) and leaves(earlier):
                    yield from _making(module, earlier.test, True)
        elif isinstance(above, cst.If):
            yield from _making(module, above.test, above.body is not current)
        elif isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return
        current = above


def _making(module: SourceModule, test: cst.BaseExpression, wanted: bool) -> Iterator[_Switch]:
    """Values with which the test is as wanted."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _making(module, test.expression, not wanted)
        return
    name = _variable(module, test)
    if name:
        yield _Switch(name, "1" if wanted else "")
        return
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return
    name, target = _variable(module, test.left), test.comparisons[0]
    values = _texts(module, target.comparator)
    same = isinstance(target.operator, (cst.Equal, cst.In))
    if (
        not name
        or not values
        or not (same or isinstance(target.operator, (cst.NotEqual, cst.NotIn)))
    ):
        return
    if same == wanted:
        yield _Switch(name, values[0])
    else:
        yield _Switch(name, "1" if "1" not in values else "0")


def _variable(module: SourceModule, node: cst.BaseExpression) -> str:
    """`DEBUG` of `os.getenv("DEBUG", "0")`, with `.lower()` and the like after it."""
    while (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("lower", "upper", "strip")
    ):
        node = node.func.value
    key: cst.CSTNode | None = None
    if isinstance(node, cst.Call) and module.calls(node, *_READS) and node.args:
        key = node.args[0].value
    elif isinstance(node, cst.Subscript) and module.meaning(node.value) & {"os.environ"}:
        index = node.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
    return str(key.evaluated_value) if isinstance(key, cst.SimpleString) else ""


def _texts(module: SourceModule, node: cst.BaseExpression) -> list[str]:
    try:
        value = ast.literal_eval(module.code(node))
    except (ValueError, SyntaxError):
        return []
    values = [value] if isinstance(value, str) else list(value) if _is_many(value) else []
    return [each for each in values if isinstance(each, str)]


def _is_many(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


FIX = Fix(
    id="environment-switch",
    title="turn it off with an environment variable",
    rules=frozenset(
        f"category/{each}"
        for each in (
            "data-dependent-branch",
            "data-dependent-operator",
            "validation-guard",
            "scalar-extraction",
            "skipped-function",
            "logging",
            "unsupported-builtin",
            "context-manager",
            "rng-device-state",
        )
    ),
    order=165,
    kind="caller",
    only_run_tells=True,
    why="The library itself checks the variable before it reaches the line. Whatever the line "
    "does (a check, a message, a measurement) is skipped.",
    propose=_propose,
)
