"""Two arguments that are one tensor at some calls are two objects at all of them."""

from __future__ import annotations

import re

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.arguments import CallEdits
from compilescope.fixes.source.calling import is_plain
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.passing import passed
from compilescope.fixes.subject import Subject

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
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def attend(query, key):
    return query @ key.T


x, memory = torch.ones(3, 3), torch.ones(3, 3)
attend(x, x)
attend(x, memory)
""",
            good="""import torch


@torch.compile(backend="eager")
def attend(query, key):
    return query @ key.T


x, memory = torch.ones(3, 3), torch.ones(3, 3)
attend(x, x.view_as(x))
attend(x, memory)
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def attend(query, key):
    return query @ key.T


x, memory = torch.ones(3, 3), torch.ones(3, 3)
also = x
attend(x, also)
attend(x, memory)
""",
            because="no call passes one name twice",
        ),
    ),
)
