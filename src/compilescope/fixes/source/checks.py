"""Checks of tensors that raise: an `assert`, or an `if` whose branches only raise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.catching import catcher
from compilescope.fixes.source.effects import parts_of
from compilescope.fixes.source.messages import Message, read_message
from compilescope.fixes.source.purity import first, short
from compilescope.fixes.source.truth import Truth, read_test
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


@dataclass(frozen=True)
class Check:
    """A test, and what is raised by it."""

    truth: Truth
    raises: bool
    """It raises where the truth holds; an `assert` where it does not."""
    error: str
    message: Message
    original: str
    """What raises, as written, for the part of the test that is no tensor."""


def read_checks(subject: Subject, statement: cst.If | cst.SimpleStatementLine) -> Iterator[Check]:
    """Raises `Refused` where it does more than raise, or where its class is caught."""
    if isinstance(statement, cst.SimpleStatementLine):
        part = statement.body[0]
        if not isinstance(part, cst.Assert):
            raise NotMeant("it is neither an `assert` nor an `if` that raises")
        message = read_message(subject, part.msg, "assertion error")
        _check_catcher(subject, "AssertionError")
        code = subject.module.code(part.msg) if part.msg is not None else ""
        original = f", {code}" if code else ""
        yield Check(read_test(subject, part.test), False, "AssertionError", message, original)
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


def _raising(subject: Subject, branch: cst.If) -> Check:
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
    return Check(read_test(subject, branch.test), True, name, text, module.code(raised))


def _check_catcher(subject: Subject, error: str) -> None:
    if error == "RuntimeError":
        return
    place = catcher(subject.program, subject.file, error)
    if place is not None:
        raise Refused(f"{error} is caught at {place}, but the check would raise RuntimeError")
