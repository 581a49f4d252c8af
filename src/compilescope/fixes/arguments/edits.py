"""Changes of what a compiled function is called with, at all of its calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from compilescope.fixes.arguments.calls import CallSite, call_sites, hoisted, statement_before
from compilescope.fixes.arguments.passed import passed, split_subject
from compilescope.fixes.compilation.applications import is_compiled
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst


class CallEdits:
    """The edits of the files in which the function is called."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.sites = call_sites(subject)
        self._edits: dict[str, Edit] = {}

    def edit(self, site: CallSite) -> Edit:
        return self._edits.setdefault(site.module.path, Edit(site.module))

    def files(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for edit in self._edits.values():
            texts.update(edit.files())
        return texts


MarkLine: TypeAlias = "Callable[[str, str], str]"


def dynamic_line(dim: int) -> MarkLine:
    return lambda torch, x: f"{torch}._dynamo.maybe_mark_dynamic({x}, {dim})"


def mark_arguments(subject: Subject, values: Iterable[tuple[str, MarkLine]]) -> dict[str, str]:
    """New texts in which `line(torch, expression)` stands before every call, for each of the
    values, with its argument under a name."""
    edits = CallEdits(subject)
    wanted = list(dict.fromkeys(values))
    done: set[tuple[cst.CSTNode, str]] = set()
    for site in edits.sites:
        edit = edits.edit(site)
        if is_compiled(subject, site.module, site.call):
            raise Refused("the call is in compiled code, where nothing can be marked")
        statement = statement_before(site)
        for text in _marks(subject, edit, site, wanted):
            if _is_there(site, statement, text):
                raise NotMeant("it is already marked")
            if (statement, text) not in done:
                done.add((statement, text))
                edit.put_before(statement, text)
    return edits.files()


def _marks(
    subject: Subject,
    edit: Edit,
    site: CallSite,
    values: list[tuple[str, MarkLine]],
) -> Iterator[str]:
    """The lines for one call, in the order of its arguments."""
    first, mark = values[0]
    given = [(passed(subject, site, first), first, mark)]
    for value, line in values[1:]:
        with contextlib.suppress(NotMeant):  # A local of the function, which follows the others.
            given.append((passed(subject, site, value), value, line))
    given.sort(key=lambda each: site.call.args.index(each[0].arg))
    named: dict[cst.Arg, str] = {}
    for each, value, line in given:
        if each.starred:
            name = each.starred
        else:
            if each.arg not in named:
                wanted = split_name(value)
                named[each.arg] = hoisted(edit, site, each.arg, wanted, earlier=list(named))
            name = named[each.arg]
        yield line(edit.module_name("torch"), name + each.path)


def split_name(value: str) -> str:
    """What to call the argument, if it needs a name."""
    if value.startswith("kwargs['"):
        return value.removeprefix("kwargs['").split("'")[0]
    name = split_subject(value)[0]
    return "first" if name == "args" else name


def _is_there(site: CallSite, statement: cst.BaseStatement, text: str) -> bool:
    block = site.module.block_of(statement)
    above = [each for each in block.body if site.module.line(each) < site.module.line(statement)]
    return any(site.module.code(each).strip() == text for each in above)


def wrap_argument(
    subject: Subject, value: str, wrap: Callable[[CallSite, str], str]
) -> dict[str, str]:
    """New texts in which every call passes `wrap(site, argument)` for an argument; what it leaves
    as it is stays."""
    edits = CallEdits(subject)
    for site in edits.sites:
        given = passed(subject, site, value)
        if not given.is_whole:
            raise Refused(f"`{value}` is part of an argument")
        now = site.module.code(given.arg.value)
        new = wrap(site, now)
        if new != now:
            edit = edits.edit(site)
            new = new.replace("torch.", f"{edit.module_name('torch')}.", 1)
            edit.replace(given.arg.value, edit.expression(new))
    texts = edits.files()
    if not texts:
        raise NotMeant("every call already passes it this way")
    return texts


def operand(text: str) -> str:
    """Code that a dot can follow: `(a + b)`, `x`."""
    tree = cst.parse_expression(text)
    simple = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
    return text if isinstance(tree, simple) or tree.lpar else f"({text})"
