"""The first call runs eagerly, so what it sets up once exists when the second one is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilescope.change.fixes.arguments.guarded import cause_of, recompiled_function
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.regions import is_compiled
from compilescope.change.fixes.compilation.settings import eager_then_compile
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of, receiver_of
from compilescope.knowledge.source.trees import cst

_PASSED = ("kwargs[", "args[")
_NAMES = re.compile(r"[A-Za-z_]\w*")


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.count > 1:
        raise NotMeant(
            "the guard failed more than once, so the first call is not the only one that differs"
        )
    if "." not in cause.subject and not cause.subject.startswith("G["):
        # A caller that passes two kinds of things needs both; nothing is prepared by the first.
        raise NotMeant(f"`{cause.subject}` is passed by the caller, not created by the first call")
    if not subject.program.facts.seen and _is_passed(subject, cause.subject):
        raise NeedsRun("it is unknown whether every call passes the same object")
    if subject.program.is_own(subject.file) and not _is_prepared(subject, cause.subject):
        raise NotMeant(f"compiled code does not change `{cause.subject}`, so no call prepares it")
    return eager_then_compile(subject)


def _is_passed(subject: Subject, value: str) -> bool:
    """Is it part of an argument, which may be another object in each call?"""
    value = value.removeprefix("type(")
    root = _NAMES.match(value)
    if value.startswith(_PASSED) or root is None:
        return value.startswith(_PASSED)
    try:
        module, function = recompiled_function(subject)
    except Refused:  # A library's, whose own objects it is about more often.
        return False
    if isinstance(function, cst.Lambda):
        return True
    return root[0] in parameters_of(function) and root[0] != receiver_of(module, function)


def _is_prepared(subject: Subject, value: str) -> bool:
    """Does compiled code set it, a part of it, or call a method of it?"""
    names = _NAMES.findall(value)
    if not names:
        return False
    return any(
        _last_name(part) == names[-1] and is_compiled(subject, module, node)
        for module in own_modules(subject.program)
        for node in module.walk()
        for part in _changed(node)
    )


def _changed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for target in targets(node):
        yield target
        if isinstance(target, cst.Subscript):
            yield target.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        yield node.func.value
    if isinstance(node, cst.Call) and len(node.args) == 3:  # setattr(self, "table", ...)
        yield node.args[1].value


def _last_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.SimpleString):
        return str(node.evaluated_value)
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


FIX = Fix(
    id="first-call-eager",
    title="run the first call eagerly",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "none-or-value",
            "attribute-presence",
            "bool-change",
            "module-flag",
            "module-number",
            "length-change",
            "key-change",
            "type-change",
            "global-change",
            "object-identity",
            "other-change",
        )
    ),
    order=130,
    kind="caller",
    why="With the stance `eager_then_compile`, each function is compiled on its second call. A "
    "cache that the first call fills, or an attribute that it adds, exists by then.",
    propose=_propose,
)
