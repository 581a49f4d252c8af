"""One candidate, tried in this process: a task for the sandbox.

The script that would be handed out is run, with saved numbers put in from the record.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from compilescope.minify.graph.record import RECORD, Record
from compilescope.minify.graph.values import saved_values

TASK = f"{__name__}:run_trial"
_KEPT, _LOST, _INVALID = "kept", "lost", "invalid"
EAGER_RAN = "eager: fine"


def run_trial(payload: dict[str, Any]) -> dict[str, str]:
    """`outcome`, and `why`."""
    record = msgspec.json.decode(Path(payload["folder"], RECORD).read_bytes(), type=Record)
    try:
        shown = script_names(payload["text"], payload["folder"], record, payload["saved"])
    except Exception as error:  # The border of a worker: a candidate may be nonsense.
        return {"outcome": _INVALID, "why": f"{type(error).__name__}: {error}"}
    outcome, why = _CHECKS[record.shown.kind](shown, record)
    return {"outcome": outcome, "why": why}


def script_names(text: str, folder: str, record: Record, saved: Sequence[str]) -> dict[str, Any]:
    """The script's functions."""
    names: dict[str, Any] = {"__name__": "__repro__", "__file__": "repro.py"}
    names["saved"] = saved_values(Path(folder), record, saved)
    exec(compile(text, "repro.py", "exec"), names)
    return names


def _violation(shown: dict[str, Any], record: Record) -> tuple[str, str]:
    from compilescope.backends.mock.refusal import ConstraintError
    from compilescope.minify.violations import facts, loosely

    try:
        shown["compiled"]()
    except ConstraintError as error:
        wanted = {loosely(tuple(fact)) for fact in record.shown.expected}
        known = wanted | {loosely(tuple(fact)) for fact in record.shown.also}
        found = {loosely(msgspec.structs.astuple(fact)) for fact in facts(error.violations)}
        # What becomes an input is looked at as one for the first time.
        new = {fact for fact in found - known if fact[2] != "input"}
        return (_KEPT, "") if wanted <= found and not new else (_LOST, "other violations")
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID, traceback.format_exc(limit=-3)
    return _LOST, "no violation"


def _by_exit_status(shown: dict[str, Any], record: Record) -> tuple[str, str]:
    try:
        status = shown["main"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID, traceback.format_exc(limit=-3)
    return {0: _LOST, 1: _KEPT}.get(status, _INVALID), ""


def _signal(shown: dict[str, Any], record: Record) -> tuple[str, str]:
    """If it dies, the sandbox sees by what."""
    try:
        shown["eager"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID, traceback.format_exc(limit=-3)
    # For the sandbox, should this process die.
    sys.stdout.write(f"{EAGER_RAN}\n")
    sys.stdout.flush()
    try:
        shown["compiled"]()
    except Exception:  # The border to torch.
        return _INVALID, traceback.format_exc(limit=-3)
    return _LOST, "nothing died"


def _difference(shown: dict[str, Any], record: Record) -> tuple[str, str]:
    """The script must say so, and the judge of tensors too: a script's rule is a short one."""
    from compilescope.diff.judging import judge

    try:
        wanted, found, exact = shown["eager"](), shown["compiled"](), shown["exact"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID, traceback.format_exc(limit=-3)
    if len(wanted) != len(found):
        return _INVALID, "another number of results"
    right = exact if exact is not None and len(exact) == len(wanted) else [None] * len(wanted)
    why = "no difference"
    for ours, its, true in zip(wanted, found, right, strict=True):
        seen = shown["difference"](ours, its, true)
        if seen is None or seen[0] != record.shown.expected:
            continue
        if seen[0] == "structure":
            return _KEPT, seen[1]
        verdict = judge(ours, its, true)
        if verdict.verdict == "fail":
            return _KEPT, verdict.reason
        why = verdict.reason
    return _LOST, why


_CHECKS = {
    "violation": _violation,
    "failure": _by_exit_status,
    "signal": _signal,
    "difference": _difference,
}
