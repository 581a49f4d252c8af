"""Two arguments that are one tensor at some calls are two objects at all of them."""

from __future__ import annotations

import re

from compilescope.change.fixes.arguments.calls import is_plain
from compilescope.change.fixes.arguments.edits import CallEdits, passed
from compilescope.change.fixes.arguments.guarded import cause_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused

_PAIR = re.compile(r"^(\w+) is (\w+)$")


def _propose(subject: Subject) -> Patch:
    match = _PAIR.match(cause_of(subject).subject)
    if match is None:
        raise NotMeant("it is unclear which two arguments are the same object")
    edits = CallEdits(subject)
    for site in edits.sites:
        pair = [passed(subject, site, match[1]), passed(subject, site, match[2])]
        first, second = sorted(pair, key=lambda each: site.call.args.index(each.arg))
        if not first.is_whole or not second.is_whole:
            raise Refused("they are parts of arguments")
        now = site.module.code(second.arg.value)
        if site.module.code(first.arg.value) == now and is_plain(second.arg.value):
            edit = edits.edit(site)
            edit.replace(second.arg.value, edit.expression(f"{now}.view_as({now})"))
    files = edits.files()
    if not files:
        raise Refused("no call passes one name twice")
    return Patch(files)


FIX = Fix(
    id="separate-argument",
    title="pass a view instead of the same tensor twice",
    rules=frozenset({"recompile/aliasing"}),
    order=75,
    kind="source",
    why="`x.view_as(x)` is another object on the same memory: values, in-place changes and "
    "gradients are the same.",
    propose=_propose,
)
