"""Every call of a helper whose result would become something else.

A function may be called from anywhere it is known. So all of the program's own files are searched
for its name, and whoever does more than call it makes the change impossible.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.fixes.compilation.own_files import own_modules
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NeedsRun, Refused
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_PLAIN_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "builtins.object"})
"""Classes that call no method of a subclass, but for `forward` and those with underscores."""


def calls_of_helper(subject: Subject) -> list[tuple[Subject, cst.Call]]:
    """Each call of the function around a finding, and the finding looked at from there. Raises
    `Refused` where not all calls can be known, or one has not been watched."""
    module, helper = subject.module, subject.function
    name = helper.name.value
    _check_plain(module, helper)
    found = [
        (subject.at(each, each.statement_of(call)), call)
        for each in own_modules(subject.program)
        for call in _calls(each, name, helper if each.path == module.path else None)
    ]
    if not found:
        raise Refused(f"it is unknown who calls `{name}`")
    for there, _ in found:
        if not subject.program.facts.reached(there.file, there.line):
            raise NeedsRun(f"no run shows what is done with `{name}()` on line {there.line}")
    return found


def _check_plain(module: SourceModule, helper: cst.FunctionDef) -> None:
    """Raises `Refused` unless it is a function of the file or a method, which one `return` ends."""
    name = helper.name.value
    returned = [each for each in module.walk(helper) if isinstance(each, cst.Return)]
    last = statements_of(helper)[-1]
    at_end = isinstance(last, cst.SimpleStatementLine) and last.body[-1] in returned
    if len(returned) != 1 or not at_end:
        raise Refused(f"`{name}` returns in several places")
    if helper.decorators or helper.asynchronous is not None:
        raise Refused(f"`{name}` has a decorator or is async")
    made = module.class_of(helper)
    if module.around(helper, cst.FunctionDef) is not None:
        raise Refused(f"`{name}` is a function within another one")
    if made is None:
        return
    if name == "forward" or name.startswith("__"):
        raise Refused(f"`{name}` is called by a library, too")
    for base in made.bases:
        if not module.meaning(base.value) & _PLAIN_BASES:
            raise Refused(f"it is unknown whether `{module.code(base.value)}` calls `{name}`")


def _calls(module: SourceModule, name: str, helper: cst.FunctionDef | None) -> Iterator[cst.Call]:
    """Raises `Refused` for any other mention of the name."""
    for node in module.walk():
        if isinstance(node, cst.FunctionDef) and node.name.value == name and node is not helper:
            raise Refused(f"there are several functions called `{name}`")
        if isinstance(node, cst.Call) and module.calls(node, "builtins.getattr"):
            texts = [each.value for each in node.args if isinstance(each.value, cst.SimpleString)]
            if any(each.evaluated_value == name for each in texts):
                raise Refused(f"`{module.code(node)}` gives the function itself")
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        above = module.parent(node)
        if isinstance(above, cst.FunctionDef) and above.name is node:
            continue
        if isinstance(above, cst.ImportAlias) and above.asname is None:
            continue
        callee: cst.CSTNode = node
        if isinstance(above, cst.Attribute) and above.attr is node:
            callee, above = above, module.parent(above)
        if not isinstance(above, cst.Call) or above.func is not callee:
            raise Refused(f"`{name}` is passed on, and may be called elsewhere")
        yield above
