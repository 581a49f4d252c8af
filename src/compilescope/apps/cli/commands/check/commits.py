"""`check --git`: the program of the working tree compared with itself at a commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compilescope.apps.cli.commands.verify.output import deliver
from compilescope.apps.cli.commands.verify.request import read_request, verified
from compilescope.apps.cli.options import RUN_LIMIT_S
from compilescope.apps.cli.program import Words
from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.errors import ToolError

_NOT_WITH = {
    **{name: f"--max-{name}" for name in ("breaks", "recompiles", "graphs", "eager", "failures")},
    **{name: f"--max-{name}" for name in ("violations", "differences", "slowdown")},
    "coverage": "--min-coverage",
    "run": "--run",
    "against": "--against",
    "own": "--own",
    "baseline": "--baseline",
    "update_baseline": "--update-baseline",
    "strict": "--strict",
    "junit": "--junit",
    "sarif": "--sarif",
}
"""Limits of one run, and files of its findings."""


def check_commits(words: Words, given: dict[str, Any]) -> int:
    """What is new in the working tree, or slower, fails."""
    for name, flag in _NOT_WITH.items():
        if given[name] is not None and given[name] is not False:
            raise ToolError(f"Use --git or {flag}, not both.")
    as_verify = {
        **{name: None for name in ("against", "patch", "budget", "output")},
        "limit": RUN_LIMIT_S,
        "timed": True,
        "isolated": False,
    }
    with ended_in_order(pausing=True):
        request = replace(read_request(words, {**given, **as_verify}), behavior=False)
        return deliver(verified(request), request)
