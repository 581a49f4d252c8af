"""The recompile limit is raised, for a function that has more ways than it allows."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.compiling import set_argument
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.regions import region_of
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    if subject.frame is None or not subject.frame.limit_hit:
        raise NotMeant("the recompile limit was not reached")
    region = region_of(subject)
    if region.argument("recompile_limit") is not None:
        raise NotMeant("recompile_limit is already set")
    edit = Edit(region.module)
    set_argument(edit, region, "recompile_limit", "64")
    return Patch(
        edit.files(),
        states="Up to 64 compilations are made, each with its compile time.",
        needs_human="Are there few enough different calls that compiling each one pays off?",
    )


FIX = Fix(
    id="raised-limit",
    title="raise the recompile limit",
    rules=frozenset({"recompile"}),
    order=230,
    kind="scaffold",
    why="Beyond the limit, calls that match no graph run eagerly. More graphs cost compile "
    "time, and memory for as long as the process runs. Only the author knows how many "
    "there will be.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x, name):
    return x + 1 if name == "a" else x * 2


for name in "abcdefghijkl":
    f(torch.ones(3), name)
""",
            good="""import torch


@torch.compile(backend="eager", recompile_limit=64)
def f(x, name):
    return x + 1 if name == "a" else x * 2


for name in "abcdefghijkl":
    f(torch.ones(3), name)
""",
        ),
    ),
)
