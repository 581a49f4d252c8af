"""The buttons on the page of a run: the commands that make sense for it, forms filled in."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from compilescope.dashboard.addresses import (
    compare_address,
    fix_address,
    run_address,
    start_address,
)
from compilescope.dashboard.runs.rows import RunRow


class Action(NamedTuple):
    label: str
    address: str
    needs_token: bool = False
    file: bool = False
    """It is a file to keep, and not a page."""


_BUILD = re.compile(r"[^-].*\.py:\w+")
_FORMS = {"benchmark": "bench", "sweep": "sweep", "numbers": "diff"}
"""Kind of run -> the form that starts another."""


def actions_of(row: RunRow, cwd: str, rows: Sequence[RunRow], *, ours: bool) -> list[Action]:
    """`ours`: it was recorded here, so what it says may be started again."""
    found = _starting(row, cwd) if ours else _reading(row)
    earlier = previous_run(row, rows)
    if earlier is not None:
        found.append(Action("Compare with previous", compare_address(earlier.run, row.run)))
    at = run_address(row.run)
    return [
        *found,
        Action("HTML", f"{at}/report.html", file=True),
        Action("JSON", f"{at}/report.json", file=True),
        Action("Archive", f"{at}/archive.zip", file=True),
    ]


def previous_run(row: RunRow, rows: Sequence[RunRow]) -> RunRow | None:
    """The one before it, of the same program."""
    alike = [each for each in rows if (each.kind, each.program) == (row.kind, row.program)]
    earlier = [each for each in alike if each.started < row.started and each.run != row.run]
    return max(earlier, key=lambda each: each.started, default=None)


def _starting(row: RunRow, cwd: str) -> list[Action]:
    """Each is a form, filled in; what a search for fixes found can be applied."""
    if row.kind == "fix":
        return [
            Action("See and apply the fix", fix_address(row.run), needs_token=True),
            Action("Search again", start_address("fix", run=row.run), needs_token=True),
        ]
    if row.kind in _FORMS:
        build = build_of(row.command, cwd) if row.kind == "numbers" else ""
        return [Action("Start another", start_address(_FORMS[row.kind], build=build), True)]
    if row.kind != "run":
        return []
    script = script_of(row.command, cwd)
    program = {"script": script, "arguments": shlex.join(row.command[1:])} if script else {}
    forms = [
        ("Start again", "run", program),
        # These know the program of a run, also where it is a module or needs torchrun.
        ("Find fixes", "fix", {"run": row.run}),
        ("Minify", "minify", program),
        ("Check a device", "preflight", {"run": row.run}),
    ]
    return [
        Action(label, start_address(form, **fields), needs_token=True)
        for label, form, fields in forms
        if fields
    ]


def _reading(row: RunRow) -> list[Action]:
    """Of a run of somebody else's: what only reads it."""
    if row.kind == "fix":
        return [Action("See the fix", fix_address(row.run), needs_token=True)]
    if row.kind in _FORMS:
        return [Action("Start another", start_address(_FORMS[row.kind]), True)]
    if row.kind != "run":
        return []
    return [Action("Check a device", start_address("preflight", run=row.run), needs_token=True)]


def script_of(command: Sequence[str], cwd: str) -> str:
    """The file that was run, absolute; empty where it was a module or a line of code."""
    if not command or not command[0].endswith(".py") or not cwd:
        return ""
    return os.path.normpath(os.path.join(cwd, command[0]))


def build_of(command: Sequence[str], cwd: str) -> str:
    """Of `compilescope diff`: `/models/mlp.py:build`; empty where no word of it is one."""
    found = next((word for word in command[1:] if _BUILD.fullmatch(word)), "")
    return os.path.normpath(os.path.join(cwd, found)) if found and cwd else ""
