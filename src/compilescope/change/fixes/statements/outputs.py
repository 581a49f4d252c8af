"""Calls that write for a person: print, logging, warnings, progress bars, streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

Output = Literal["print", "log", "warn", "progress"]

_FUNCTIONS: dict[str, Output] = {
    "builtins.print": "print",
    "pprint.pprint": "print",
    "pprint.pp": "print",
    "rich.print": "print",
    "sys.stdout.write": "print",
    "sys.stderr.write": "print",
    "sys.stdout.flush": "print",
    "sys.stderr.flush": "print",
    "warnings.warn": "warn",
    "warnings.warn_explicit": "warn",
    "tqdm.tqdm.write": "progress",
    "tqdm.auto.tqdm.write": "progress",
    "tqdm.write": "progress",
    "wandb.log": "log",
}
_ONCE = ("warning_once", "info_once", "debug_once", "error_once")
_LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "log")
_LOG_METHODS = {*_LEVELS, *_ONCE, "add_scalar", "add_scalars", "add_histogram", "log_metrics"}
_BAR_METHODS = {
    "update",
    "set_description",
    "set_description_str",
    "set_postfix",
    "set_postfix_str",
    "refresh",
    "write",
}


def output_of(module: SourceModule, call: cst.CSTNode | None) -> Output | None:
    """What kind of output a call is; None where it is none, or nobody can tell."""
    if not isinstance(call, cst.Call):
        return None
    for name in module.meaning(call.func):
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        if name.startswith("logging.") and name.split(".")[1] in _LOG_METHODS:
            return "log"
    func = call.func
    if not isinstance(func, cst.Attribute):
        return None
    if func.attr.value in _LOG_METHODS and _is_named_for(module, func.value, _LOGGERS):
        return "log"
    if func.attr.value in _BAR_METHODS and _is_named_for(module, func.value, _BARS):
        return "progress"
    return None


_MOVED = "A log record names the operator's function and line, not the caller's."
_LOGGERS = ("log", "logger", "writer", "tensorboard", "wandb")
_BARS = ("bar", "pbar", "progress", "tqdm")


def _is_named_for(module: SourceModule, node: cst.BaseExpression, words: tuple[str, ...]) -> bool:
    """`log`, `self.logger`, `_LOG`, `train_writer`; or a name that is bound to `getLogger(...)`
    or to a bar of tqdm's."""
    if isinstance(node, cst.Name):
        for definition in definitions_of(module, node):
            made = module.around(definition, cst.Assign, within_function=False)
            maker = made.value if made is not None else None
            names = module.meaning(maker.func) if isinstance(maker, cst.Call) else ()
            if any("getLogger" in name or "tqdm" in name for name in names):
                return True
    last = node.attr if isinstance(node, cst.Attribute) else node
    if not isinstance(last, cst.Name):
        return isinstance(last, cst.Call) and "getLogger" in module.code(last.func)
    name = last.value.lower().strip("_")
    return any(name == word or name.endswith(f"_{word}") for word in words)


def is_told_once(call: cst.Call) -> bool:
    """`logger.warning_once(...)`: a repetition is swallowed."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _ONCE


def moved_note(kinds: Iterable[str]) -> str:
    """What a user could see change where a call is moved into a function of its own."""
    return _MOVED if "log" in kinds else ""


def output_call(subject: Subject) -> cst.Call:
    """The call that writes, of which the finding is about a part or the whole; it is a statement
    of its own. Raises `Refused` where there is none."""
    module = subject.module
    found = next((n for n in _outwards(subject) if output_of(module, n) is not None), None)
    if found is None and subject.rule in ("logging-call", "print-call"):
        found = _lone_call(subject)
    if found is None:
        raise NotMeant("it is not part of a print or a log message")
    if not isinstance(module.parent(found), cst.Expr):
        raise Refused("the output call is part of a larger statement")
    assert isinstance(found, cst.Call)
    return found


def _outwards(subject: Subject) -> list[cst.CSTNode]:
    node = subject.node
    if isinstance(node, cst.BaseStatement):
        lone = _lone_call(subject)
        return [lone] if lone is not None else []
    statement = subject.statement
    around = [node]
    for above in subject.module.ancestors(node):
        if above is statement:
            break
        around.append(above)
    return around


def _lone_call(subject: Subject) -> cst.Call | None:
    """The call that a line consists of."""
    line = subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    only = line.body[0]
    value = only.value if isinstance(only, cst.Expr) else None
    return value if isinstance(value, cst.Call) else None
