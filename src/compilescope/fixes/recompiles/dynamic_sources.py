"""One number, named by its place, becomes a variable of the graph."""

from __future__ import annotations

import re

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.compiling import main_edit, put_setting
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.needed_numbers import check_counted, check_not_needed
from compilescope.fixes.subject import Subject

_PATH = re.compile(r"^[A-Za-z_]\w*(?:\.\w+|\[(?:\d+|'[^',]*')\])*$")
_ROOT = re.compile(r"[A-Za-z_]\w*")


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if not cause.actual.lstrip("-").isdigit():
        raise NotMeant("the setting only takes integers")
    name = _source_name(cause.subject)
    check_not_needed(subject)
    check_counted(subject)
    edit = main_edit(subject)
    torch = edit.module_name("torch")
    # Added to what is there: other numbers may be named by other fixes, or by the environment.
    put_setting(edit, f'{torch}.compiler.config.dynamic_sources += ",{name}"')
    return Patch(edit.files(), states=f"A number at `{name}` may vary in every compiled function.")


def _source_name(guarded: str) -> str:
    """By which name torch's settings know it: `L['n']`, `G['COUNT']`."""
    if guarded.startswith("G[") and "," not in guarded and '"' not in guarded:
        return guarded
    if not _PATH.match(guarded) or guarded.startswith("___"):
        raise NotMeant(f"`{guarded}` has no name that the setting accepts")
    root = _ROOT.match(guarded)
    assert root is not None
    return f"L['{root[0]}']{guarded[root.end() :]}"


FIX = Fix(
    id="dynamic-sources",
    title="list the number in dynamic_sources",
    rules=frozenset(
        {
            "recompile/int-change",
            "recompile/module-number",
            "recompile/layer-index",
            "recompile/global-change",
        }
    ),
    order=125,
    kind="config",
    why="The setting makes one int a variable of the graph, even in a global or on a module, "
    "where `dynamic=True` keeps it constant.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch

COUNT = 3


@torch.compile(backend="eager")
def f(x):
    return x * COUNT


for _ in range(4):
    f(torch.ones(3))
    COUNT += 1
""",
            good="""import torch

torch.compiler.config.dynamic_sources += ",G['COUNT']"

COUNT = 3


@torch.compile(backend="eager")
def f(x):
    return x * COUNT


for _ in range(4):
    f(torch.ones(3))
    COUNT += 1
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch

COUNTS = {(1, 2): 3}


@torch.compile(backend="eager")
def f(x):
    return x * COUNTS[1, 2]


for _ in range(4):
    f(torch.ones(3))
    COUNTS[1, 2] += 1
""",
            because="no name that the setting accepts",
        ),
    ),
)
