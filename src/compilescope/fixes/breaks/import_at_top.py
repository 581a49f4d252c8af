"""An import that may fail, tried once at the top of the file instead of inside."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.bindings import bound_names
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.toplevel import check_movable, top_names, top_statement
from compilescope.fixes.subject import Subject

_ERRORS = {"builtins.ImportError", "builtins.ModuleNotFoundError"}
_SIMPLE = (cst.Import, cst.ImportFrom, cst.Pass, cst.Assign, cst.AnnAssign)
_CONSTANTS = (cst.Name, cst.SimpleString, cst.Integer, cst.Float)


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
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    try:
        import no_such_package  # the fast one

        fast = True
    except ImportError:
        fast = False
    return x + (2 if fast else 1)


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


try:
    import no_such_package  # the fast one

    fast = True
except ImportError:
    fast = False


def f(x):
    return x + (2 if fast else 1)


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    try:
        import no_such_package

        x = no_such_package.scale(x)
    except ImportError:
        x = x * 2
    return x


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="more than import",
        ),
    ),
)
