"""Output that stays for eager runs, and is silent while the code is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.branches.effects import only_reports, parts_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.outputs import output_call, output_of
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.purity import first
from compilescope.knowledge.source.refusals import NeedsRun
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_READERS = ("record=True", "logging.Handler", "redirect_stdout", "redirect_stderr", "assertLogs")
_QUESTIONS = ("isEnabledFor", "getEffectiveLevel", "hasHandlers")
"""What a logger is asked before something is logged."""
_DONE = {"print": "printed", "log": "logged", "warn": "warned of", "progress": "shown"}


def _propose(subject: Subject) -> Patch:
    module, line = subject.module, subject.statement
    asked = _asked_for(subject)
    call = output_call(subject) if asked is None else None
    if not subject.program.facts.seen and (_is_counted(subject) or _is_asked(subject, call)):
        raise NeedsRun("the program reads its own output, so something may be missing")
    edit = Edit(module)
    torch = edit.module_name("torch")
    if asked is not None:
        test = edit.expression(f"not {torch}.compiler.is_compiling() and f()")
        assert isinstance(test, cst.BooleanOperation)
        loose = isinstance(asked.test, (cst.BooleanOperation, cst.IfExp, cst.Lambda))
        edit.replace(asked.test, test.with_changes(right=_bracketed(asked.test, loose)))
        return _silent(edit, "log")
    assert call is not None
    _guard(edit, line, call)
    for other, beside in _later_turns(subject, line):
        _guard(edit, other, beside)
    return _silent(edit, output_of(module, call) or "log")


def _guard(edit: Edit, line: cst.BaseStatement, call: cst.Call) -> None:
    module, torch = edit.module, edit.module_name("torch")
    lone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if lone and isinstance(module.parent(line), (cst.IndentedBlock, cst.Module)):
        made = edit.statements(f"if not {torch}.compiler.is_compiling():\n    pass\n")[0]
        assert isinstance(made, cst.If)
        bare = line.with_changes(leading_lines=())
        edit.replace_statement(line, [made.with_deep_changes(made.body, body=[bare])])
    else:
        # `if verbose: print(x)` and `a(); print(x)` have no line of their own.
        guarded = edit.expression(f"{torch}.compiler.is_compiling() or f()")
        assert isinstance(guarded, cst.BooleanOperation)
        edit.replace(call, guarded.with_changes(right=call))


def _later_turns(
    subject: Subject, line: cst.BaseStatement
) -> Iterator[tuple[cst.SimpleStatementLine, cst.Call]]:
    """Other output of a generator, as of a context manager that logs when it is entered and left:
    Dynamo never goes on with a generator after a break, so it has come to the first alone."""
    module = subject.module
    function = module.function_of(line)
    if function is None or not any(isinstance(x, cst.Yield) for x in module.walk(function.body)):
        return
    for each in module.walk(function.body):
        only = each.body[0] if isinstance(each, cst.SimpleStatementLine) else None
        call = only.value if isinstance(only, cst.Expr) else None
        if each is line or not isinstance(call, cst.Call) or output_of(module, call) is None:
            continue
        if isinstance(each, cst.SimpleStatementLine) and len(each.body) == 1:
            yield each, call


def _silent(edit: Edit, kind: str) -> Patch:
    done = _DONE[kind]
    states = f"Nothing is {done} here while the code runs compiled."
    return Patch(edit.files(), states=states, allows=frozenset({"drops-output"}))


def _bracketed(node: cst.BaseExpression, loose: bool) -> cst.BaseExpression:
    if not loose or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _asked_for(subject: Subject) -> cst.If | None:
    """`if logger.isEnabledFor(level):` around what only logs; the finding is about the question."""
    module, branch = subject.module, subject.statement
    if not isinstance(branch, cst.If) or branch.orelse is not None:
        return None
    asks = [
        each
        for each in module.walk(branch.test)
        if isinstance(each, cst.Call)
        and isinstance(each.func, cst.Attribute)
        and each.func.attr.value in _QUESTIONS
    ]
    if not asks or first(module, [branch.test], "effect", "random") is not None:
        return None
    if not all(only_reports(subject, branch, each) for each in parts_of(branch.body)):
        return None
    return branch


def _is_counted(subject: Subject) -> bool:
    """The program itself reads what it writes."""
    main = subject.program.main
    texts = [subject.module.text, *([subject.program.text(main)] if main else [])]
    return any(word in text for text in texts for word in _READERS)


def _is_asked(subject: Subject, call: cst.Call | None) -> bool:
    """Does the file ask a progress bar what it shows? `bar.n`, `bar.postfix`"""
    module = subject.module
    if call is None or output_of(module, call) != "progress":
        return False
    func = cst.ensure_type(call.func, cst.Attribute)
    bar = module.code(func.value)
    return any(
        isinstance(node, cst.Attribute)
        and module.code(node.value) == bar
        and not isinstance(module.parent(node), cst.Call)
        for node in module.walk()
    )


FIX = Fix(
    id="print-while-eager",
    title="leave the output out while compiled",
    rules=frozenset({"print-call", "logging-call", "scalar-extraction", "outside-call", "GB0109"}),
    order=190,
    kind="source",
    why="`torch.compiler.is_compiling()` is true while Dynamo traces, so the call is not in "
    "the graph. Eager runs print as before, compiled ones print nothing.",
    propose=_propose,
    observable=True,
    by_name=True,
)
