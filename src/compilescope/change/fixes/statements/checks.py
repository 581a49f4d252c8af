"""Checks of tensors that raise: an `assert`, or an `if` whose branches only raise.

With the message of the exception as text that is known before the numbers are, and whether the
program catches it somewhere, so that its class matters.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compilescope.change.fixes.branches.condition import Truth, read_test
from compilescope.change.fixes.branches.effects import parts_of
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.fixes.values.tensors import facts_of, is_static
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_MOST_FILES = 100
"""Chosen: each is parsed; a handler in files beyond these is not seen."""
_EXPECTING = {"raises", "suppress", "assertRaises", "assertRaisesRegex"}
_EVERYTHING = {"Exception", "BaseException"}


def catcher(program: Program, file: str, name: str) -> str | None:
    """`train.py:12` of the first place in the user's own files that names the class, or one that
    it derives from other than `Exception`."""
    wanted = {name, *_bases(name)} - _EVERYTHING
    for module in own_modules(program, file):
        for node in module.walk():
            caught: list[cst.BaseExpression] = []
            if isinstance(node, cst.ExceptHandler) and node.type is not None:
                caught = [node.type]
            elif isinstance(node, cst.Call) and _last(node.func) in _EXPECTING:
                caught = [arg.value for arg in node.args]
            named = {_last(each) for part in caught for each in _classes(part)}
            if named & wanted:
                return f"{Path(module.path).name}:{module.line(node)}"
    return None


def _bases(name: str) -> set[str]:
    known = getattr(builtins, name, None)
    return (
        {base.__name__ for base in known.__mro__} - {"object"} if isinstance(known, type) else set()
    )


def _classes(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        yield from (element.value for element in node.elements)
    else:
        yield node


def _last(node: cst.CSTNode) -> str:
    """`ValueError` of `errors.ValueError`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def own_modules(program: Program, file: str) -> Iterator[SourceModule]:
    """The file, the script, and what they import of the user's own."""
    waiting = [file, program.main]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        if not path or path in seen:
            continue
        seen.add(path)
        try:
            module = program.module(path)
        except Refused:
            continue
        yield module
        roots = {str(Path(path).parent), str(Path(program.main).parent), program.root}
        for name in _imports(module):
            for root in roots:
                waiting += [found for found in _files(root, name) if program.is_own(found)]


def _imports(module: SourceModule) -> Iterator[str]:
    for node in module.walk():
        if isinstance(node, cst.Import):
            for alias in node.names:
                yield module.code(alias.name)
        elif isinstance(node, cst.ImportFrom):
            head = module.code(node.module) if node.module is not None else ""
            if head:
                yield head
            if not isinstance(node.names, cst.ImportStar):
                for alias in node.names:
                    yield f"{head}.{module.code(alias.name)}".strip(".")


def _files(root: str, dotted: str) -> list[str]:
    if not root:
        return []
    base = Path(root).joinpath(*dotted.split("."))
    return [str(path) for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]


@dataclass(frozen=True)
class Message:
    code: str
    """An expression without tensors."""
    left_out: tuple[str, ...] = ()
    """Expressions whose value the message had, and now has not."""


def read_message(subject: Subject, node: cst.BaseExpression | None, otherwise: str) -> Message:
    """Raises `Refused` where it cannot be told what the message would be."""
    module = subject.module
    if node is None:
        return Message(repr(otherwise))
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return Message(module.code(node))
    if isinstance(node, cst.ConcatenatedString):
        left = read_message(subject, node.left, "")
        right = read_message(subject, node.right, "")
        return Message(f"{left.code} {right.code}", (*left.left_out, *right.left_out))
    if isinstance(node, cst.FormattedString):
        return _formatted(subject, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        left = read_message(subject, node.left, "")
        right = read_message(subject, node.right, "")
        return Message(f"{left.code} + {right.code}", (*left.left_out, *right.left_out))
    if _is_made_of_static(subject, node):
        return Message(module.code(node))
    if isinstance(node, (cst.Name, cst.Attribute)):
        seen = facts_of(subject, node)
        if seen and all(fact.kind == "text" for fact in seen):
            return Message(module.code(node))
    raise Refused(f"the message `{short(module, node)}` is not known before the values are")


def _is_made_of_static(subject: Subject, node: cst.BaseExpression) -> bool:
    """`str(n)`, `"at %d" % n`, `"at {}".format(n)`."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        right = node.right
        values = [e.value for e in right.elements] if isinstance(right, cst.Tuple) else [right]
        plain = isinstance(node.left, (cst.SimpleString, cst.ConcatenatedString))
    elif isinstance(node, cst.Call):
        values = [arg.value for arg in node.args]
        func = node.func
        method = isinstance(func, cst.Attribute) and func.attr.value == "format"
        held = func.value if isinstance(func, cst.Attribute) else None
        plain = (method and isinstance(held, cst.SimpleString)) or subject.module.calls(
            node, "builtins.str", "builtins.repr"
        )
    else:
        return False
    return plain and all(is_static(subject, value) for value in values)


def _formatted(subject: Subject, node: cst.FormattedString) -> Message:
    """Sizes and dtypes stay; of tensors the message names the expression, not the value."""
    module = subject.module
    parts: list[cst.BaseFormattedStringContent] = []
    lost: list[str] = []
    for part in node.parts:
        if not isinstance(part, cst.FormattedStringExpression) or _is_plain(subject, part):
            parts.append(part)
            continue
        shown = " ".join(module.code(part.expression).split())
        lost.append(shown)
        parts.append(cst.FormattedStringText(shown.replace("{", "{{").replace("}", "}}")))
        if node.quote[0] in shown or "\\" in shown or "#" in shown:
            raise Refused(f"the message contains the value of `{shown}`")
    made = module.code(node.with_changes(parts=parts))
    if not any(isinstance(part, cst.FormattedStringExpression) for part in parts) and lost:
        made = made.replace("f", "", 1).replace("F", "", 1) if made[0] in "fF" else made
    return Message(made, tuple(lost))


def _is_plain(subject: Subject, part: cst.FormattedStringExpression) -> bool:
    value = part.expression
    if isinstance(value, cst.Call) and subject.module.calls(
        value, "builtins.tuple", "builtins.list"
    ):
        value = value.args[0].value if value.args else value
    return is_static(subject, value)


@dataclass(frozen=True)
class RaisingCheck:
    """A test, and what is raised by it."""

    truth: Truth
    raises: bool
    """It raises where the truth holds; an `assert` where it does not."""
    error: str
    message: Message
    original: str
    """What raises, as written, for the part of the test that is no tensor."""


def read_checks(
    subject: Subject, statement: cst.If | cst.SimpleStatementLine
) -> Iterator[RaisingCheck]:
    """Raises `Refused` where it does more than raise, or where its class is caught."""
    if isinstance(statement, cst.SimpleStatementLine):
        part = statement.body[0]
        if not isinstance(part, cst.Assert):
            raise NotMeant("it is neither an `assert` nor an `if` that raises")
        message = read_message(subject, part.msg, "assertion error")
        _check_catcher(subject, "AssertionError")
        code = subject.module.code(part.msg) if part.msg is not None else ""
        original = f", {code}" if code else ""
        yield RaisingCheck(
            read_test(subject, part.test), False, "AssertionError", message, original
        )
        return
    branch: cst.CSTNode | None = statement
    while branch is not None:
        if not isinstance(branch, cst.If):
            raise NotMeant("the check has an `else`")
        if branch is not statement:
            _check_quiet(subject, branch.test)
        yield _raising(subject, branch)
        branch = branch.orelse


def _check_quiet(subject: Subject, test: cst.BaseExpression) -> None:
    found = first(subject.module, [test], "effect", "unknown", "random", "raises")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the `elif`"))
    if is_static(subject, test):
        raise NotMeant("the `elif` does not check a tensor")


def _raising(subject: Subject, branch: cst.If) -> RaisingCheck:
    module = subject.module
    parts = list(parts_of(branch.body))
    if len(parts) != 1 or not isinstance(parts[0], cst.Raise):
        raise NotMeant("the branch does more than raise")
    raised = parts[0]
    if raised.cause is not None or raised.exc is None:
        raise Refused(f"`{short(module, raised)}` passes on another exception")
    error, message = raised.exc, None
    if isinstance(error, cst.Call):
        plain = all(arg.keyword is None and not arg.star for arg in error.args)
        if not plain or len(error.args) > 1:
            raise Refused(f"`{short(module, error)}` takes more than a message")
        message = error.args[0].value if error.args else None
        error = error.func
    name = module.code(error).rsplit(".", 1)[-1]
    if not isinstance(error, (cst.Name, cst.Attribute)) or not name[:1].isupper():
        raise Refused(f"it is unknown what `{short(module, raised)}` raises")
    _check_catcher(subject, name)
    text = read_message(subject, message, name)
    return RaisingCheck(read_test(subject, branch.test), True, name, text, module.code(raised))


def _check_catcher(subject: Subject, error: str) -> None:
    if error == "RuntimeError":
        return
    place = catcher(subject.program, subject.file, error)
    if place is not None:
        raise Refused(f"{error} is caught at {place}, but the check would raise RuntimeError")
