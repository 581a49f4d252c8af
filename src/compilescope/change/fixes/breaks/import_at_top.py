"""An import that may fail, tried once at the top of the file instead of inside."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import bound_names
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.toplevel import check_movable, top_names, top_statement
from compilescope.knowledge.source.trees import cst, kinds

_ERRORS = {"builtins.ImportError", "builtins.ModuleNotFoundError"}
_SIMPLE = kinds(lambda: (cst.Import, cst.ImportFrom, cst.Pass, cst.Assign, cst.AnnAssign))
_CONSTANTS = kinds(lambda: (cst.Name, cst.SimpleString, cst.Integer, cst.Float))


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    attempt = module.around(subject.node, cst.Try)
    if attempt is None:
        raise NotMeant("the import is not in a `try`, so a failed import ends the call")
    if module.parent(attempt) is not function.body:
        raise Refused("the import only runs on some paths through the function")
    _check_harmless(module, attempt)
    names = bound_names([attempt])
    rest = [each for each in function.body.body if each is not attempt]
    if names & (bound_names(rest) | top_names(module)):
        raise Refused("a name that the import binds is also bound elsewhere")
    place = top_statement(module, function)
    check_movable(module, [attempt], place, "the import")
    edit = Edit(module)
    edit.put_definition_before(place, [attempt])
    edit.move_away(attempt)
    return Patch(edit.files(), states=_STATES)


_STATES = "The import runs when the file is loaded, not when the function is called."


def _check_harmless(module: SourceModule, attempt: cst.Try) -> None:
    """Nothing but imports and flags."""
    if attempt.finalbody is not None:
        raise Refused("the `try` has a `finally`")
    for handler in attempt.handlers:
        if handler.type is None or not module.meaning(handler.type) & _ERRORS:
            raise Refused("the `try` catches more than a failed import")
    blocks = [attempt.body, *(handler.body for handler in attempt.handlers)]
    if attempt.orelse is not None:
        blocks.append(attempt.orelse.body)
    for block in blocks:
        for line in block.body:
            parts = line.body if isinstance(line, cst.SimpleStatementLine) else [line]
            for part in parts:
                if not isinstance(part, _SIMPLE) or not isinstance(
                    getattr(part, "value", None), (type(None), *_CONSTANTS)
                ):
                    raise Refused("the `try` does more than import")


FIX = Fix(
    id="import-at-top",
    title="move the import to the top of the file",
    rules=frozenset({"GB0069", "GB0022"}),
    order=110,
    kind="source",
    why="Whether a package is installed does not change while a program runs. A `try` with "
    "only imports and flags sets the same names at the top of the file.",
    propose=_propose,
)
